#!/usr/bin/env bash
# lost_host_test.sh BIN TAPIOCA-CLUSTER OPTIONS...: a host is cut off from the network, or loses its power, while a job
# runs on three hosts: all ranks end by themselves, within the time-out and some slack, and what was staged is recovered.
# OPTIONS choose the MPI. HOSTS_LOST="rma:cut rma:off staged:off" says what is tried.
#
# Open MPI's launcher does not end before it knows that a daemon is gone, although all ranks are: `launcher` makes it know.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../support/jobs.sh"
bin=$1 tool=$2
shift 2
mpi=("$@")
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-lost-host.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset TAPIOCA_STAGE TAPIOCA_STAGE_MAPPING
timeout=2 slack=25
fail() { echo "lost_host_test: $case: $*" >&2; grep -v "0x[0-9a-f]*\]$" out | tail -n 40 >&2; exit 1; }

box() { # SHAPE OPTION COMMAND...
    "$tool" "$1" "${mpi[@]}" --timeout 40 $2 --shared "$PWD" -- unshare --mount sh -c "$with_ssd" sh '{shared}' "${@:3}"
}
ranks_left() { # how many ranks run, seen from outside
    local process count=0
    for process in /proc/[0-9]*; do
        case $(readlink "$process/exe") in
        "$bin/lost" | "$bin/crash_worker") tr '\0' ' ' <"$process/cmdline" | grep -q " $mark" && count=$((count + 1)) || true ;;
        esac
    done 2>/dev/null
    echo $count
}
now() { echo $((${EPOCHREALTIME/./} / 1000)); }

run_and_lose() { # COMMAND...: one host is lost; TOOK is how long after that the last rank ended, in ms
    local job lost='' status=0 i
    box 3x2 "--fail n2:$how@$PWD/now" env TAPIOCA_TIMEOUT=$timeout "$@" >out 2>&1 </dev/null &
    job=$!
    # Not before the library is at work: nobody watches MPI_Init.
    for ((i = 0; i < 600; ++i)); do
        [ ! -e at_work ] && ! grep -qs "r 1$" d/progress.0 || break
        [ -e /proc/$job ] || break
        sleep 0.05
    done
    sleep 0.$((RANDOM % 10))
    : >now
    for ((i = 0; i < 600; ++i)); do
        [ -n "$lost" ] || ! grep -q "n2 is lost" out || lost=$(now)
        [ -z "$lost" ] || [ "$(ranks_left)" -ne 0 ] || break
        [ -e /proc/$job ] || break
        sleep 0.05
    done
    took=$(($(now) - ${lost:-0}))
    [ -n "$lost" ] || { wait $job || status=$?; [ $status -ne 77 ] || exit 77; fail "no host was lost"; }
    [ "$(ranks_left)" -eq 0 ] || fail "$(ranks_left) ranks are left after $took ms"
    [ $took -lt $(((timeout + slack) * 1000)) ] || fail "it took $took ms"
    sleep 1
    case $case,${mpi[*]} in
    launcher:*) grep -q "waited more than TAPIOCA_TIMEOUT\|lost communication with a remote daemon" out || fail "nobody said why" ;;
    *) grep -q "waited more than TAPIOCA_TIMEOUT ($timeout s) for" out || fail "no rank said why" ;;
    esac
    case $case,${mpi[*]} in *,*openmpi*) [ $case = launcher:cut ] || kill -TERM $job 2>/dev/null || true ;; esac
    wait $job || status=$?
    [ $status -ne 0 ] && [ $status -ne 124 ] || fail "exit status $status"
    echo "lost_host_test: $case: all ranks were gone ${took} ms after the loss"
}

lose() { # WHAT:HOW
    case=$1 how=${1#*:} mark=$((RANDOM * 32768 + RANDOM))
    mkdir -p "$work/$1/d" "$work/$1"/ssd-n{0..2}
    cd "$work/$1"
    case $1 in
    staged:*) # calls that only log what they get go on; the next that is collective waits
        : >file
        cp file before
        run_and_lose env TAPIOCA_STAGE=ssd:/run/cluster/ssd TAPIOCA_STAGE_DRAIN=off CRASH_PAUSE=250000 \
            "$bin/crash_worker" 12 {shared}/file /run/cluster/ssd {shared}/d "$mark"
        ;;
    launcher:*) # the time after which a silent daemon is given up, 480 s if nobody asks, is to be shorter than ours
        export OMPI_MCA_oob_tcp_keepalive_time=1 OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=1
        timeout=6
        run_and_lose "$bin/lost" none $mark
        ;;
    *) run_and_lose env TAPIOCA_TRANSPORT="${1%:*}" "$bin/lost" none $mark ;;
    esac
    case $1 in staged:*) ;; *) return 0 ;; esac
    [ -e file.tapioca ] || fail "nothing is there to recover"
    box 3x1 "" "$bin/tapioca-recover" {shared}/file >out 2>&1 || fail "not recovered"
    "$bin/crash_check" 12 6 file before d >out || fail "not what was written"
    [ "$(cut -d ' ' -f 1 out)" -gt 1000 ] || fail "nothing was written"
    [ -z "$(find ssd-n? -type f)" ] || fail "left: $(find ssd-n? -type f)"
}

jobs=()
for what in ${HOSTS_LOST:-p2p:cut p2p:off staged:cut launcher:cut}; do
    (lose "$what") &
    jobs+=($!)
done
status=0
for job in "${jobs[@]}"; do wait "$job" || status=$?; done
[ $status -eq 0 ] || exit $status
echo "lost_host_test: all as expected"
