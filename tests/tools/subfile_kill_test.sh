#!/usr/bin/env bash
# subfile_kill_test.sh BIN CMAKE KILL_AT LAUNCHER...: join, split and recover, killed before calls that change something,
# and run again. KILL_EVERY=1 takes all of these calls, instead of one in five.
set -euo pipefail
verb=subfile
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/verb.sh"
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../support/jobs.sh"
kill_at=$3
launcher=("${@:4}")
unset TAPIOCA_STAGE TAPIOCA_SUBFILE TAPIOCA_RANKS_PER_NODE
every=${KILL_EVERY:-5}

put_back() { # of DIRECTORY
    rm -rf got got.* && cp -a --sparse=always "$1"/* .
}
killed() { # AT PROGRAM...
    local at=$1
    shift
    { KILL_AT=$at LD_PRELOAD="$kill_at" "$@"; } >out 2>&1 && fail "not killed at call $at"
    [ -e got ] || fail "killed at call $at: there is no file: $(ls)"
}
calls_of() { # PROGRAM...
    rm -f count
    KILL_COUNT=$work/count LD_PRELOAD="$kill_at" "$@" >out 2>&1 || fail "failed: $*"
    sort -n count | tail -n 1
}
is_set() { head -c 200 got | grep -qa "TAPIOCA subfile set"; }
whole() { # AT: the file is plain and right, or a set that is
    rm -f other
    if is_set; then
        shown "sound" verify got
        shown "the set is as it was" join got -o other
        cmp other orig >out 2>&1 || fail "killed at call $1: the set is not the file"
    else
        cmp got orig >out 2>&1 || fail "killed at call $1: the file is damaged"
    fi
}

# several parts, holes, and some data in each
truncate -s 150M orig
for at in 0 30 63 64 100 149; do
    head -c 700000 /dev/urandom | dd of=orig bs=1M seek=$at conv=notrunc status=none
done
mkdir plain set
cp -a --sparse=always orig plain/got

# split
put_back plain
calls=$(calls_of "$bin/tapioca" subfile split "$work/got" --subfiles 3)
[ "$calls" -gt 30 ] || fail "only $calls calls in a split"
echo "subfile_kill_test: a split makes $calls calls"
cp -a --sparse=always got got.subfiles set/
for at in $(seq $((1 + RANDOM % every)) "$every" "$calls"); do
    put_back plain
    killed "$at" "$bin/tapioca" subfile split "$work/got" --subfiles 3
    whole "$at"
    if ! is_set; then shown "in 3 subfiles" split got --subfiles 3; fi
    whole "$at"
    is_set || fail "killed at call $at: not split"
    [ "$(echo got*)" = "got got.subfiles" ] || fail "killed at call $at: something is left: $(echo got*)"
done

# join in place, and into another file
put_back set
calls=$(calls_of "$bin/tapioca-join" "$work/got")
[ "$calls" -gt 15 ] || fail "only $calls calls in a join"
echo "subfile_kill_test: a join makes $calls calls"
goes_on=0
for at in $(seq $((1 + RANDOM % every)) "$every" "$calls"); do
    put_back set
    killed "$at" "$bin/tapioca-join" "$work/got"
    whole "$at"
    "$bin/tapioca" subfile join got >out 2>&1 || grep -q "is not a set of subfiles" out || fail "killed at call $at: join fails"
    ! grep -q "goes on where an earlier join was" out || goes_on=$((goes_on + 1))
    ! is_set || fail "killed at call $at: not joined"
    whole "$at"
    [ "$(echo got*)" = got ] || fail "killed at call $at: something is left: $(echo got*)"
done
[ "$every" -gt 1 ] || [ $goes_on -gt 3 ] || fail "only $goes_on joins went on where they were"
put_back set
calls=$(calls_of "$bin/tapioca-join" "$work/got" -o "$work/got.plain")
for at in $(seq $((1 + RANDOM % every)) "$every" "$calls"); do
    put_back set
    killed "$at" "$bin/tapioca-join" "$work/got" -o "$work/got.plain"
    whole "$at"
    shown "the set is as it was" join got -o got.plain
    cmp got.plain orig >out 2>&1 || fail "killed at call $at: not the same file"
    shown "sound" verify got
    [ "$(echo got*)" = "got got.plain got.subfiles" ] || fail "killed at call $at: something is left: $(echo got*)"
done

# by several processes, one of which is killed; the next join is made by one
for at in 1 2 3 4 5 6 7 8 9; do
    put_back set
    { KILL_AT=$at KILL_RANK=$((at % 3)) with_killed_rank "${launcher[@]}" -n 3 sh -c "$preloaded" "$kill_at" "$bin/tapioca-join" "$work/got"; } >out 2>&1 || true
    whole "$at"
    "$bin/tapioca" subfile join got >out 2>&1 || grep -q "is not a set of subfiles" out || fail "killed at call $at: join fails"
    ! is_set || fail "killed at call $at of several: not joined"
    whole "$at"
    [ "$(echo got*)" = got ] || fail "killed at call $at of several: something is left: $(echo got*)"
done

# recover
rm -rf plain set orig other got got.* && mkdir set
for how in close leave; do
    TAPIOCA_SUBFILE=$([ $how = leave ] && echo files:2 || echo off) "${launcher[@]}" -n 3 "$bin/leave_log" "$work/got" $how
    [ $how = leave ] || mv got orig
done
cp -a got got.subfiles set/
calls=$(calls_of "$bin/tapioca" subfile recover "$work/got")
[ "$calls" -gt 5 ] || fail "only $calls calls in a recovery"
for at in $(seq $((1 + RANDOM % every)) "$every" "$calls"); do
    put_back set
    killed "$at" "$bin/tapioca" subfile recover "$work/got"
    shown "recovered|nothing to recover" recover got
    whole "$at"
done
echo "subfile_kill_test: all as expected"
