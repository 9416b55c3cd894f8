#!/usr/bin/env bash
# soak.sh [OPTIONS] [MINUTES]: random jobs until the time is over, and a closing account. suite.sh builds what it needs.
#
# A job is all that its seed says: here the MPI (even seeds Open MPI, odd ones MPICH), the interface, the hosts, the number
# of ranks and whether something goes wrong; in tests/soak/script.cpp the settings, patterns and calls.
# shellcheck disable=SC2015,SC2016,SC2046,SC2086,SC2206,SC2209
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(readlink -f "$here/../..")
. "$here/../support/jobs.sh"

usage() {
    cat <<'END'
usage: tests/run soak [OPTIONS] [MINUTES]

Random jobs for MINUTES [30], under Open MPI and MPICH: 1 to 6 ranks, random patterns, settings, files and calls; through the
declared interface and the drop-in library; on this host and on hosts in a box; with faults of system calls and killed
ranks. Every byte that is read, and every file at the end, is compared with a model. A job must leave nothing behind.

  --seed S         repeat one job; --seeds "S T ..." repeats several
  --markdown FILE  put the results between the lines <!-- soak --> and <!-- /soak --> of FILE
  --keep DIR       keep the directories of jobs that failed there [build/soak]
  --build DIR      use the programs in DIR/openmpi/bin and DIR/mpich/bin; then nothing is installed or built
  --openmpi DIR, --mpich DIR    the two trees separately; jobs of an MPI without a tree are left out

Exit status: 0 if there were no mismatches, leaks or hangs, 1 if there were, 2 for bad arguments.
END
}
bad() { echo "tests/run soak: $*; see --help" >&2; exit 2; }

parse() {
    minutes=30 seeds='' markdown='' keep=$root/build/soak
    declare -gA tree=()
    while [ $# -gt 0 ]; do
        case $1 in
        --help | -h) usage; exit 0 ;;
        --seed | --seeds | --markdown | --keep | --build | --openmpi | --mpich)
            [ $# -gt 1 ] || bad "$1 needs a value"
            case $1 in
            --seed | --seeds) seeds=$2 ;;
            --markdown) markdown=$(readlink -m "$2") ;;
            --keep) keep=$(readlink -m "$2") ;;
            --build) tree[openmpi]=$(readlink -m "$2/openmpi") tree[mpich]=$(readlink -m "$2/mpich") ;;
            *) tree[${1#--}]=$(readlink -m "$2") ;;
            esac
            shift ;;
        -*) bad "$1: no such option" ;;
        *) [[ $1 =~ ^[1-9][0-9]{0,4}$ ]] || bad "$1: expected a number of minutes"
            minutes=$1 ;;
        esac
        shift
    done
    [[ $seeds =~ ^[0-9\ ]*$ ]] || bad "--seed $seeds: expected numbers"
    if [ -n "$markdown" ]; then
        grep -qx '<!-- soak -->' "$markdown" && grep -qx '<!-- /soak -->' "$markdown" ||
            bad "--markdown $markdown: no lines <!-- soak --> and <!-- /soak -->"
    fi
    [ ${#tree[@]} -gt 0 ] || { tree[openmpi]=$root/build/openmpi; tree[mpich]=$root/build/mpich; }
    local mpi
    for mpi in "${!tree[@]}"; do [ -x "${tree[$mpi]}/bin/soak_declared" ] || bad "${tree[$mpi]}/bin/soak_declared is not there"; done
}

# ---- what a job is --------------------------------------------------------------------------------------------------

pick() { # N: picked, from 0 to N-1
    local z
    dice=$((dice - 7046029254386353131)) # splitmix64
    z=$(((dice ^ ((dice >> 30) & 0x3ffffffff)) * -4658895280553007687))
    z=$(((z ^ ((z >> 27) & 0x1fffffffff)) * -7723592293110705685))
    picked=$((((z >> 31) & 0x7fffffff) % $1))
}

describe() { # SEED
    seed=$1 dice=$((seed * 2862933555777941757))
    mpi=openmpi interface=declared place=here shape='' trouble=none io=''
    [ $((seed % 2)) -eq 0 ] || mpi=mpich
    pick 5; [ "$picked" -ne 0 ] || interface=dropin
    pick 6; [ "$picked" -ne 0 ] || place=box
    pick 2; [ $place = here ] || { shape=2x2; [ "$picked" -eq 0 ] || shape=4x1; }
    local numbers=(1 1 2 2 2 2 2 3 3 3 3 4 4 4 5 6)
    pick ${#numbers[@]}; ranks=${numbers[picked]}
    [ $place = here ] || ranks=4
    pick 20
    case $picked in 0) trouble=fault ;; 1) trouble=kill ;; esac
    [ $trouble,$interface != fault,dropin ] || trouble=kill # faults are those of the declared interface's own program
    [ $ranks -gt 1 ] || [ $trouble != kill ] || ranks=2
    pick 3; [ $mpi,$interface != openmpi,dropin ] || { io=romio321; [ "$picked" -ne 0 ] || io=ompio; }
}

# ---- running one ----------------------------------------------------------------------------------------------------

limit=${SOAK_LIMIT:-120} # seconds after which a job hangs
limit_killed=30          # and one that has lost a rank
open_mpi_settings

launcher() { # sets `launch`: what comes before "-n RANKS PROGRAM"
    case $mpi in
    openmpi)
        launch=("$(type -P mpiexec.openmpi || type -P mpiexec)" --oversubscribe --bind-to none)
        [ -z "$io" ] || launch+=(--mca io "$io") ;;
    mpich) launch=("$(type -P mpiexec.hydra || type -P mpiexec.mpich)" -genv LD_PRELOAD "$lib/libtapioca_mpich_shim.so") ;;
    esac
}

in_box() { # SHAPE COMMAND...
    local options=(--mpi $mpi)
    [ $mpi = openmpi ] || options+=(--shim "$lib/libtapioca_mpich_shim.so")
    [ -z "$io" ] || options+=(--io "$io")
    "$root/tools/cluster/tapioca-cluster" "$1" "${options[@]}" --timeout $((limit + 5)) --shared "$PWD" -- \
        unshare --mount sh -c "$with_ssd" sh '{shared}' "${@:2}"
}

start() { # the job, in the background, as a process group of its own
    local program=("$bin/soak_declared")
    [ $interface = declared ] || program=(sh -c "$preloaded" "$lib/libtapioca_mpiio.so" "$bin/soak_mpiio")
    set -m
    case $place in
    here) "${launch[@]}" -n "$ranks" "${program[@]}" "$seed" here $trouble "$PWD" "$PWD/stage" "$PWD/tier" >out 2>err </dev/null & ;;
    box) in_box "$shape" "${program[@]}" "$seed" box $trouble '{shared}' /run/cluster/ssd /run/cluster/ssd >out 2>err </dev/null & ;;
    esac
    job=$!
    set +m
}

# The exit status of the job in `status`; 124 if it hangs.
await() {
    local began=$SECONDS most=$limit
    [ $trouble != kill ] || most=$limit_killed
    while ! is_gone $job; do
        if [ $((SECONDS - began)) -ge $most ]; then
            hung_ranks
            kill -TERM -- -$job 2>/dev/null || true
            sleep 2
            kill -KILL -- -$job 2>/dev/null || true
            wait $job 2>/dev/null || true
            [ $place = box ] || kill -KILL $(rank_pids) 2>/dev/null || true
            status=124
            return
        fi
        nap_ms 50
    done
    status=0
    wait $job 2>/dev/null || status=$?
}

rank_pids() { # those that are still of this job
    local pid
    for pid in $(cat pid.* 2>/dev/null); do
        [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" != "$PWD" ] || echo "$pid"
    done
}

hung_ranks() { # where ranks hang, for whoever looks
    local pid
    [ $place = here ] && command -v gdb >/dev/null || return 0
    for pid in $(rank_pids); do timeout 20 gdb -p "$pid" -batch -ex 'thread apply all bt' >"stack.$pid" 2>/dev/null </dev/null || true; done
}

wrong() { # WHAT TEXT: what is counted, and told
    echo "$1 1" >>notes
    echo "$2" >>failures
}

# ---- what must be so afterwards -------------------------------------------------------------------------------------

recover() {
    local marker file ok
    for marker in file-*.tapioca; do
        [ -e "$marker" ] || continue
        file=${marker%.tapioca}
        [ $trouble != none ] || wrong mismatches "a job without trouble left $marker"
        ok=0
        case $place in
        here) timeout 60 "$bin/tapioca-recover" "$file" >>recovered 2>&1 || ok=$? ;;
        box) timeout 60 env -u io "$root/tests/soak/soak.sh" --recover-in-box "$mpi" "$lib" "${shape%x*}x1" "$bin" "$file" >>recovered 2>&1 || ok=$? ;;
        esac
        [ $ok -eq 0 ] || wrong mismatches "$file is not recovered: $(tail -n 1 recovered)"
        echo "recovered 1" >>notes
    done
}

# Files of memory whose maker was killed before all had it, and logs of one that was killed at the end of a close: the next
# job that comes by removes them, when they are old.
forgotten() { # NAME...: a log's directory after its files
    local name
    echo "left_by_killed $#" >>notes
    touch -d '2 minutes ago' "$@"
    (describe $((seed % 2 + 2)); trouble=none interface=declared place=here ranks=2
        export TAPIOCA_STAGE=dram
        mkdir -p next/stage next/tier && cd next && launcher && start && await)
    for name in "$@"; do
        [ ! -e "$name" ] || { wrong files_left "$name is not removed by the next job"; rm -rf "$name"; }
    done
}

# A set of subfiles becomes a plain file: it is completed, if its job has died, and read by another job or joined.
make_plain() {
    local directory file readers=$((1 + seed / 7 % 4))
    for directory in file-*.subfiles; do
        [ -e "$directory" ] || continue
        file=${directory%.subfiles}
        if [ "$(stat -c %s "$file" 2>/dev/null)" != 1013 ] || ! head -c 100 "$file" | grep -qa "TAPIOCA subfile set"; then
            # killed before the file was a set, or after it was one
            if [ -n "$died" ]; then rm -rf "$directory"; echo "left_by_killed 1" >>notes; else wrong files_left "left: $directory"; fi
            continue
        fi
        echo "sets 1" >>notes
        if [ $trouble = none ]; then
            "$bin/tapioca" subfile verify "$file" >>recovered 2>&1 || wrong mismatches "$file is not a complete set"
        else
            "$bin/tapioca" subfile recover "$file" >>recovered 2>&1 || wrong mismatches "$file is not completed: $(tail -n 1 recovered)"
            ! grep -q "^$file: recovered" recovered || echo "completed 1" >>notes
        fi
        if grep -qa '^tier: ' "$file"; then
            echo "on_tier 1" >>notes
            [ $((seed % 2)) -eq 0 ] || copy_by_readers "$file" early
            timeout 60 "$bin/tapioca" target drain "$file" >>recovered 2>&1 || wrong mismatches "$file is not drained: $(tail -n 1 recovered)"
        fi
        if [ $((seed % 3)) -eq 0 ]; then
            timeout 60 "${launch[@]}" -n $readers "$bin/tapioca-join" "$file" >>recovered 2>&1 || wrong mismatches "$file is not joined: $(tail -n 1 recovered)"
            [ ! -e "$directory" ] || wrong files_left "left by a join: $directory"
        else
            copy_by_readers "$file" copy
            rm -rf "$directory" && mv copy "$file"
        fi
        [ ! -e early ] || cmp -s early "$file" || wrong mismatches "$file is another one when it is drained"
        rm -f early
    done
    # what a killed job had made for a file that came to nothing
    [ -z "$died" ] || "$bin/tapioca" target drop --gone "ssd:$PWD/tier" >>recovered 2>&1 || wrong files_left "$(tail -n 1 recovered)"
}

copy_by_readers() { # FILE COPY
    timeout 60 "${launch[@]}" -n $readers "$bin/soak_reader" "$1" "$2" >>recovered 2>&1 || wrong mismatches "$1 is not read by $readers ranks: $(tail -n 1 recovered)"
}

is_finished_log() { # PATH without .meta and .data: docs/formats/log.md
    [[ $1 =~ /tapioca-[0-9a-f]{32}/(rank|node)[0-9]+$ ]] || return 1
    [ -e "$1.meta" ] || return 0
    number_at() { od -An -tu8 -j"$2" -N8 "$1.meta" | tr -d ' '; }
    [ "$(number_at "$1" 3984)" -eq $(($(number_at "$1" 32) + 1)) ]
}

nothing_left() {
    local pid left=() found
    if [ $place = here ]; then
        for pid in $(cat pid.* 2>/dev/null); do
            for _ in $(seq 100); do # the launcher may be ahead of its processes
                ! is_gone "$pid" && [ -n "$(rank_pids)" ] || break
                nap_ms 50
            done
            for found in /dev/shm/tapioca-"$pid"-*; do [ ! -e "$found" ] || left+=("$found"); done
        done
        [ -z "$(rank_pids)" ] || { wrong hangs "processes are left: $(rank_pids)"; kill -KILL $(rank_pids) 2>/dev/null || true; }
        for found in $(grep -laF "$PWD/" /dev/shm/tapioca-*/*.{meta,data} 2>/dev/null | xargs -r dirname | sort -u); do
            left+=("$found"/* "$found")
        done
        if [ ${#left[@]} -gt 0 ]; then
            if [ -n "$died" ]; then forgotten "${left[@]}"; else wrong shared_memory "left in memory: ${left[*]}"; rm -rf "${left[@]}"; fi
        fi
    fi
    while read -r found; do
        # As above: buffers on a tier that a killed rank had made and not yet shown to the others.
        if [ -n "$died" ] && [[ $found =~ /tapioca-[0-9]+-[0-9a-f]{16}$ ]]; then echo "left_by_killed 1" >>notes; continue; fi
        # And logs that were flushed and closed, and not yet removed.
        if [ -n "$died" ] && is_finished_log "${found%.*}"; then echo "left_by_killed 1" >>notes; continue; fi
        wrong files_left "left: $found"
    done < <(find stage tier ssd-* -mindepth 1 -type f 2>/dev/null; ls -d file-*.tapioca* 2>/dev/null || true)
    [ -n "$died" ] || while read -r found; do wrong files_left "left: $found"; done < <(
        find stage tier ssd-* -mindepth 1 -type d 2>/dev/null)
}

failed_without_reason() { grep -q ^WRONG err || wrong mismatches "the job failed with status $status"; }

run_job() ( # SEED: in a directory of its own; its notes are its account
    describe "$1"
    [ -n "${tree[$mpi]:-}" ] || { echo "not_here 1" >"$work/notes"; exit 0; }
    bin=${tree[$mpi]}/bin lib=${tree[$mpi]}/lib
    rm -rf "$work/job" && mkdir -p "$work/job"/{stage,tier} "$work/job"/ssd-n{0..3}
    cd "$work/job"
    : >notes
    : >failures
    [ $trouble != kill ] || export TAPIOCA_TIMEOUT=10
    launcher
    start
    trap 'kill -TERM -- -$job 2>/dev/null; exit 130' INT TERM
    await
    if [ $status -eq 77 ] && [ $place = box ]; then echo "no_box 1" >notes; exit 0; fi
    echo "jobs 1
$mpi 1
$interface 1
$place 1" >>notes
    sed -n 's/^account //p' out | tr ' =' '\n ' >>notes
    sed -n 's/^came_true /kind: /p' out | tr ' ' '_' | sed 's/$/ 1/' >>notes
    died=''
    [ $trouble != kill ] || died=1
    case $trouble,$status in
    *,124) wrong hangs "the job hangs" ;;
    fault,[1-9]*) # without memory to take part in a call, a rank ends the job, and says so
        if grep -q '^tapioca: rank .* is out of memory while the others wait for it in.*: aborting the job' err && grep -q '^fault memory' out; then
            died=1
            echo "faults 1
came_true 1
kind:_memory_ENOMEM 1
aborts 1" >>notes
        else
            failed_without_reason
        fi ;;
    kill,0) wrong mismatches "the job succeeded without one of its ranks" ;;
    kill,*) echo "kills 1" >>notes ;;
    *,0) ;;
    *) failed_without_reason ;;
    esac
    ! grep -q ^WRONG err || { grep ^WRONG err >>failures; grep -q ^account out || echo "mismatches 1" >>notes; }
    recover
    make_plain
    nothing_left
    "$bin/soak_check" "$seed" "$ranks" $interface $place $trouble . >checked 2>>failures || echo "mismatches 1" >>notes
    sed -n 's/^checked.* bytes=\([0-9]*\).*/compared \1/p' checked >>notes
    grep -q ^account out || sed -n 's/^checked files=\([0-9]*\).*/files \1/p' checked >>notes
    [ -s failures ] || exit 0
    report_failure
    exit 1
)

report_failure() {
    {
        echo
        echo "FAILED: tests/run soak --seed $seed    ($mpi, $interface, ${shape:-$ranks ranks}, trouble: $trouble)"
        sed 's/^/  /' failures | head -n 20
        grep -h '^settings\|^fault\|^came_true' out | sed 's/^/  /'
        for file in progress.*; do echo "  $file: $(tail -n 1 "$file")"; done
        grep -v '^WRONG' err | tail -n 8 | sed 's/^/  | /'
        [ ! -e recovered ] || tail -n 5 recovered | sed 's/^/  > /'
    } >&2 2>/dev/null || true
    mkdir -p "$keep" && rm -rf "$keep/seed-$seed" && cp -a . "$keep/seed-$seed" && echo "  all of it: $keep/seed-$seed" >&2
}

# ---- the account ----------------------------------------------------------------------------------------------------

declare -A total=()
collect() {
    local name value
    while read -r name value; do
        [[ $value =~ ^[0-9]+$ ]] || continue
        total[$name]=$((${total[$name]:-0} + value))
    done <"$1"
}
of() { echo "${total[$1]:-0}"; }
megabytes() { awk -v bytes="$(of "$1")" 'BEGIN { printf "%.1f MB", bytes / 1e6 }'; }

rows() { # LABEL<tab>VALUE
    local name kinds=''
    for name in $(printf '%s\n' "${!total[@]}" | sort); do
        [[ $name != kind:_* ]] || kinds+="${kinds:+, }$(tr _ ' ' <<<"${name#kind:_}") ${total[$name]}"
    done
    printf '%s\t%s\n' \
        "time" "$((($SECONDS + 30) / 60)) minutes, seeds from $first on" \
        "jobs" "$(of jobs): Open MPI $(of openmpi), MPICH $(of mpich)" \
        "interface" "declared $(of declared), drop-in $(of dropin)" \
        "hosts" "this one $(of here), in a box $(of box)" \
        "files" "$(of files)" \
        "sets of subfiles" "$(of sets), read by other jobs or joined; of killed jobs, completed $(of completed); on a tier, drained or not $(of on_tier)" \
        "bytes written" "$(megabytes written)" \
        "bytes read and compared" "$(megabytes read); of files in the end $(megabytes compared)" \
        "faults injected" "$(of faults), came true $(of came_true)${kinds:+: $kinds}" \
        "errors returned" "$(of errors), the same on all ranks; jobs that a rank without memory ended, saying so: $(of aborts)" \
        "ranks killed" "$(of kills); files recovered $(of recovered); memory left for the next job $(of left_by_killed)" \
        "mismatches" "$(of mismatches)" \
        "leaks" "memory $(of memory), descriptors $(of descriptors), threads $(of threads), shared memory $(of shared_memory), files $(of files_left)" \
        "hangs" "$(of hangs)"
    [ "$(of no_box)" -eq 0 ] || printf '%s\t%s\n' "not possible here" "$(of no_box) jobs on hosts in a box"
}

write_markdown() {
    { echo '| | |'; echo '|---|---|'; rows | sed 's/\t/ | /; s/^/| /; s/$/ |/'; } >"$work/table"
    awk -v table="$work/table" '
        /^<!-- soak -->$/ { print; while ((getline line < table) > 0) print line; inside = 1 }
        /^<!-- \/soak -->$/ { inside = 0 }
        !inside { print }' "$markdown" >"$work/page"
    cat "$work/page" >"$markdown"
}

one() { # SEED
    local result=0
    run_job "$1" || result=$?
    [ -z "$over" ] || return 0 # interrupted
    [ $result -eq 0 ] || failed=$((failed + 1))
    if [ -e "$work/notes" ]; then collect "$work/notes"; rm "$work/notes"; elif [ -e "$work/job/notes" ]; then collect "$work/job/notes"; fi
}

main() {
    if [ "${1:-}" = --recover-in-box ]; then # MPI LIB SHAPE BIN FILE: in the job's directory
        mpi=$2 lib=$3 io=''
        in_box "$4" "$5/tapioca-recover" "{shared}/$6"
        return
    fi

    parse "$@"
    unset TAPIOCA_STAGE TAPIOCA_STAGE_MAPPING TAPIOCA_TIMEOUT
    work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-soak.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    begin_naps "$work/nobody"
    failed=0 told=0 over='' SECONDS=0
    trap 'over=1' INT TERM
    if [ -n "$seeds" ]; then
        first=${seeds%% *}
        for seed in $seeds; do [ -n "$over" ] || one "$seed"; done
    else
        first=$((RANDOM * 32768 + RANDOM))
        for ((next = first; SECONDS < minutes * 60 && !${over:-0}; ++next)); do
            one $next
            if [ $((SECONDS - told)) -ge 30 ]; then
                told=$SECONDS
                echo "$((SECONDS / 60)):$(printf %02d $((SECONDS % 60)))  $(of jobs) jobs, $(megabytes written) written," \
                    "$(of came_true) faults, $(of kills) kills, $failed failed"
            fi
        done
    fi
    echo
    rows | awk -F'\t' '{ printf "%-24s %s\n", $1, $2 }'
    [ -z "$markdown" ] || write_markdown
    [ "$failed" -eq 0 ] && [ "$(of jobs)" -gt 0 ]
}

main "$@"; exit # read to here before anything runs, so that the script may change meanwhile
