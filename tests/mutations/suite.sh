#!/usr/bin/env bash
# Removes the code behind each promise, one at a time, and checks that a test notices.
# shellcheck disable=SC2317
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tools/setup.sh
setup_name="tests/run mutations"

usage="usage: tests/run mutations [--page] [--list] [NAME...]    NAMEs: files of tests/mutations (default: all)
  --page    write the table of docs/results/mutations.md, of what each mutation came to last
  --list    the names and what they take out
Each mutation is a patch in tests/mutations with these lines above it:
  Promise:    what the code keeps
  Takes out:  what of it is gone
  Test:       a command for the build tree; beside others these:
              launch RANKS PROGRAM ARGUMENT...   a program of bin/, started by mpiexec
              sweep ARGUMENT...                  four ranks of bin/fault_sweep
              sweep_dropin ARGUMENT...           four ranks of bin/fault_sweep_mpiio, with the drop-in library
              ends_with TEXT RANKS PROGRAM ...   passes if the job fails by itself within 30 s and says TEXT
  Targets:    what is to be built for it
  Limit:      seconds that the test may take, 120 if there is no such line; a hang is noticed by that
  Needs:      root, if the test passes everybody else by
It is applied to a copy in build/mutants, never to this tree. All tests must pass in the unchanged copy first.
The exit status is 0 if every mutation was caught."

patches=tests/mutations page='' names=()
while [ $# -gt 0 ]; do
    case $1 in
    --page) page=docs/results/mutations.md ;;
    --list)
        for patch in "$patches"/*.patch; do
            name=${patch##*/}
            printf '%-34s %s\n' "${name%.patch}" "$(sed -n 's/^Takes out: *//p' "$patch")"
        done
        exit 0 ;;
    --help | -h) echo "$usage"; exit 0 ;;
    -*) setup_fail "unknown argument '$1'; $usage" ;;
    *)
        [ -r "$patches/$1.patch" ] || setup_fail "there is no $patches/$1.patch; --list shows the names"
        names+=("$1") ;;
    esac
    shift
done
if [ ${#names[@]} -eq 0 ]; then
    for patch in "$patches"/*.patch; do name=${patch##*/} && names+=("${name%.patch}"); done
fi

root=$PWD work=$PWD/build/mutants
copy=$work/source tree=$work/tree results=$work/results
mkdir -p "$copy" "$results"

header() { sed -n "/^--- /q; s/^$2: *//p" "$root/$patches/$1.patch"; } # NAME FIELD
files_of() { sed -n 's|^+++ b/||p' "$root/$patches/$1.patch"; }

# Makes these files of the copy as they are here, and touches no other: what is unchanged need not be built again.
refresh() { # FILE...
    local file
    for file in "$@"; do
        cmp -s "$file" "$copy/$file" && continue
        mkdir -p "$copy/$(dirname "$file")"
        cp "$file" "$copy/$file"
    done
}

applied=''
restore() {
    [ -z "$applied" ] || mapfile -t files < <(files_of "$applied")
    [ -z "$applied" ] || refresh "${files[@]}"
    applied=''
}
trap restore EXIT

build() { # NAME...: what these need
    local name targets=()
    for name in "$@"; do read -ra targets <<<"${targets[*]} $(header "$name" Targets)"; done
    cmake --build "$tree" --target "${targets[@]}" >"$work/build.log" 2>&1
}

# What a Test line may use.
launch() { mpiexec.openmpi --oversubscribe --bind-to none -n "$1" "bin/$2" "${@:3}"; }
sweep() { launch 4 fault_sweep "$@"; }
sweep_dropin() {
    TAPIOCA_LEAVE=0 TAPIOCA_BUFFERSIZE=${TAPIOCA_BUFFERSIZE:-4096} TAPIOCA_NBAGGR=2 TAPIOCA_DIRECT=never mpiexec.openmpi --oversubscribe --bind-to none \
        -x LD_PRELOAD="$PWD/lib/libtapioca_mpiio.so" -n 4 bin/fault_sweep_mpiio "$@"
}
ends_with() { # TEXT RANKS PROGRAM ARGUMENT...
    ../source/tests/support/expect_failure.sh 30 "$1" mpiexec.openmpi --oversubscribe --bind-to none -n "$2" "bin/$3" "${@:4}"
}
ctest() { command ctest --no-tests=error --output-on-failure "$@"; }
export -f launch sweep sweep_dropin ends_with ctest
. tests/support/jobs.sh
open_mpi_settings

try() { # NAME: runs its test; what it says is in build/mutants/NAME.log
    local limit
    limit=$(header "$1" Limit)
    (cd "$tree" && timeout -k 10 "${limit:-120}" bash -c "$(header "$1" Test)") >"$work/$1.log" 2>&1 </dev/null
}

# The first thing that the test complained of, in short.
told() { # NAME STATUS
    local line
    line=$(grep -aoE -m 1 '^(WRONG [^:]*: [^:]*|HANG [^:]*: [^:(]*[^ (:])|\[  FAILED  \] [A-Za-z/]*\.[A-Za-z]*' "$work/$1.log" | head -n 1) || true
    case $line in
    WRONG*) echo "fault_sweep, ${line#WRONG }" ;;
    HANG*) echo "fault_sweep, ${line#HANG }: hangs" ;;
    *FAILED*) echo "${line##* }" ;;
    *) echo "\`$(header "$1" Test)\`" ;;
    esac
    case $2 in 124 | 137) echo "(it hangs)" ;; esac
}

setup_packages "${setup_core_packages[@]}" libgtest-dev patch
mapfile -t files < <(git ls-files --cached --others --exclude-standard | grep -v '^tests/fuzz/corpus/' | while read -r file; do [ ! -f "$file" ] || echo "$file"; done)
refresh "${files[@]}"
[ -e "$tree/build.ninja" ] || cmake -S "$copy" -B "$tree" -G Ninja -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O0 \
    -D CMAKE_C_FLAGS_DEBUG=-O0 -D CMAKE_UNITY_BUILD=OFF -D TAPIOCA_WERROR=OFF -D TAPIOCA_BUILD_FORTRAN=OFF \
    -D MPI_C_COMPILER=mpicc.openmpi -D MPIEXEC_EXECUTABLE="$(command -v mpiexec.openmpi)" >"$work/build.log" 2>&1 ||
    { cat "$work/build.log" >&2; setup_fail "configuring failed"; }

echo "building the unchanged copy ..."
build "${names[@]}" || { tail -n 40 "$work/build.log" >&2; setup_fail "building the unchanged copy failed: $work/build.log"; }
broken=0
declare -A passes
for name in "${names[@]}"; do
    test=$(header "$name" Test)
    [ -z "${passes[$test]:-}" ] || continue
    passes[$test]=yes
    try "$name" || { passes[$test]=no; broken=1; echo "fails without any mutation: $test ($work/$name.log)"; }
done
echo "unchanged: ${#passes[@]} tests, $SECONDS s"

note() { # NAME RESULT [WHAT-FAILED]
    printf '%-34s %s\n' "$1" "$2${3:+: $3}"
    printf '%s\t%s\n' "$2" "${3:-}" >"$results/$1"
    [ "$2" = caught ] || broken=1
}
for name in "${names[@]}"; do
    if [ "${passes[$(header "$name" Test)]}" = no ]; then
        note "$name" "not tried" "its test fails without it"
        continue
    elif [ "$(header "$name" Needs)" = root ] && [ "$(id -u)" -ne 0 ]; then
        note "$name" "not tried" "its test needs root"
        continue
    fi
    applied=$name
    status=0
    if ! patch -p1 -s -d "$copy" --no-backup-if-mismatch -r - <"$patches/$name.patch" >"$work/$name.log" 2>&1; then
        note "$name" "did not apply"
    elif ! build "$name"; then
        note "$name" "did not build" "$work/build.log"
        cp "$work/build.log" "$work/$name.log"
    else
        try "$name" || status=$?
        if [ $status -eq 0 ]; then note "$name" "NOT CAUGHT"; else note "$name" caught "$(told "$name" $status | paste -sd ' ')"; fi
    fi
    restore
done

if [ -n "$page" ]; then
    {
        sed '/^<!-- mutations -->$/q' "$page"
        all=0 caught=0 rows=''
        for patch in "$patches"/*.patch; do
            name=${patch##*/} name=${name%.patch} all=$((all + 1)) result='not run' what=''
            [ ! -r "$results/$name" ] || IFS=$'\t' read -r result what <"$results/$name" || true
            [ "$result" != caught ] || caught=$((caught + 1))
            [ "$result" = caught ] || what="**$result**"
            rows+="| $(header "$name" Promise) | $(header "$name" 'Takes out') | $what |"$'\n'
        done
        echo "Open MPI, $(date -u +%Y-%m-%d): $caught of $all caught."
        echo
        echo "| promise | what was taken out | test that failed |"
        echo "|---|---|---|"
        printf '%s' "$rows"
        sed -n '/^<!-- \/mutations -->$/,$p' "$page"
    } >"$page.new"
    mv "$page.new" "$page"
    echo "written into $page"
fi
exit $broken
