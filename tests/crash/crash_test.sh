#!/usr/bin/env bash
# crash_test.sh BIN KILL_AT LAUNCHER...: jobs with staged files are killed at random moments and recovered; the files
# must have all that calls had written when they returned. CRASHES=200 makes more of it, SEED=n repeats one.
set -euo pipefail
bin=$1 kill_at=$2
launcher=("${@:3}")
lanes=${LANES:-6} crashes=${CRASHES:-12}
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-crash.XXXXXX")
trap 'forget; rm -rf "$work"' EXIT
unset TAPIOCA_STAGE TAPIOCA_STAGE_MAPPING
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 KILL_LIBRARY=$kill_at

# What jobs that were killed while they opened or closed, and recoveries, left in memory.
forget() {
    local left
    while read -r left; do rm -rf "$left"; done < <(
        sed -n 's/.*"directory": "\(.*\)".*/\1/p' "$work"/?/markers 2>/dev/null
        grep -laF "$work/" /dev/shm/tapioca-*/*.meta 2>/dev/null | xargs -r dirname
        sed 's/.*/\/dev\/shm\/tapioca-&-/' "$work"/?/processes 2>/dev/null | while read -r left; do ls -d "$left"*; done 2>/dev/null)
}
fail() {
    echo "crash_test: seed $seed, $ranks ranks, $way: $*" >&2
    tail -n 20 out log.out >&2 2>/dev/null || true
    cp -a . "$work/failed-$seed" 2>/dev/null || true
    [ -z "${KEEP:-}" ] || cp -a . "$KEEP"
    touch ../failed
    exit 1
}
note() { echo "$1 ${2:-1}" >>notes; }
sleep_ms() { local s; printf -v s '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); read -rt "$s" _ <&9 || true; } # no process
nap() { sleep_ms $(($1 + RANDOM % $2)); } # FROM RANGE: milliseconds
chance() { ((RANDOM % $1 == 0)); }        # one in so many

# With the library that ends a process at a call. MPICH preloads one of its own.
preloaded='LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$KILL_LIBRARY" exec "$@"'

pids() { cat d/pid.? 2>/dev/null || true; }
all_started() { local files=(d/pid.?); [ -e "${files[0]}" ] && [ ${#files[@]} -eq "$ranks" ]; }
none_left() { # of the ranks
    local pid
    for pid in $(pids); do [ ! -e "/proc/$pid/stat" ] || grep -q ') Z' "/proc/$pid/stat" 2>/dev/null || return 1; done
}
wait_until() { # CONDITION
    local i
    for ((i = 0; i < 2000; ++i)); do
        "$1" && return 0
        [ -e "/proc/$job" ] || [ "$1" = none_left ] || return 0
        sleep_ms 10
    done
    fail "waited too long: $1"
}

run_and_kill() {
    local all
    rm -rf d && mkdir d
    case $way in
    call) # before a call that changes a file, on one rank
        KILL_AT=$((1 + RANDOM % 60)) KILL_RANK=$((RANDOM % ranks)) "${launcher[@]}" -n "$ranks" \
            sh -c "$preloaded" sh "$bin/crash_worker" "$seed" "$PWD/file" "$PWD/stage" d >out 2>&1 </dev/null & ;;
    *) "${launcher[@]}" -n "$ranks" "$bin/crash_worker" "$seed" "$PWD/file" "$PWD/stage" d >out 2>&1 </dev/null & ;;
    esac
    job=$!
    wait_until all_started
    case $way in
    one) nap 0 120; all=($(pids)); kill -KILL "${all[RANDOM % ${#all[@]}]}" 2>/dev/null || true ;;
    all) nap 0 120; kill -KILL $(pids) 2>/dev/null || true ;;
    call) wait_or_kill ;;
    esac
    if wait $job; then note ended; else note kills; fi
    ! grep -q "terminate called" out || fail "a call failed"
    wait_until none_left
}

wait_or_kill() { # a rank that has not come to the call, or waits to be killed
    local i
    for ((i = 0; i < 40; ++i)); do
        [ -e "/proc/$job" ] || return 0
        sleep_ms 10
    done
    kill -KILL $(pids) 2>/dev/null || true
}

refused() { # a file that was not closed is not opened, and nothing is touched
    local before
    before=$(cksum file file.tapioca stage/*/* 2>/dev/null || true)
    ! "${launcher[@]}" -n 2 "$bin/crash_worker" open file >out 2>&1 || fail "opened before it was recovered"
    grep -q "^1 .*tapioca log recover" out || fail "refused for another reason"
    [ "$before" = "$(cksum file file.tapioca stage/*/* 2>/dev/null || true)" ] || fail "touched by an open that was refused"
    note refused
}

interrupted() { # a recovery that does not come to its end
    local job
    if chance 2; then
        ! { KILL_AT=$((1 + RANDOM % 12)) sh -c "$preloaded" sh "$bin/tapioca-recover" file >>log.out 2>&1; } 2>/dev/null || return 0
        note recoveries_killed
    else
        "$bin/tapioca-recover" file >>log.out 2>&1 &
        job=$!
        nap 200 250
        kill -KILL $job 2>/dev/null && note recoveries_killed || true
        wait $job 2>/dev/null || true
    fi
}

recover() {
    : >log.out
    case $((RANDOM % 4)) in
    0) "${launcher[@]}" -n $((1 + RANDOM % 4)) "$bin/tapioca" log recover file >>log.out 2>&1 || fail "recovering" ;;
    1) interrupted; "$bin/tapioca-recover" file >>log.out 2>&1 || fail "recovering" ;;
    2) "$bin/tapioca" log recover file >>log.out 2>&1 || fail "recovering"
        ! chance 3 || "$bin/tapioca-recover" file >>log.out 2>&1 || fail "recovering again" ;;
    *) "$bin/tapioca-recover" file >>log.out 2>&1 || fail "recovering" ;;
    esac
    note recovered
    [ ! -e file.tapioca ] || fail "the marker is left"
}

round() {
    seed=$1 RANDOM=$1
    ranks=$((1 + seed % 4))
    ways=(one all call)
    way=${ways[RANDOM % 3]}
    cp file before
    run_and_kill
    pids >>processes
    cat file.tapioca >>markers 2>/dev/null || true
    if [ -e file.tapioca ] && chance 8; then refused; fi
    recover
    answer=$("$bin/crash_check" "$seed" "$ranks" file before d) || fail "$answer"
    note bytes "${answer% *}"
    note open "${answer#* }"
    if [ "$(stat -c %s file)" -gt 4000000 ]; then : >file; fi
}

lane() { # NUMBER: its part of the rounds, on one file
    local i
    mkdir -p "$work/$1/stage"
    cd "$work/$1"
    mkfifo nobody && exec 9<>nobody # where nothing ever comes
    : >file
    for ((i = $1; i < crashes; i += lanes)); do
        [ ! -e ../failed ] || exit 1
        round "$((first + i))"
    done
}

total() { awk -v name="$1" '$1 == name { sum += $2 } END { print sum + 0 }' "$work"/*/notes; }

first=${SEED:-$((RANDOM * 32768 + RANDOM))}
[ -z "${SEED:-}" ] || crashes=${CRASHES:-1}
for ((n = 0; n < lanes; ++n)); do lane $n & running[n]=$!; done
status=0
for ((n = 0; n < lanes; ++n)); do wait "${running[n]}" || status=1; done
[ $status -eq 0 ] || { echo "crash_test: the first seed was $first" >&2; exit 1; }
echo "crash_test: seeds from $first on; $(total kills) kills, $(total ended) jobs that came to their end," \
    "$(total refused) refused openings; $(total recovered) recoveries, $(total recoveries_killed) of them killed first;" \
    "$(total bytes) bytes compared, of which $(total open) could be one of several"
