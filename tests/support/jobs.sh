# Sourced by tests that start jobs, with libraries preloaded or on hosts in a box, and wait for them to end.
# shellcheck disable=SC2016,SC2034

# sh -c "$preloaded" LIBRARIES PROGRAM...: with the libraries, behind what MPICH preloads.
preloaded='LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$0" exec "$@"'
# unshare --mount sh -c "$with_ssd" sh SHARED PROGRAM...: an SSD outlives its host in a box, in the shared directory ssd-HOST, which is
# mounted where the host has its own.
with_ssd='mount --bind "$1/ssd-$(hostname)" /run/cluster/ssd && shift && exec "$@"'

# Open MPI for tests, where ctest does not say how.
open_mpi_settings() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_odls_base_sigkill_timeout=0 OMPI_MCA_osc='^ucx'
}

is_gone() { # PID: ended, although its parent may not have looked yet
    [ ! -e "/proc/$1/stat" ] || grep -q ') Z' "/proc/$1/stat" 2>/dev/null
}

# wait_for_launcher PID: waits for the launcher of a job of which a rank was killed, and returns its status. The mpiexec of Open MPI 4.1
# was seen to wait for ever when all ranks had ended (threads of its PMIx server waited for each other), and to crash and leave ranks
# behind. It is killed in the first case, and they in the second. But if a rank and its launcher are there, nothing is done, and the
# test fails by its time limit.
wait_for_launcher() {
    local looks_without_ranks=0 status=0 ranks='' now rank
    while ! is_gone "$1" && [ $looks_without_ranks -lt 100 ]; do
        sleep 0.1
        now=
        for rank in $(cat /proc/"$1"/task/*/children 2>/dev/null); do is_gone "$rank" || now+=" $rank"; done
        if [ -n "$now" ]; then ranks=$now looks_without_ranks=0; else looks_without_ranks=$((looks_without_ranks + 1)); fi
    done
    is_gone "$1" || kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || status=$?
    for rank in $ranks; do
        kill -KILL "$rank" 2>/dev/null || true
        while ! is_gone "$rank"; do sleep 0.1; done
    done
    return $status
}
# with_killed_rank LAUNCHER...: runs a job of which a rank will be killed.
with_killed_rank() {
    "$@" </dev/null &
    wait_for_launcher $!
}

begin_naps() { mkfifo "$1" && exec 9<>"$1"; } # NAME: of a pipe where nothing ever comes
nap_ms() { # MILLISECONDS, without a process
    local seconds
    printf -v seconds '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
    read -rt "$seconds" _ <&9 || true
}
