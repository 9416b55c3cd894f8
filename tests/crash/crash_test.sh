#!/usr/bin/env bash
# crash_test.sh BIN KILL_AT FORGET LAUNCHER...: jobs with staged files and with sets of subfiles, declared and of MPI-IO,
# are killed at random moments and recovered; the files must have all that calls had written when they returned.
# Sometimes the machine stops, too: what was not synced is taken away from the file, its subfiles, its marker and its
# logs. CRASHES=200 makes more of it, SEED=n repeats one, KINDS="dropin loss" chooses: declared, dropin, subfiled,
# staged-subfiled, dropin-subfiled, dropin-staged-subfiled; loss, and each of the others with -loss behind it; target,
# target-drain, dropin-target, dropin-target-drain, whose data stays in directories of pretended nodes and is drained.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../support/jobs.sh"
bin=$1 kill_at=$2 forget_library=$3
launcher=("${@:4}")
dropin=$(ls "$bin"/../lib*/libtapioca_mpiio.so 2>/dev/null | head -n 1 || true)
kinds=(${KINDS:-declared declared loss subfiled staged-subfiled subfiled-loss staged-subfiled-loss
    target target-drain ${dropin:+dropin dropin dropin-loss dropin-subfiled dropin-subfiled-loss dropin-target}})
lanes=${LANES:-6} crashes=${CRASHES:-12}
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-crash.XXXXXX")
trap 'forget; rm -rf "$work"' EXIT
unset TAPIOCA_STAGE TAPIOCA_STAGE_MAPPING TAPIOCA_TARGET
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
    # A rank that is killed while MPI starts may leave a launcher that waits for ever.
    [ "$1" = all_started ] && [ "$way" = call ] || fail "waited too long: $1"
    kill -KILL $job 2>/dev/null || true
    note never_started
}

run_and_kill() {
    local all names=()
    rm -rf d kept && mkdir d kept
    keep_set
    case $kind in *loss) names+=("$forget_library") ;; esac
    case $kind in dropin*) names+=("$dropin") ;; esac
    export CRASH_KIND=$kind FORGET_ROOT=$PWD/ FORGET_KEPT=$PWD/kept
    case $way in
    call) # before a call that changes a file, on one rank
        export KILL_AT=$((1 + RANDOM % 60)) KILL_RANK=$((RANDOM % ranks))
        names+=("$kill_at") ;;
    esac
    "${launcher[@]}" -n "$ranks" \
        sh -c "$preloaded" "$(IFS=:; echo "${names[*]-}")" "$bin/crash_worker" "$seed" "$PWD/file" "$PWD/stage" "$PWD/d" >out 2>&1 </dev/null &
    job=$!
    unset KILL_AT KILL_RANK
    wait_until all_started
    case $way in
    one) nap 0 120; all=($(pids)); kill -KILL "${all[RANDOM % ${#all[@]}]}" 2>/dev/null || true ;;
    all) nap 0 120; kill -KILL $(pids) 2>/dev/null || true ;;
    call) wait_or_kill ;;
    esac
    if wait_for_launcher $job; then note ended; else note kills; note "kills_$kind"; fi
    ! grep -q "terminate called" out || fail "a call failed"
    wait_until none_left
}

# The machine stops: what was not synced is gone, in part or all of it.
lose() {
    local lost
    lost=$("$bin/crash_lose" "$seed" kept "$PWD/file" before "$PWD/file" "$PWD"/file.tapioca* "$PWD/stage" "$PWD/file.subfiles") || fail "losing"
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
    local before had_logs=
    [ ! -e file.tapioca ] || had_logs=1
    before=$(cksum file file.tapioca stage/*/* file.subfiles/* 2>/dev/null || true)
    if "${launcher[@]}" -n 2 "$bin/crash_worker" open file >out 2>&1; then # all of it was flushed
        [ ! -e file.tapioca ] && is_complete || fail "opened before it was recovered"
        note cleared
        return 0
    fi
    local verb=subfile
    [ ! -e file.tapioca ] || verb=log
    grep -q "^1 .*tapioca $verb recover" out || fail "refused for another reason"
    # Logs that were flushed as a whole are removed, also if the set is still to be completed.
    [ -n "$had_logs" ] && [ ! -e file.tapioca ] || [ "$before" = "$(cksum file file.tapioca stage/*/* file.subfiles/* 2>/dev/null || true)" ] || fail "touched by an open that was refused"
    note refused
}

# A recovery that does not come to its end, by one process or by several.
interrupted() {
    local job
    case $((RANDOM % 3)) in
    0) ! { KILL_AT=$((1 + RANDOM % 12)) sh -c "$preloaded" "$kill_at" "$bin/tapioca-recover" "${how[@]}" file >>log.out 2>&1; } 2>/dev/null || return 0
        note recoveries_killed ;;
    1) ! { KILL_AT=$((1 + RANDOM % 12)) KILL_RANK=$((RANDOM % 2)) with_killed_rank "${launcher[@]}" -n $((2 + RANDOM % 2)) \
            sh -c "$preloaded" "$kill_at" "$bin/tapioca-recover" "${how[@]}" file >>log.out 2>&1; } 2>/dev/null || return 0
        note recoveries_killed ;;
    *) "$bin/tapioca-recover" "${how[@]}" file >>log.out 2>&1 &
        job=$!
        nap 200 250
        kill -KILL $job 2>/dev/null && note recoveries_killed || true
        wait $job 2>/dev/null || true ;;
    esac
}

# Sets of subfiles.
is_set() { [ -e file ] && [ "$(stat -c %s file)" -eq 1013 ] && head -c 100 file | grep -qa "TAPIOCA subfile set"; }
# Or no set at all. Subfiles without a chunk may be left until the set is written again.
is_complete() { ! is_set || ! "$bin/tapioca" subfile verify file 2>&1 | tee -a log.out | grep -q -e ^interrupted -e ^damaged; }
make_set() { # of the plain file, or leave it to the job
    if is_set && grep -qa "^tier: " file; then forget_set; cp -p before file; fi # that of an earlier round
    is_set || [ ! -s file ] || "$bin/tapioca" subfile split --subfiles $((1 + RANDOM % 3)) file >log.out 2>&1 || fail "splitting"
}
keep_set() { # what was there when the job began is durable
    local name
    for name in file file.subfiles/*; do
        [ ! -f "$name" ] || cp -p "$name" "kept/$(stat -c %i "$name")"
    done
}
killed() { # NUMBER PROGRAM...: before one of so many calls that change something; true if it was
    ! { KILL_AT=$((1 + RANDOM % $1)) sh -c "$preloaded" "$kill_at" "${@:2}" >>log.out 2>&1; } 2>/dev/null
}
complete_set() {
    is_set || return 0
    while chance 2; do ! killed 10 "$bin/tapioca" subfile recover file || note completions_killed; done
    "$bin/tapioca" subfile recover file >>log.out 2>&1 || return 1
    note completed
    is_complete || fail "the set is not complete"
}
# Makes the file a plain one, or a plain copy of the set.
join_set() {
    rm -f plain
    is_set || { # killed when there was no stub yet, or no longer
        rm -rf file.subfiles
        [ -e file ] || : >file
        cp -p file plain
        return 0
    }
    if chance 2; then
        "$bin/tapioca-join" -o plain file >>log.out 2>&1 || fail "joining a copy"
        return 0
    fi
    while chance 2; do ! killed 12 "$bin/tapioca-join" file || note joins_killed; done
    if chance 2; then # killed when it was at its end, the file is plain
        "$bin/tapioca-join" file >>log.out 2>&1 || grep -q "is not a set of subfiles" log.out || fail "joining"
    else
        "${launcher[@]}" -n $((1 + RANDOM % 3)) "$bin/tapioca-join" file >>log.out 2>&1 || grep -q "is not a set of subfiles" log.out || fail "joining"
    fi
    [ ! -e file.joining ] && [ ! -e file.joining.done ] && [ ! -e file.subfiles ] || fail "a join has left something"
    note joined
    cp -p file plain
}
forget_set() { rm -rf file.subfiles file.joining* node?/*; : >file; }

# Sets whose data stays on the nodes, each of which has a directory.
on_target() { [[ $kind == *target* ]]; }
places() { find node? -mindepth 1 -maxdepth 1 | wc -l; }
fill_set() { # with what the file has, on the tier; or leave it to the job to make the set
    forget_set
    if [ -s before ] && chance 2; then
        CRASH_KIND=$kind "${launcher[@]}" -n "$ranks" "$bin/crash_worker" fill "$seed" "$PWD/file" "$PWD/before" >out 2>&1 || fail "filling"
        note filled
    else
        : >before
    fi
}
nodes_with_data() {
    local node last=1
    for node in 0 1 2 3; do [ -z "$(ls "node$node")" ] || last=$((node + 1)); done
    echo $last
}
read_by_nodes() { # TO: with a rank on each node that has data, and sometimes on more
    local readers
    readers=$(nodes_with_data)
    ! chance 4 || readers=4
    rm -f "$1"
    "${launcher[@]}" -n "$readers" "$bin/crash_worker" read "$PWD/file" "$PWD/$1" >out 2>&1 || fail "reading by $readers nodes"
    note read_by_nodes
}
killed_drain() { # NODE: true if it was killed
    ! { (cd "node$1" && KILL_AT=$((1 + RANDOM % 30)) sh -c "$preloaded" "$kill_at" "$bin/tapioca" target drain ../file >>../log.out 2>&1); } 2>/dev/null
}
# Brings all data to the directory. These nodes are one host, so each says that it misses what the others have.
drain_set() {
    local node
    for node in 0 1 2 3; do
        while chance 2; do ! killed_drain "$node" || note drains_killed; done
    done
    if chance 2; then
        read_by_nodes again
        cmp -s seen again || fail "other bytes when a part of them is drained"
    fi
    for node in 3 1 0 2; do
        (cd "node$node" && "$bin/tapioca" target drain ../file >../drain.out 2>&1) || grep -q "are missing, though they were written here" drain.out ||
            { cat drain.out >>log.out; fail "draining on node $node"; }
    done
    "$bin/tapioca" target drain file >drain.out 2>&1 && grep -q "everything is in its directory" drain.out || { cat drain.out >>log.out; fail "not everything is drained"; }
    if ls file.subfiles/draining.* >>log.out 2>/dev/null; then fail "copies are left"; fi
    note drained
}
# Nothing is left on the tiers; what was made for a file that came to nothing, or was replaced, goes with a command.
clear_places() {
    local node
    [ "$(places)" -ne 0 ] || return 0
    touch -d '2 minutes ago' node?/tapioca-* # what is younger may be somebody's who is just making it
    for node in 0 1 2 3; do (cd "node$node" && "$bin/tapioca" target drop --gone ssd:/proc/self/cwd >>../log.out 2>&1) || fail "dropping what is gone"; done
    [ "$(places)" -eq 0 ] || fail "places are left: $(ls -R node?)"
    note cleared_places
}
read_and_drain() {
    if is_set; then
        read_by_nodes seen
        drain_set
    fi
    clear_places
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
    grep -q -e --force log.out || fail "recovering"
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
recover_all() { # the set, the logs and the set
    : >log.out
    case $kind in *subfiled* | *target*) ;; *) recover; return ;; esac
    if "$bin/crash_check" "$seed" "$ranks" - before d && [[ $kind == *loss ]]; then
        note unpromised
        rm -rf file.tapioca*
        forget_set
        return 0
    fi
    [ -e file.tapioca ] && chance 2 || complete_set || fail "completing the set"
    [ ! -e file.tapioca ] || recover
    complete_set || fail "completing the set after the recovery of the logs"
}

round() {
    seed=$1 RANDOM=$1
    ranks=$((1 + seed % 4))
    ways=(one all call)
    way=${ways[RANDOM % 3]}
    kind=${kinds[seed % ${#kinds[@]}]}
    # One rank alone makes a plain file in place of a set, and what a lost machine leaves of that is not looked at.
    case $kind in dropin*subfiled-loss) [ $ranks -gt 1 ] || ranks=2 ;; esac
    cp -p plain before
    case $kind in
    *subfiled*) make_set ;;
    *target*) fill_set ;;
    *) ! is_set || { forget_set; cp -p plain file; } ;;
    esac
    run_and_kill
    case $kind in *loss) lose ;; esac
    pids >>processes
    cat file.tapioca >>markers 2>/dev/null || true
    if [ "${kind%loss}" = "$kind" ] && { [ -e file.tapioca ] || ! is_complete; } && chance 8; then refused; fi
    recover_all
    ! on_target || read_and_drain
    join_set
    ! on_target || [ ! -e seen ] || cmp -s seen plain || fail "other bytes when all is drained"
    rm -f seen again
    answer=$("$bin/crash_check" "$seed" "$ranks" plain before d) || fail "$kind: $answer"
    note bytes "${answer% *}"
    note open "${answer#* }"
    rm -rf stage/*
    rm -f file.tapioca.rank*
    if [ "$(stat -c %s plain)" -gt 4000000 ]; then forget_set; : >plain; fi
}

lane() { # NUMBER: its part of the rounds, on one file
    local i
    mkdir -p "$work/$1/stage" "$work/$1"/node{0,1,2,3}
    cd "$work/$1"
    begin_naps nobody
    : >file
    : >plain
    for ((i = $1; i < crashes; i += lanes)); do
        [ ! -e ../failed ] || exit 1
        round "$((first + i))"
    done
}

kinds_killed() { # each with its number
    awk '$1 ~ /^kills_/ { sum[substr($1, 7)] += $2 } END { for (kind in sum) printf "%s%s %d", sep++ ? ", " : "", kind, sum[kind] }' "$work"/*/notes
}
total() { awk -v name="$1" '$1 == name { sum += $2 } END { print sum + 0 }' "$work"/*/notes; }

first=${SEED:-$((RANDOM * 32768 + RANDOM))}
[ -z "${SEED:-}" ] || crashes=${CRASHES:-1}
for ((n = 0; n < lanes; ++n)); do lane $n & running[n]=$!; done
status=0
for ((n = 0; n < lanes; ++n)); do wait "${running[n]}" || status=1; done
[ $status -eq 0 ] || echo "crash_test: the first seed was $first; up to the failure:" >&2
echo "crash_test: seeds from $first on; $(total kills) kills ($(kinds_killed)), $(total ended) jobs that came to their end," \
    "$(total lost) bytes lost in $(total losses) machines that stopped, $(total partial) recoveries in part, $(total forced) forced," \
    "$(total refused) refused openings; $(total recovered) recoveries, $(total recoveries_killed) of them killed first;" \
    "$(total completed) sets completed, $(total completions_killed) attempts killed; $(total joined) joined, $(total joins_killed) attempts killed;" \
    "$(total filled) sets on a tier to begin with, $(total read_by_nodes) read by nodes, $(total drained) drained, $(total drains_killed) drains killed," \
    "$(total cleared_places) times places of no file;" \
    "$(total bytes) bytes compared, of which $(total open) could be one of several"
exit $status
