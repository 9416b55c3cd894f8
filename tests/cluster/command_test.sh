#!/usr/bin/env bash
# command_test.sh NODES_TEST TAPIOCA-CLUSTER OPTIONS...: tapioca-cluster from a user's side. OPTIONS choose the MPI.
set -euo pipefail
nodes_test=$1 tool=$2
shift 2
mpi=("$@")
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-cluster-test.XXXXXX")
mark="mark-$$-$RANDOM" # in the arguments of every process to look for
trap 'rm -rf "$work"' EXIT

fail() { [ ! -s "$work/out" ] || cat "$work/out"; echo "command_test: $*" >&2; exit 1; }
box() { "$tool" "$1" "${mpi[@]}" --timeout 150 "${@:2}"; }

refused() { # STATUS WORDS COMMAND...: one line that says it
    local status=0 expected=$1 words=$2
    shift 2
    "$@" >"$work/out" 2>&1 </dev/null || status=$?
    [ $status -eq "$expected" ] || fail "exit status $status, not $expected, of: $*"
    grep -qe "$words" "$work/out" || fail "no '$words' in the answer to: $*"
    [ "$(wc -l <"$work/out")" -eq 1 ] || fail "more than one line in answer to: $*"
}

bad_arguments() {
    "$tool" --help | grep -q -- "--switches" || fail "no help"
    refused 2 "how many hosts" "$tool"
    refused 2 "expected HOSTSxRANKS" "$tool" eight -- true
    refused 2 "hosts 0: expected a number" "$tool" 0x2 -- true
    refused 2 "ranks per host two: expected a number" "$tool" 2xtwo -- true
    refused 2 "was given already" "$tool" 2x1 3x1 -- true
    refused 2 "no command" "$tool" 2x1
    refused 2 "no command" "$tool" 2x1 --
    refused 2 "none/there: no such program" "$tool" 2x1 -- none/there
    refused 2 "--frob: no such option" "$tool" 2x1 --frob -- true
    refused 2 "--link needs a value" "$tool" 2x1 --link -- true
    refused 2 "--link 1gb: expected a rate" "$tool" 2x1 --link 1gb -- true
    refused 2 "--trunk fast: expected a rate" "$tool" 2x1 --trunk fast -- true
    refused 2 "--switches 3: expected a number from 1 to 2" "$tool" 2x1 --switches 3 -- true
    refused 2 "--mpi lam: expected one of" "$tool" 2x1 --mpi lam -- true
    refused 2 "--io romio: expected one of" "$tool" 2x1 --io romio -- true
    refused 2 "only with --mpi openmpi" "$tool" 2x1 --mpi mpich --io ompio -- true
    refused 2 "--ssd big: expected a size" "$tool" 2x1 --ssd big -- true
    refused 2 "--shared $work/none: no such directory" "$tool" 2x1 --shared "$work/none" -- true
    refused 2 "--fail n1:gone@3: expected a host, cut or off" "$tool" 2x1 --fail n1:gone@3 -- true
    refused 2 "--fail n2:cut@3: hosts are n0 to n1" "$tool" 2x1 --fail n2:cut@3 -- true
    refused 2 "--timeout 0: expected a number" "$tool" 2x1 --timeout 0 -- true
    refused 2 "--fs nfs: expected one of" "$tool" 4x1 --fs nfs -- true
    refused 2 "needs 3 hosts" "$tool" 2x1 --fs gluster -- true
    refused 2 "{fs} in the command" "$tool" 2x1 -- echo '{fs}'
    refused 77 "no launcher" "$tool" 2x1 --mpiexec "$work/none" -- true
}

long_suite() { # its arguments only
    local suite
    suite=$(dirname "$(readlink -f "$0")")/suite.sh
    "$suite" --help | grep -q "gluster" || fail "no help of the long suite"
    "$suite" --help | grep -q "topology" || fail "no topology in the help of the long suite"
    refused 2 "--bin-mpich needs a value" "$suite" --bin-mpich
    refused 2 "--aggregators many: expected" "$suite" --aggregators many
    refused 2 "floppy: expected links" "$suite" --json "$work/json" floppy
    refused 2 "--reps needs a value" "$suite" --reps
    refused 2 "--reps 0: expected" "$suite" --reps 0
    refused 2 "there is no tapioca-bench" "$suite" --json "$work/json" --bin "$work" links
}

not_permitted() { # says so where unshare fails or a package is missing
    mkdir "$work/bin"
    printf '#!/bin/sh\necho "unshare: unshare failed: Operation not permitted" >&2\nexit 1\n' >"$work/bin/unshare"
    chmod +x "$work/bin/unshare"
    refused 77 "namespaces are not permitted here: unshare: .*not permitted" env PATH="$work/bin:$PATH" "$tool" 2x1 "${mpi[@]}" -- true
    rm "$work/bin/unshare"
    local name
    for name in bash env readlink dirname id cat true unshare nsenter setpriv mountpoint mount ip tc timeout; do
        ln -s "$(type -P $name)" "$work/bin/$name"
    done
    local words="glusterd is not installed: apt-get install glusterfs-server"
    [ "$(id -u)" -eq 0 ] || words="only for root"
    refused 77 "$words" env PATH="$work/bin" "$tool" 4x1 --fs gluster -- true
    rm "$work/bin/tc"
    refused 77 "tc is not installed: apt-get install iproute2" env PATH="$work/bin" "$tool" 2x1 -- true
}

exit_status() {
    local status=0
    box 2x1 -- sh -c 'exit 5' >"$work/out" 2>&1 || status=$?
    [ $status -eq 5 ] || fail "exit status $status, not 5"
    status=0
    box 2x1 -- sh -c 'kill -SEGV $$' >"$work/out" 2>&1 || status=$?
    [ $status -gt 1 ] || fail "exit status $status after a crash"
    status=0
    box 2x1 --timeout 1 -- sleep 600 >"$work/out" 2>&1 || status=$?
    [ $status -eq 124 ] || fail "exit status $status, not 124, after --timeout"
    grep -q "ended after --timeout 1 s" "$work/out" || fail "no word of the timeout"
}

preloading() { # what a program asks for is loaded, and under MPICH what the hosts need as well
    local shim=''
    [[ " ${mpi[*]} " != *" mpich "* ]] || shim='/.*mpich_shim.so:'
    # shellcheck disable=SC2016
    box 2x1 -- env LD_PRELOAD=libm.so.6 sh -c 'echo "preload $LD_PRELOAD"' >"$work/out" 2>&1 || fail "env LD_PRELOAD"
    [ "$(grep -c "^preload ${shim}libm.so.6$" "$work/out")" = 2 ] || fail "the preloaded libraries"
    # shellcheck disable=SC2016
    [ -z "$shim" ] || LD_PRELOAD=libm.so.6 box 2x1 -- sh -c 'echo "preload $LD_PRELOAD"' >"$work/out" 2>&1 || fail "LD_PRELOAD"
    [ "$(grep -c "^preload ${shim}libm.so.6$" "$work/out")" = 2 ] || fail "the preloaded libraries of the launcher"
}

places() { # ssd, /dev/shm and processes are each host's own; the shared directory is everybody's
    mkdir "$work/shared"
    # shellcheck disable=SC2016
    box 3x1 --ssd 8m --shared "$work/shared" -- sh -c '
        me=$(hostname)
        for place in {ssd} /dev/shm {shared} "$TMPDIR"; do : >"$place/seen-$me"; done
        until [ "$(ls {shared} | wc -l)" -ge 3 ]; do sleep 0.05; done
        echo "$me ssd $(ls {ssd} | xargs)"
        echo "$me shm $(ls /dev/shm | grep seen | xargs)"
        echo "$me tmp $(ls "$TMPDIR" | grep seen | xargs)"
        echo "$me size $(df -k --output=size {ssd} | tail -n 1 | xargs)"
        echo "$me first $(cat /proc/1/comm)"
        echo "$me env $CLUSTER_SHARED $CLUSTER_SSD $CLUSTER_HOSTS ${CLUSTER_FS:-none}"' >"$work/out" 2>&1 || fail "places"
    local me
    for me in n0 n1 n2; do
        grep -q "^$me ssd seen-$me$" "$work/out" || fail "the SSD of $me is not its own"
        grep -q "^$me shm seen-$me$" "$work/out" || fail "/dev/shm of $me is not its own"
        grep -q "^$me tmp seen-$me$" "$work/out" || fail "TMPDIR of $me is not its own"
        grep -q "^$me size 8192$" "$work/out" || fail "the SSD of $me has not the size asked for"
        grep -q "^$me first sleep$" "$work/out" || fail "$me sees processes that are not its own"
        grep -q "^$me env /run/cluster/shared /run/cluster/ssd n0,n1,n2 none$" "$work/out" || fail "the environment of $me"
        [ -e "$work/shared/seen-$me" ] || fail "what $me wrote is not in the shared directory"
    done
}

platform() { # every host sees the description of all
    box 3x2 --switches 2 --link 1gbit --trunk 200mbit --ssd 8m -- sh -c 'cat {platform} | sed "s/^/$(hostname) /"; echo "{platform} $CLUSTER_PLATFORM"' \
        >"$work/out" 2>&1 || fail "platform"
    local line me
    while read -r line; do
        for me in n0 n1 n2; do
            [ "$(grep -cFx "$me $line" "$work/out")" = 2 ] || fail "not '$line' on both ranks of $me"
        done
    done <<'END'
hosts = "n[0-2]"
kind = "fat_tree"
switches = [["n0", "n1"], ["n2"]]
bandwidth = "1Gbit/s"
bandwidth = "200Mbit/s"
place = "/run/cluster/ssd"
capacity = "8MiB"
END
    [ "$(grep -cFx "/run/cluster/platform.toml /run/cluster/platform.toml" "$work/out")" = 6 ] || fail "the place of the platform"
    box 2x1 --link none -- cat '{platform}' >"$work/out" 2>&1 || fail "platform of one switch"
    grep -q '^kind = "flat"$' "$work/out" && ! grep -q trunk "$work/out" || fail "one switch is not flat"
}

trunk() { # 10 MB are sent and 10 MB put from the first host to the last
    CLUSTER_TEST_MB_S=25 box 3x1 --switches 3 --trunk 200mbit -- "$nodes_test" --gtest_filter='*NoWayAround*' \
        >"$work/out" 2>&1 || fail "trunk"
    local into_2 into_1
    into_1=$(sed -n 's/.*trunk sw0->sw1: \([0-9]*\) bytes.*/\1/p' "$work/out")
    into_2=$(sed -n 's/.*trunk sw0->sw2: \([0-9]*\) bytes, [0-9.]* MB\/s.*/\1/p' "$work/out")
    [ "${into_2:-0}" -gt 20000000 ] && [ "$into_2" -lt 23000000 ] || fail "$into_2 bytes into the last switch, not about 20 MB"
    [ "${into_1:-9999999}" -lt 2000000 ] || fail "$into_1 bytes into the second switch, where nobody sent"
}

left_behind() { # what is still there of a run with this mark
    local process
    for process in /proc/[0-9]*; do
        if [ "$process" != "/proc/$BASHPID" ] && [ "$process" != "/proc/$$" ] &&
            tr '\0' ' ' 2>/dev/null <"$process/cmdline" | grep -q -- "$mark"; then
            echo "process ${process#/proc/}"
        elif [ -s "$work/net" ] && [ "$(readlink "$process/ns/net")" = "$(tail -n 1 "$work/net")" ]; then
            echo "network namespace of process ${process#/proc/}"
        fi
    done 2>/dev/null
    cmp -s "$work/mounts" /proc/self/mounts || diff "$work/mounts" /proc/self/mounts || true
    find "$work/tmp" -mindepth 1
}

ended_by() { # SIGNAL STATUS: the script gets the signal while ranks run; soon afterwards all must be gone
    local status=0 job left
    cat /proc/self/mounts >"$work/mounts"
    rm -rf "$work/net" "$work/tmp"
    mkdir "$work/tmp"
    # A shell starts background jobs with SIGINT ignored.
    TMPDIR=$work/tmp env --default-signal=INT "$tool" 2x2 --switches 2 "${mpi[@]}" --timeout 60 -- \
        sh -c 'readlink /proc/self/ns/net >>"$1"; exec sleep 600' "$mark" "$work/net" >"$work/out" 2>&1 </dev/null &
    job=$!
    for _ in $(seq 200); do
        [ "$(wc -l 2>/dev/null <"$work/net")" = 4 ] && break
        sleep 0.05
    done
    [ "$(sort -u "$work/net" | wc -l)" = 2 ] || fail "the ranks did not start on two hosts"
    [ -n "$(left_behind)" ] || fail "the running job was not seen"
    kill -"$1" $job
    wait $job || status=$?
    [ $status -eq "$2" ] || fail "exit status $status, not $2, after SIG$1"
    for _ in $(seq 50); do # the system takes a moment for it, and another test may have something mounted just now
        left=$(left_behind)
        [ -n "$left" ] || return 0
        sleep 0.1
    done
    fail "left behind after SIG$1: $left"
}

bad_arguments
long_suite
not_permitted
status=0
box 2x1 -- true >"$work/out" 2>&1 || status=$?
[ $status -ne 77 ] || { cat "$work/out"; exit 77; }
[ $status -eq 0 ] || fail "exit status $status of true"
exit_status
preloading
places
platform
trunk
ended_by INT 130
ended_by TERM 143
ended_by KILL 137
echo "command_test: all as expected"
