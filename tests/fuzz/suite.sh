#!/usr/bin/env bash
# The fuzzers' long run: all of them at once, or in turn if there are fewer cores, then a table.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -d "$here/bin" ]; then me=$0; else me="tests/run fuzz"; fi # packed for another machine, or not
fail() { echo "$me: $*" >&2; exit 2; }
usage="usage: $me MINUTES [NAME...]    new inputs and crashes are kept in \$FUZZ_NEW/NAME
       $me --pack DIR            what another machine needs: copy it there, DIR/run MINUTES
Variables: FUZZ_BIN, where the NAME_fuzz are; FUZZ_CORPUS; FUZZ_NEW; FUZZ_PROCESSES, instead of one a core."
case ${1:-} in --help | -h) echo "$usage"; exit 0 ;; esac

if [ -d "$here/bin" ]; then default=$here; else default=$here/../../build/fuzz; fi
bin=${FUZZ_BIN:-$default/bin}
corpus=${FUZZ_CORPUS:-$here/corpus}
new=${FUZZ_NEW:-$default/new}
[ -n "$(ls "$bin"/*_fuzz 2>/dev/null)" ] || fail "no fuzzers in $bin: cmake --preset fuzz && cmake --build --preset fuzz"

if [ "${1:-}" = --pack ]; then
    to=${2:?where to}
    mkdir -p "$to/bin" "$to/lib"
    cp "$bin"/*_fuzz "$to/bin"
    cp "$here/suite.sh" "$to/run"
    cp -r "$corpus" "$to"
    # All but the C library, which must fit the machine's dynamic linker.
    ldd "$bin"/*_fuzz | awk '$3 ~ /^\// {print $3}' | sort -u | grep -vE '/lib(c|m|dl|rt|pthread)\.so' | xargs cp -L -t "$to/lib"
    exit
fi

minutes=${1:-}
[[ $minutes =~ ^[0-9]+$ ]] || fail "$usage"
shift
names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(cd "$bin" && ls -- *_fuzz | sed 's/_fuzz$//')
for name in "${names[@]}"; do [ -x "$bin/${name}_fuzz" ] || fail "no fuzzer '$name' in $bin"; done
processes=${FUZZ_PROCESSES:-$(nproc)}
[ ! -d "$bin/../lib" ] || [ ! -d "$here/bin" ] || export LD_LIBRARY_PATH=$bin/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
memory=/dev/shm
[ -w "$memory" ] || memory=/tmp
TMPDIR=$(mktemp -d "$memory/tapioca-fuzz-run-XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# Each gets its share of the processes, or of the time.
count=${#names[@]}
seconds=$((minutes * 60))
each=$((processes / count)) more=$((processes % count))
if [ "$each" -eq 0 ]; then
    each=1 more=0 seconds=$((seconds * processes / count))
fi

fuzz() { # NAME NUMBER: one process after the other, for each ends at its first crash
    local own=$new/$1 end=$((SECONDS + seconds)) turn
    for turn in {1..50}; do
        [ $((end - SECONDS)) -gt 0 ] || break
        ! "$bin/$1_fuzz" -max_total_time=$((end - SECONDS)) -reload=1 -print_final_stats=1 -timeout=25 \
            -artifact_prefix="$own/crashes/" "$own/corpus" "$corpus/$1" >"$own/log.$2.$turn" 2>&1 || break
    done
}
echo "$count fuzzers, $processes processes, $seconds s each"
for i in "${!names[@]}"; do
    own=$new/${names[$i]}
    mkdir -p "$own/corpus" "$own/crashes" "$corpus/${names[$i]}"
    rm -f "$own"/log.*
    for ((k = 0; k < each + (i < more ? 1 : 0); ++k)); do
        fuzz "${names[$i]}" "$k" &
        while [ "$(jobs -rp | wc -l)" -ge "$processes" ]; do wait -n; done
    done
done
wait

crashed=0
printf '%-10s %12s %7s %7s %9s %8s\n' fuzzer executions inputs edges features crashes
for name in "${names[@]}"; do
    runs=$(cat "$new/$name"/log.* | awk '/^stat::number_of_executed_units/ {sum += $2} END {print sum + 0}')
    # #123 DONE cov: 45 ft: 67 corp: 8/9Kb ...: the one that got furthest
    read -r edges features inputs < <(cat "$new/$name"/log.* | tr '\t' ' ' |
        sed -nE 's/^#[0-9]+ .*cov: ([0-9]+) ft: ([0-9]+) corp: ([0-9]+).*/\1 \2 \3/p' | sort -n -k2 | tail -n 1) || true
    crashes=$(find "$new/$name/crashes" -type f | wc -l)
    crashed=$((crashed + crashes))
    printf '%-10s %12s %7s %7s %9s %8s\n' "$name" "$runs" "${inputs:-?}" "${edges:-?}" "${features:-?}" "$crashes"
    [ "$runs" -gt 0 ] || crashed=$((crashed + 1))
done
[ "$crashed" -eq 0 ] || { echo "crashes, or no run at all: see $new/NAME/crashes and $new/NAME/log.*" >&2; exit 1; }
