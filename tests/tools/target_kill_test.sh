#!/usr/bin/env bash
# target_kill_test.sh BIN CMAKE KILL_AT LAUNCHER...: drain and drop, killed before each call that changes something, and run again.
set -euo pipefail
verb=target
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/verb.sh"
kill_at=$3
launcher=("${@:4}")
unset TAPIOCA_STAGE TAPIOCA_SUBFILE TAPIOCA_RANKS_PER_NODE TAPIOCA_TARGET
tier=ssd:$work/tier

put_back() { rm -rf got got.* tier && cp -a --sparse=always set/* .; }
killed() { # AT VERB...
    local at=$1
    shift
    { KILL_AT=$at LD_PRELOAD="$kill_at" "$bin/tapioca" target "$@"; } >out 2>&1 && fail "not killed at call $at"
    [ -e got ] || fail "killed at call $at: there is no file: $(ls)"
}
calls_of() { # VERB...
    rm -f count
    KILL_COUNT=$work/count LD_PRELOAD="$kill_at" "$bin/tapioca" target "$@" >out 2>&1 || fail "failed: $*"
    sort -n count | tail -n 1
}
same_subfile() { # NUMBER: in size, at its beginning, and in the middle of the long one
    local there=got.subfiles/subfile.$1 right=parts/subfile.$1
    [ "$(stat -c %s "$there")" -eq "$(stat -c %s "$right")" ] || return 1
    cmp -n 1M "$there" "$right" >out 2>&1 && { [ "$1" -ne 0 ] || cmp -i 300M -n 1M "$there" "$right" >out 2>&1; }
}
whole() { # WHEN: every subfile is complete in one of the two places
    "$bin/tapioca" subfile verify got >out 2>&1 || fail "$1: something is missing"
    local number
    for number in 0 1; do
        if [ -e "got.subfiles/subfile.$number" ]; then
            same_subfile "$number" || fail "$1: not the same subfile $number"
        fi
    done
}

"${launcher[@]}" -n 4 "$bin/leave_log" "$work/want" close
mkdir tier set parts
env TAPIOCA_TARGET="$tier" TAPIOCA_TARGET_THROUGH=0 TAPIOCA_RANKS_PER_NODE=2 "${launcher[@]}" -n 4 "$bin/leave_log" "$work/got" close
# so long that parts of it are made durable on the way, and most of it holes
truncate -s 600M tier/tapioca-*.set/subfile.0
head -c 700000 /dev/urandom | dd of="$(echo tier/tapioca-*.set/subfile.0)" bs=1M seek=300 conv=notrunc status=none
cp -a --sparse=always tier/tapioca-*.set/subfile.? parts/
mv got got.subfiles tier set/

# drained
put_back
calls=$(calls_of drain got)
[ "$calls" -gt 20 ] || fail "only $calls calls in a drain"
echo "target_kill_test: a drain makes $calls calls"
for at in $(seq 1 "$calls"); do
    put_back
    killed "$at" drain got
    whole "killed at call $at"
    shown "everything is in its directory" drain got
    whole "drained after call $at"
    [ -e got.subfiles/subfile.0 ] && [ -e got.subfiles/subfile.1 ] || fail "drained after call $at: not in the directory"
    [ -z "$(ls tier)" ] || fail "drained after call $at: something is left on the tier: $(ls tier/*)"
    [ -z "$(ls got.subfiles | grep -E 'draining' || true)" ] || fail "drained after call $at: something is left: $(ls got.subfiles)"
done
"$bin/tapioca" subfile join got >out 2>&1 || fail "joining"
cmp got want >out 2>&1 || fail "not the same file"

# killed again and again, until it is done
put_back
for at in 3 6 9 12 15 18 21 24; do
    { KILL_AT=$at LD_PRELOAD="$kill_at" "$bin/tapioca" target drain got; } >out 2>&1 || true
    whole "killed at call $at, once more"
done
shown "everything is in its directory" drain got
whole "after several drains"

# dropped
put_back
calls=$(calls_of drop --force got)
for at in $(seq 1 "$calls"); do
    put_back
    killed "$at" drop --force got
    "$bin/tapioca" target drop --force got >out 2>&1 || fail "killed at call $at: drop fails"
    [ -z "$(ls tier)" ] || fail "killed at call $at: something is left on the tier: $(ls tier/*)"
done
echo "target_kill_test: all as expected"
