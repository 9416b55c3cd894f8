#!/usr/bin/env bash
# crash_test.sh BIN KILL_AT FORGET LAUNCHER...: jobs with staged files, declared and of MPI-IO, are killed at random
# moments and recovered; the files must have all that calls had written when they returned. Sometimes the machine stops,
# too: what was not synced is taken away from the file, its marker and its logs. CRASHES=200 makes more of it, SEED=n
# repeats one, KINDS="dropin loss" chooses (declared, dropin, loss, dropin-loss).
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../support/jobs.sh"
bin=$1 kill_at=$2 forget_library=$3
launcher=("${@:4}")
dropin=$(ls "$bin"/../lib*/libtapioca_mpiio.so 2>/dev/null | head -n 1 || true)
kinds=(${KINDS:-declared declared loss ${dropin:+dropin dropin dropin-loss}})
lanes=${LANES:-6} crashes=${CRASHES:-12}
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-crash.XXXXXX")
trap 'forget; rm -rf "$work"' EXIT
unset TAPIOCA_STAGE TAPIOCA_STAGE_MAPPING
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0

# What jobs that were killed while they opened or closed, and recoveries, left in memory.
forget() {
    local left
    while read -r left; do rm -rf "$left"; done < <(
        sed -n 's/.*"directory": "\(.*\)".*/\1/p' "$work"/?/markers 2>/dev/null
        grep -laF "$work/" /dev/shm/tapioca-*/*.meta 2>/dev/null | xargs -r dirname
        sed 's/.*/\/dev\/shm\/tapioca-&-/' "$work"/?/processes 2>/dev/null | while read -r left; do ls -d "$left"*; done 2>/dev/null)
}
fail() {
    echo "crash_test: seed $seed, $ranks ranks, $kind, $way: $*" >&2
    tail -n 20 out log.out >&2 2>/dev/null || true
    cp -a . "$work/failed-$seed" 2>/dev/null || true
    [ -z "${KEEP:-}" ] || cp -a . "$KEEP"
    touch ../failed
    exit 1
}
note() { echo "$1 ${2:-1}" >>notes; }
nap() { nap_ms $(($1 + RANDOM % $2)); } # FROM RANGE: milliseconds
chance() { ((RANDOM % $1 == 0)); }        # one in so many

pids() { cat d/pid.? 2>/dev/null || true; }
all_started() { local files=(d/pid.?); [ -e "${files[0]}" ] && [ ${#files[@]} -eq "$ranks" ]; }
none_left() { # of the ranks
    local pid
    for pid in $(pids); do is_gone "$pid" || return 1; done
}
wait_until() { # CONDITION
    local i
    for ((i = 0; i < 2000; ++i)); do
        "$1" && return 0
        [ -e "/proc/$job" ] || [ "$1" = none_left ] || return 0
        nap_ms 10
    done
    fail "waited too long: $1"
}

run_and_kill() {
    local all names=()
    rm -rf d kept && mkdir d kept
    case $kind in *loss) names+=("$forget_library") ;; esac
    case $kind in dropin*) names+=("$dropin") ;; esac
    export CRASH_KIND=$kind FORGET_ROOT=$PWD/ FORGET_KEPT=$PWD/kept
    case $way in
    call) # before a call that changes a file, on one rank
        export KILL_AT=$((1 + RANDOM % 60)) KILL_RANK=$((RANDOM % ranks))
        names+=("$kill_at") ;;
    esac
    "${launcher[@]}" -n "$ranks" \
        sh -c "$preloaded" "$(IFS=:; echo "${names[*]-}")" "$bin/crash_worker" "$seed" "$PWD/file" "$PWD/stage" d >out 2>&1 </dev/null &
    job=$!
    unset KILL_AT KILL_RANK
    wait_until all_started
    case $way in
    one) nap 0 120; all=($(pids)); kill -KILL "${all[RANDOM % ${#all[@]}]}" 2>/dev/null || true ;;
    all) nap 0 120; kill -KILL $(pids) 2>/dev/null || true ;;
    call) wait_or_kill ;;
    esac
    if wait $job; then note ended; else note kills; note "kills_$kind"; fi
    ! grep -q "terminate called" out || fail "a call failed"
    wait_until none_left
}

# The machine stops: what was not synced is gone, in part or all of it.
lose() {
    local lost
    lost=$("$bin/crash_lose" "$seed" kept "$PWD/file" before "$PWD/file" "$PWD"/file.tapioca* "$PWD/stage") || fail "losing"
    note lost "$lost"
    note losses
}

wait_or_kill() { # a rank that has not come to the call, or waits to be killed
    local i
    for ((i = 0; i < 40; ++i)); do
        [ -e "/proc/$job" ] || return 0
        nap_ms 10
    done
    kill -KILL $(pids) 2>/dev/null || true
}

refused() { # a file that was not closed is not opened, and nothing is touched
    local before
    before=$(cksum file file.tapioca stage/*/* 2>/dev/null || true)
    if "${launcher[@]}" -n 2 "$bin/crash_worker" open file >out 2>&1; then # all of it was flushed
        [ ! -e file.tapioca ] || fail "opened before it was recovered"
        note cleared
        return 0
    fi
    grep -q "^1 .*tapioca log recover" out || fail "refused for another reason"
    [ "$before" = "$(cksum file file.tapioca stage/*/* 2>/dev/null || true)" ] || fail "touched by an open that was refused"
    note refused
}

# A recovery that does not come to its end, by one process or by several.
interrupted() {
    local job
    case $((RANDOM % 3)) in
    0) ! { KILL_AT=$((1 + RANDOM % 12)) sh -c "$preloaded" "$kill_at" "$bin/tapioca-recover" "${how[@]}" file >>log.out 2>&1; } 2>/dev/null || return 0
        note recoveries_killed ;;
    1) ! { KILL_AT=$((1 + RANDOM % 12)) KILL_RANK=$((RANDOM % 2)) "${launcher[@]}" -n $((2 + RANDOM % 2)) \
            sh -c "$preloaded" "$kill_at" "$bin/tapioca-recover" "${how[@]}" file >>log.out 2>&1; } 2>/dev/null || return 0
        note recoveries_killed ;;
    *) "$bin/tapioca-recover" "${how[@]}" file >>log.out 2>&1 &
        job=$!
        nap 200 250
        kill -KILL $job 2>/dev/null && note recoveries_killed || true
        wait $job 2>/dev/null || true ;;
    esac
}

# After the loss of a machine some things that were not promised may be damaged, and the file's time of last change may
# be later than what is known of it.
consent() {
    how=()
    case $kind in *loss) ;; *) return 0 ;; esac
    [ -e file.tapioca ] && ! "$bin/tapioca" log verify file >log.out 2>&1 || return 0
    if grep -q "not a marker of this version" log.out; then # what is in the file is all that can be promised then
        "$bin/tapioca" log discard --yes file >>log.out || fail "discarding"
        note discarded
    else
        how=(--partial)
        note partial
    fi
}
finally() { # COMMAND...
    "$@" "${how[@]}" file >>log.out 2>&1 && return 0
    case $kind in *loss) ;; *) fail "recovering" ;; esac
    tail -n 1 log.out | grep -q -e --force || fail "recovering"
    note forced
    "$@" "${how[@]}" --force file >>log.out 2>&1 || fail "recovering by force"
}

recover() {
    : >log.out
    consent
    case $((RANDOM % 4)) in
    0) finally "${launcher[@]}" -n $((1 + RANDOM % 4)) "$bin/tapioca" log recover ;;
    1 | 2) interrupted
        ! chance 3 || interrupted
        if chance 2; then
            finally "$bin/tapioca-recover"
        else
            finally "${launcher[@]}" -n $((1 + RANDOM % 4)) "$bin/tapioca-recover"
        fi ;;
    *) finally "$bin/tapioca" log recover
        ! chance 3 || finally "$bin/tapioca-recover" ;;
    esac
    note recovered
    [ ! -e file.tapioca ] || fail "the marker is left"
}

round() {
    seed=$1 RANDOM=$1
    ranks=$((1 + seed % 4))
    ways=(one all call)
    way=${ways[RANDOM % 3]}
    kind=${kinds[seed % ${#kinds[@]}]}
    cp -p file before
    run_and_kill
    case $kind in *loss) lose ;; esac
    pids >>processes
    cat file.tapioca >>markers 2>/dev/null || true
    if [ "${kind%loss}" = "$kind" ] && [ -e file.tapioca ] && chance 8; then refused; fi
    recover
    answer=$("$bin/crash_check" "$seed" "$ranks" file before d) || fail "$kind: $answer"
    note bytes "${answer% *}"
    note open "${answer#* }"
    rm -rf stage/*
    rm -f file.tapioca.rank*
    if [ "$(stat -c %s file)" -gt 4000000 ]; then : >file; fi
}

lane() { # NUMBER: its part of the rounds, on one file
    local i
    mkdir -p "$work/$1/stage"
    cd "$work/$1"
    begin_naps nobody
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
echo "crash_test: seeds from $first on; $(total kills) kills (declared $(total kills_declared), with the machine" \
    "$(total kills_loss), drop-in $(total kills_dropin), with the machine $(total kills_dropin-loss)), $(total ended) jobs that came to their end," \
    "$(total lost) bytes lost in $(total losses) machines that stopped, $(total partial) recoveries in part, $(total forced) forced," \
    "$(total refused) refused openings; $(total recovered) recoveries, $(total recoveries_killed) of them killed first;" \
    "$(total bytes) bytes compared, of which $(total open) could be one of several"
