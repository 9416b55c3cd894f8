#!/usr/bin/env bash
# lost_test.sh BIN DROPIN MPI LAUNCHER...: jobs that a rank never comes to, or in which one is lost at some moment, end by
# themselves and leave nothing but what can be recovered. DROPIN is the drop-in library, MPI the MPI library. LOSSES=200 makes
# more of it, SEED=n begins there, ONLY=missing or lost or staged leaves the rest out.
# shellcheck disable=SC2016
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../support/jobs.sh"
bin=$1 dropin=$2 mpi=$3
export TAPIOCA_LEAVE=0 # the programs move little, and it is the engine that is to lose a rank
launcher=("${@:4}")
losses=${LOSSES:-9} first=${SEED:-$RANDOM} lanes=${LANES:-6} only=${ONLY:-missing lost staged}
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-lost.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset TAPIOCA_STAGE TAPIOCA_STAGE_MAPPING
export TAPIOCA_TIMEOUT=2 OMPI_MCA_osc=^ucx
slack=30 # seconds for the launcher to begin and to end
fail() {
    echo "lost_test: $name: $*" >&2
    tail -n 20 out >&2 || true
    touch "$work/failed"
    exit 1
}

run() { # RANKS COMMAND...: within the time-out and some slack, with an error
    local status=0 began=${EPOCHREALTIME/./}
    timeout -k 5 60 "${launcher[@]}" -n "$1" "${@:2}" >out 2>&1 </dev/null || status=$?
    took=$(((${EPOCHREALTIME/./} - began) / 1000))
    [ $status -ne 0 ] || [ "${may_end_well:-}" ] || fail "the job succeeded"
    [ $took -lt $(((TAPIOCA_TIMEOUT + slack) * 1000)) ] || fail "it took $took ms"
    echo "$took" >>"$work/took.$kind"
}
nothing_left() { # [DIRECTORY]: no process, no shared memory, nothing in the directory
    local pid left
    for pid in $(cat pid.? 2>/dev/null); do
        for _ in $(seq 100); do # the launcher may be ahead of its processes
            ! is_gone "$pid" || break
            sleep 0.05
        done
        is_gone "$pid" || fail "process $pid is left"
        # A rank that dies between making memory and naming it to the others leaves it; the next run removes it.
        for left in /dev/shm/tapioca-"$pid"-* ${1:+"$1"/tapioca-"$pid"-*}; do
            [ ! -e "$left" ] || { echo "$left" >>"$work/left"; rm -f "$left"; }
        done
    done
}

missing() { # WHAT-IS-TOLD RANKS COMMAND...
    run "${@:2}"
    grep -q "^tapioca: rank [0-9] of $2 waited more than TAPIOCA_TIMEOUT ($TAPIOCA_TIMEOUT s) for .*$1.*: aborting the job" out ||
        fail "not told: $1"
    [ "$(grep -c "waited more than" out)" -le "$2" ] || fail "told more than once by a rank"
    nothing_left
}
nodes() { export TAPIOCA_RANKS_PER_NODE=2 TAPIOCA_TRANSPORT=$1; } # only in a subshell
drop() { sh=(sh -c "$preloaded" "$dropin" "$bin/lost_mpiio"); }

case_missing() { # NUMBER
    local sh
    drop
    case $1 in
    0) missing "(open, missing)" 3 "$bin/lost" missing open ;;
    1) missing "(declare, missing)" 3 "$bin/lost" missing declare ;;
    2) missing "(finish, missing)" 3 "$bin/lost" missing finish ;;
    3) missing "(close, missing)" 3 "$bin/lost" missing close ;;
    4) mkdir -p stage; TAPIOCA_STAGE=ssd:$PWD/stage missing "(flush, missing)" 3 "$bin/lost" missing flush ;;
    5) nodes p2p; missing "(open, missing)" 4 "$bin/lost" missing open ;;
    6) nodes p2p; missing "(finish, missing)" 4 "$bin/lost" missing finish ;;
    7) nodes rma; missing "(finish, missing)" 4 "$bin/lost" missing finish ;;
    8) nodes rma; missing "(close, missing)" 4 "$bin/lost" missing close ;;
    9) nodes p2p; missing "(declare, missing)" 4 "$bin/lost" missing declare ;;
    10) missing "open a file (open, .*/missing)" 3 "${sh[@]}" missing open "$mpi" ;;
    11) missing "first access (write_at_all, .*/missing)" 3 "${sh[@]}" missing first "$mpi" ;;
    12) missing "(write_at_all, .*/missing)" 3 "${sh[@]}" missing write "$mpi" ;;
    13) nodes p2p; missing "(read_at_all, .*/missing)" 4 "${sh[@]}" missing read "$mpi" ;;
    14) missing "(close, .*/missing)" 3 "${sh[@]}" missing close "$mpi" ;;
    15) export LOST_THREADS=1; nodes p2p; missing "(open, missing)" 4 "$bin/lost" missing open ;;
    16) export LOST_THREADS=1; nodes rma; missing "(finish, missing)" 4 "$bin/lost" missing finish ;;
    17) export LOST_STUCK=1; missing "(finish, missing)" 3 "$bin/lost" missing finish # by a signal, 5 s later
        [ "$took" -ge $(((TAPIOCA_TIMEOUT + 4) * 1000)) ] || fail "MPI_Abort came back" ;;
    *) return 1 ;;
    esac
}

ways=(kill segv abort exit)
case_lost() { # SEED: somewhere, in some way
    local sh way=${ways[$1 % 4]} may_end_well=''
    [ $way != exit ] || may_end_well=1 # MPICH's launcher ends the job and may return the 0; on its own it takes 20 s
    drop
    mkdir -p tier
    case $(($1 / 4 % 6)) in
    0) run 3 "$bin/lost" "$way" "$1" ;;
    1) nodes p2p; run 4 "$bin/lost" "$way" "$1" ;;
    2) nodes rma; run 4 "$bin/lost" "$way" "$1" ;;
    3) TAPIOCA_AGGRTIER=ssd:$PWD/tier run 3 "$bin/lost" "$way" "$1" ;;
    4) run 3 "${sh[@]}" "$way" "$1" ;;
    5) nodes p2p; TAPIOCA_STAGE=ssd:$PWD/stage; mkdir -p stage; export TAPIOCA_STAGE; run 4 "${sh[@]}" "$way" "$1" ;;
    esac
    nothing_left tier
    [ -z "$(ls -A tier)" ] || fail "left on the tier: $(ls tier)"
}

case_staged() { # SEED: and what calls had written when they returned is recovered
    local way=${ways[$1 % 4]} answer
    : >before
    : >file
    mkdir -p d stage
    # One that ends before its time has no rank to lose; a crash_worker that does not close waits, for 20 s.
    may_end_well=1 TAPIOCA_STAGE=ssd:$PWD/stage TAPIOCA_STAGE_DRAIN=off CRASH_RANK=1 CRASH_WAY=$way \
        run 3 "$bin/crash_worker" "$1" file "$PWD/stage" d
    cp d/pid.? .
    nothing_left stage
    if [ -e file.tapioca ]; then "$bin/tapioca-recover" file >log 2>&1 || { cat log; fail "not recovered"; }; fi
    answer=$("$bin/crash_check" "$1" 3 file before d) || fail "$answer"
    echo "${answer% *}" >>"$work/bytes"
    [ -z "$(find stage -type f)" ] || fail "logs are left: $(find stage)"
}

lane() { # NUMBER: its part of the cases
    local i n number
    for kind in $only; do
        case $kind in missing) n=18 number=0 ;; lost) n=$losses number=$first ;; staged) n=$(((losses + 2) / 3)) number=$first ;; esac
        for ((i = n - 1 - $1; i >= 0; i -= lanes)); do # the longest first
            [ ! -e "$work/failed" ] || exit 1
            name="$kind $((number + i))"
            mkdir -p "$work/$kind$i"
            (cd "$work/$kind$i" && "case_$kind" $((number + i))) || exit 1
            rm -rf "${work:?}/$kind$i"
        done
    done
}

for ((n = 0; n < lanes; ++n)); do lane $n & running[n]=$!; done
status=0
for ((n = 0; n < lanes; ++n)); do wait "${running[n]}" || status=1; done
[ $status -eq 0 ] || exit 1
for kind in $only; do
    sort -n "$work/took.$kind" | awk -v kind=$kind '{ a[NR] = $1 } END { printf "lost_test: %s: %d jobs ended after %d to %d ms, half of them within %d\n", kind, NR, a[1], a[NR], a[int((NR + 1) / 2)] }'
done
[ ! -e "$work/bytes" ] || awk '{ sum += $1 } END { print "lost_test: " sum " bytes recovered and compared" }' "$work/bytes"
[ ! -e "$work/left" ] || echo "lost_test: $(wc -l <"$work/left") pieces of memory left for the next run to remove: $(cat "$work/left")"
echo "lost_test: all as expected, from seed $first on"
