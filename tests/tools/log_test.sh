#!/usr/bin/env bash
# log_test.sh BIN CMAKE KILL_AT LAUNCHER...: tapioca log from a user's side, on logs of programs that did not close.
set -euo pipefail
verb=log
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/verb.sh"
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../support/jobs.sh"
kill_at=$3
launcher=("${@:4}")
unset TAPIOCA_STAGE TAPIOCA_STAGE_MAPPING
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
host=$(uname -n)

staged() { # RANKS TARGET HOW [SETTING...]
    local ranks=$1 target=$2 how=$3
    shift 3
    rm -f "$target"
    env TAPIOCA_STAGE="ssd:$work/stage" "$@" "${launcher[@]}" -n "$ranks" "$bin/leave_log" "$target" "$how"
}
answered() { # STATUS REGULAR-EXPRESSION ARGUMENTS...
    local wanted=$1 words=$2 status=0
    shift 2
    "$bin/tapioca" log "$@" >"$work/out" 2>&1 </dev/null || status=$?
    [ $status -eq "$wanted" ] || fail "status $status from: tapioca log $*"
    grep -qE -- "$words" "$work/out" || fail "no '$words' from: tapioca log $*"
}
same() { cmp "$1" "$2" >"$work/out" 2>&1 || fail "$3"; }
nothing_left() { [ -z "$(ls -A stage)" ] && ! ls ./*.tapioca* 2>/dev/null || fail "something is left: $(ls -A . stage)"; }
flip() { # FILE BYTE: another value there
    local value
    value=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\$(printf %o $((value ^ 64)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
keep() { rm -rf kept && mkdir kept && cp -a got got.tapioca stage kept; }
put_back() { # the file itself stays the same one
    rm -rf got.tapioca stage && cp -a kept/got.tapioca kept/stage .
    cat kept/got >got && touch -r kept/got got
}

mkdir stage
staged 3 want close
nothing_left

# a job that ended without closing, recovered alone and by jobs of other sizes
for mapping in process node; do
    staged 3 got leave TAPIOCA_STAGE_MAPPING=$mapping
    shown "got .* 3 .* $mapping +unfinished +$host +.*/stage/tapioca-" list got
    shown "unfinished" list . stage
    [ "$(grep -c unfinished out)" -eq "$(ls stage/*/*.meta | wc -l)" ] || fail "a log is listed twice"
    shown '"state": "unfinished"' list --json stage
    shown "sound: .* requests" verify got
    shown 'rank 1, request 2: .* subarray of \[24, 24\] at 3000, .* start \[8, 3\], count \[8, 9\], stride \[1, 2\]' dump got
    shown '"kind": "layout"' dump --json stage
    keep
    status=0
    staged 3 other close >out 2>&1  # others may go on meanwhile
    "${launcher[@]}" -n 2 "$bin/leave_log" "$work/got" close >out 2>&1 || status=$?
    [ $status -ne 0 ] && grep -q "run \`tapioca log recover" out || fail "a file that is not recovered was opened"
    shown "recovered 24 requests" recover got
    same want got "recovered alone: not the same file"
    shown "nothing to recover" recover got
    same want got "recovered twice: not the same file"
    nothing_left
    put_back
    ranks=$([ $mapping = node ] && echo 5 || echo 2)
    "${launcher[@]}" -n "$ranks" "$bin/tapioca" log recover got >out 2>&1 || fail "recovering with $ranks processes"
    [ "$(grep -c 'recovered 24 requests' out)" -eq 1 ] || fail "no answer with $ranks processes"
    same want got "recovered by $ranks processes: not the same file"
    nothing_left
    put_back
    TAPIOCA_STAGE="ssd:$work/stage" TAPIOCA_DEVNULL=1 TAPIOCA_CHECK=1 "$bin/tapioca" log recover got.tapioca >out
    same want got "recovered with settings of a program: not the same file"
    nothing_left
done

# a tier that was full: logs go on beside the target
for ranks in 2 ${LONG:+1}; do
    staged 3 got leave TAPIOCA_STAGE_SIZE=1100K LEAVE_MUCH=3000000 2>out
    ls got.tapioca.rank?.meta >out || fail "no log beside the target"
    shown "sound" verify got
    [ "$(grep -c sound out)" -eq 6 ] || fail "not six logs"
    [ "$("$bin/tapioca" log read got --rank 2 | grep -c "request [0-8]:")" -eq 9 ] || fail "not nine requests"
    mkdir aside && mv got.tapioca.rank2.* aside/
    if "$bin/tapioca" log recover got >out 2>&1; then fail "recovered without a log beside the target"; fi
    grep -q "went on beside the file" out || fail "a log beside the target is gone, and nobody says so"
    mv aside/* . && rmdir aside
    touch got.tapioca.rank1.new.{data,meta} # of a rank that was killed while it made one
    "${launcher[@]}" -n $ranks "$bin/tapioca" log recover got >out 2>&1 || fail "recovering logs beside the target"
    staged 3 more close LEAVE_MUCH=3000000
    same more got "logs beside the target: not the same file"
    nothing_left
    rm more got
done

# over a file that had something else in it, which opening took out
head -c 12345 /dev/zero >got
touch -d '1 hour ago' got
staged 3 got leave
shown "recovered 24 requests" recover got
same want got "recovered over a file that was emptied: not the same file"

# flushed in part
staged 3 got flush
shown "recovered 12 requests" recover got
same want got "recovered after a flush: not the same file"

# flushed as a whole: the next program just opens it
staged 3 got flushed
same want got "flushed, not closed: not the same file"
[ -e got.tapioca ] || fail "no marker"
"${launcher[@]}" -n 2 "$bin/leave_log" "$work/got" close >out 2>&1 || fail "a log of which nothing is missing is in the way"
nothing_left

# killed before calls that change something, all those at the end among them, and run again
staged 2 want close LEAVE_MUCH=3000000
staged 2 got leave LEAVE_MUCH=3000000
keep
KILL_COUNT=$work/count LD_PRELOAD="$kill_at" "$bin/tapioca-recover" got >out
same want got "not killed: not the same file"
calls=$(sort -n count | tail -n 1)
[ "$calls" -gt 10 ] || fail "only $calls calls"
points=(1 $((calls / 2)) $((calls - 6)) $((calls - 4)) $((calls - 2)) "$calls")
[ -z "${LONG:-}" ] || mapfile -t points < <(seq 1 "$calls")
for at in "${points[@]}"; do
    put_back
    { KILL_AT=$at LD_PRELOAD="$kill_at" "$bin/tapioca-recover" got; } >out 2>&1 && fail "not killed at call $at"
    shown "recovered|nothing to recover" recover got
    same want got "killed at call $at: not the same file"
    [ ! -e got.tapioca ] || fail "killed at call $at: the marker is left"
done
rm -rf stage/*

# a job that was killed while it opened the file, before there was a marker: the log is empty, is shown, can be removed, and is removed by
# the next job a while later
cut_off=0
for at in $(seq 1 20); do
    rm -rf got got.tapioca stage/*
    { KILL_AT=$at KILL_RANK=0 TAPIOCA_STAGE="ssd:$work/stage" with_killed_rank "${launcher[@]}" -n 2 sh -c "$preloaded" "$kill_at" "$bin/leave_log" "$work/got" close; } >out 2>&1 && fail "not killed while opening"
    [ ! -e got.tapioca ] || break
    [ -n "$(ls -A stage)" ] || continue
    cut_off=$((cut_off + 1))
    if [ $((at % 2)) -eq 0 ]; then
        shown "no marker|damaged" list stage
        shown "removed . logs; 0 requests" discard --yes stage
    else
        find stage -mindepth 1 -depth -exec touch -d '2 minutes ago' {} +
        staged 2 got close
    fi
    nothing_left
done
[ $cut_off -gt 1 ] || fail "never killed between a log and its marker"
rm -rf got got.tapioca stage/*

# small requests that went to the file at once: a recovery that is killed, and repeated by another number of processes
dropin=$(ls "$bin"/../lib*/libtapioca_mpiio.so 2>/dev/null | head -n 1 || true)
if [ -n "$dropin" ]; then
    through() { # TARGET HOW [again]
        [ $# -eq 3 ] || rm -f "$1"
        TAPIOCA_STAGE="ssd:$work/stage" "${launcher[@]}" -n 2 sh -c "$preloaded" "$dropin" "$bin/leave_log" "$1" "$2" >out 2>&1 || true
    }
    through want through-close
    through got through
    grep -qa TAPIMETA stage/*/rank0.meta || fail "nothing was staged"
    keep
    for at in 2 6 7 ${LONG:+1 3 4 5 8 9 10}; do
        put_back
        KILL_AT=$at with_killed_rank "${launcher[@]}" -n 2 sh -c "$preloaded" "$kill_at" "$bin/tapioca-recover" got >out 2>&1 && fail "not killed at call $at"
        shown "recovered|nothing to recover" recover got
        same want got "killed at call $at of two processes, repeated by one: not the same file"
    done
    rm -rf stage/*
fi

# a file that others have changed since, or have put in its place
staged 3 got leave
keep
changed() { # REGULAR-EXPRESSION: recover refuses and changes nothing; it can be made to
    cp got changed
    answered 1 "$1" recover got
    grep -q "nothing was changed. .*recover --force" out || fail "not said how to force it"
    same got changed "what others wrote was changed"
    local at
    for at in 4 6 8 10 12; do # as soon as it writes
        { KILL_AT=$at LD_PRELOAD="$kill_at" "$bin/tapioca-recover" --force got; } >out 2>&1 && fail "not killed"
        ! grep -q "^[0-9]* [0-9]* r " got.tapioca || break
    done
    shown "recovered 24 requests" recover got # an interrupted one goes on without being forced
}
printf 'newer data' | dd of=got bs=1 conv=notrunc status=none
changed "got: it was changed on 20.*, and has 10 bytes; .* it had 0\\."
put_back
mv got elsewhere && cp -p elsewhere got
changed "another file has its name since"
mv elsewhere got
put_back
touch -d '2001-01-01' got
changed "it was changed on 2001-01-01"
put_back
printf 'newer data' | dd of=got bs=1 conv=notrunc status=none
{ # a marker of version 1 knows nothing of the file
    echo "tapioca stage 1"
    for turn in 1 2; do echo "00000000000000000000 34c96acdcadb1bbb"; done
    tail -n +5 kept/got.tapioca
} >got.tapioca
shown "its marker is of version 1: .* cannot be told" recover got
if [ -n "$dropin" ]; then # the second run of a job that was killed: its data is newer
    through got through
    through got through-close again
    grep -q "tapioca: .*got.tapioca says .*.discard. keeps what this program writes now, and .recover. refuses" out || fail "no right advice for a second run: $(cat out)"
    ! grep -q "tapioca: tapioca" out || fail "said twice who it is"
    answered 1 "a program that went past the log has changed it on 20" recover got
    shown "removed 2 logs" discard --yes got
    staged 3 got leave # and a program without a stage that writes by itself only
    "${launcher[@]}" -n 2 sh -c "$preloaded" "$dropin" "$bin/leave_log" "$work/got" alone >out 2>&1 || fail "writing past the marker: $(cat out)"
    grep -q ".discard. keeps what this program writes now, and .recover. refuses" out || fail "no advice for a program that writes by itself: $(cat out)"
    answered 1 "a program that went past the log has changed it on 20" recover got
    shown "removed 3 logs" discard --yes got
fi
rm -rf stage/* changed

# logs that are missing or damaged, one after the other
staged 3 want close
staged 3 got leave
keep
rank1=$(ls "$PWD"/stage/*/rank1.meta)
data1=${rank1%meta}data
stopped() { # REGULAR-EXPRESSION
    answered 1 "$1" recover got
    grep -q "nothing was changed" out || fail "not said that nothing was changed"
    [ ! -s got ] && [ -e got.tapioca ] || fail "something was changed"
}
rm "$rank1" "$data1"
stopped "^missing: $host: $rank1 \(rank 1\)$"
[ "$(grep -c ^missing out)" -eq 1 ] || fail "not one missing"
answered 1 "^missing: $host: $rank1" verify got
shown "recovered 16 requests .* removed 2 of 3 logs" recover got --partial
put_back
flip "$data1" 4100
stopped "^damaged: $data1: rank 1: entry 0: .* checksum"
answered 1 "^damaged: rank 1: entry 0: .*do not match their checksum" verify "$rank1"
shown "left as it is: $rank1" recover --partial got
[ -e "$rank1" ] || fail "the damaged log was removed"
shown "no marker" list stage
shown "removed 1 logs" discard --yes stage
nothing_left
put_back
flip "$rank1" $((4096 + 40 + 64 + 20))
stopped "^damaged: $rank1: rank 1: entry 1"
shown "recovered 17 requests" recover --partial got
put_back
rm "$data1"
stopped "^damaged: $data1: No such file"
put_back
truncate -s 3000 "$rank1"
stopped "^damaged: $rank1: .*ends too early"
put_back
printf '\002' | dd of="$rank1" bs=1 seek=8 conv=notrunc status=none
stopped "^damaged: $rank1: .* version 2, .* reads version 1"
put_back
chmod 0666 "$rank1"
stopped "^damaged: $rank1: others may write to it"
put_back
cp "${rank1%1.meta}2.meta" "$rank1"
stopped "^damaged: $rank1: is not the log that the marker names"
put_back
mv "$rank1" elsewhere && ln -s "$work/elsewhere" "$rank1"
stopped "^damaged: $rank1: Too many levels of symbolic links"
rm elsewhere
put_back
sed -i 's/"ranks": 3/"ranks": 4/' got.tapioca
answered 1 "got.tapioca: it names 3 of 4 ranks" recover got
put_back
sed -i '$d' got.tapioca
answered 1 "got.tapioca: .*parse error" recover got
shown "removed 0 logs and the marker" discard --yes got
rm -rf stage/*
put_back

# a request's data
"$bin/tapioca" log read got --rank 1 --request 4 --output data
[ "$(stat -c %s data)" -eq 1000 ] && cmp -n 100 -i 0:1000 data want || fail "not the data of the request"
"$bin/tapioca" log read "$rank1" --rank 1 --request 4 | cmp - data || fail "not the same from the file"
answered 1 "rank 1 has no request 99" read got --rank 1 --request 99
[ "$("$bin/tapioca" log read got --rank 2 | wc -l)" -eq 8 ] || fail "not eight requests"
! "$bin/tapioca" log read got --rank 1 --request 0 --output /nope/x >out 2>&1 || fail "wrote to nowhere"

# discarding asks
status=0
echo n | "$bin/tapioca" log discard got >out || status=$?
[ $status -eq 1 ] && grep -q "24 requests are lost" out && [ -e got.tapioca ] || fail "discarded without consent"
refused_dir=$(dirname "$rank1")
answered 1 "belongs to .*/got: use tapioca log discard" discard --yes "$refused_dir"
touch got.tapioca.rank1.new.data got.tapioca.rank2.data
echo y | "$bin/tapioca" log discard got >out || fail "not discarded"
nothing_left
shown "nothing to discard" discard got

# while it is written
mkfifo ready
staged 2 got live >ready &
job=$!
read -r _ <ready
shown " live " list got
"$bin/tapioca" log read --follow got >followed 2>&1 &
follower=$!
answered 1 "has the file open|still running" recover got
answered 1 "a running job" discard --yes got
shown "sound" verify got
sleep 0.3
touch got.go
wait $job
wait $follower || fail "following failed: $(cat followed)"
[ "$(grep -c 'request .: epoch' followed)" -ge 8 ] || fail "followed: $(cat followed)"
rm got.go
nothing_left

# bad input
refused "no such\|nothing is staged" dump nope
refused "nothing is staged" verify want
shown "nothing to discard" discard stage
refused "unknown command frob" frob
refused "PATH is required" dump
refused "not expected: --frob" list --frob
refused "TARGET is required" recover
refused "requires --rank" read want --request 1
answered 1 "nope: No such file" recover nope
shown "no logs" list stage
"$bin/tapioca" log --help | grep -q recover || fail "no help"
for each in list dump verify read recover discard; do
    "$bin/tapioca" log $each --help | grep -q -e --help || fail "no help for $each"
done
echo "log_test: all as expected"
