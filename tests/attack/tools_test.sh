#!/usr/bin/env bash
# tools_test.sh BIN CMAKE LAUNCHER...: the tapioca command as root, in a directory where another user has put things.
set -euo pipefail
[ "$(id -u)" -eq 0 ] || { echo "skipped: only root can be two users at once"; exit 0; }
verb=attack
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../tools/verb.sh"
launcher=("${@:3}")
chmod 755 "$work"
export TMPDIR=$work
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
answered() { # STATUS REGULAR-EXPRESSION ARGUMENTS...: and no control characters, and nobody waits
    local wanted=$1 words=$2 status=0
    shift 2
    timeout 20 "$bin/tapioca" "$@" >"$work/out" 2>&1 </dev/null || status=$?
    [ $status -eq "$wanted" ] || fail "status $status from: tapioca $*"
    [ -z "$words" ] || grep -qE -- "$words" "$work/out" || fail "no '$words' from: tapioca $*"
    ! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$work/out" || fail "control characters from: tapioca $*"
}
mkdir home shared
chmod 1777 shared
echo "a victim's file" >home/victim
chmod 640 home/victim
before=$(stat -c '%a %u %s %h %i' home/victim; cat home/victim)
untouched() { [ "$(stat -c '%a %u %s %h %i' home/victim; cat home/victim)" = "$before" ] || fail "the victim's file: $1"; }

# logs of root's own, and things of another user's beside them
(cd home && TAPIOCA_STAGE=ssd:$work/shared "${launcher[@]}" -n 2 "$bin/leave_log" "$work/home/got" leave) >out 2>&1
own=$(ls -d shared/tapioca-*)
hex=00112233445566778899aabbccddeeff
nobody mkdir -m 700 "shared/tapioca-$hex"
nobody cp /dev/null "shared/tapioca-$hex/rank0.meta"
nobody cp /dev/null "shared/tapioca-$hex/rank0.data"
nobody ln -s "$work/$own" "shared/tapioca-${hex/00/11}"
mkdir -m 755 home/dir
echo precious >home/dir/rank0.meta
echo precious >home/dir/rank0.data
nobody ln -s "$work/home/dir" "shared/tapioca-${hex/00/22}"
nobody ln -s "$work/home/dir" "shared/tapioca-more"
nobody truncate -s 1T "shared/huge.tapioca"
nobody ln -s "$work/home/victim" "shared/link.tapioca"
nobody mkfifo "shared/pipe.tapioca"
nobody touch "shared/"$'a\e[31m\nred\x07.tapioca' "shared/"$'bad\xff\xfeutf.tapioca'
answered 0 "got .*unfinished" log list shared
grep -q "huge .*not yours" out || fail "no row of another user's marker"
grep -qF 'a\x1b[31m\x0ared\x07' out || fail "a name that is not spelled out"
[ "$(grep -c unfinished out)" -eq 2 ] || fail "not two logs of our own: a link was followed"
! grep -qE "tapioca-(1111|2211|more)" out || fail "a link was followed"
answered 0 '"state": "not yours"' log list --json shared
answered 0 "not yours: .*belongs to user 65534" log verify shared
grep -q "sound" out || fail "our own logs were not verified"

# root removes nobody else's, and nothing behind a link
answered 1 "belongs to user 65534.*rm" log discard shared/huge --yes
answered 1 "link.tapioca.*rm" log discard shared/link --yes
answered 1 "none of these logs belong to you" log discard "shared/tapioca-$hex" --yes
[ -e "shared/tapioca-$hex/rank0.meta" ] && [ -L shared/link.tapioca ] && [ -e shared/huge.tapioca ] || fail "removed"
answered 1 "belongs to" log discard shared --yes # our own have a marker
[ -e "$own/rank0.meta" ] && [ -e home/dir/rank0.meta ] && [ -e home/dir/rank0.data ] || fail "removed"
mv home/got.tapioca home/kept
answered 0 "left alone: .*belongs to user 65534|left alone: .*not a directory" log discard shared --yes
grep -q "removed 2 logs" out || fail "our own logs are still there"
[ -e "shared/tapioca-$hex/rank0.meta" ] && [ -e home/dir/rank0.meta ] && [ -e home/dir/rank0.data ] || fail "removed"
[ ! -e "$own" ] || fail "our own logs are still there"
untouched "after discard"

# what another user put beside a target does not stop its recovery
cd shared
rm -f "$work/home/got"
TAPIOCA_STAGE=ssd:$work/shared "${launcher[@]}" -n 2 "$bin/leave_log" "$work/shared/got" leave >"$work/out" 2>&1
cd ..
nobody cp /dev/null shared/got.tapioca.rank1.meta
nobody ln -s "$work/home/victim" shared/got.tapioca.rank0.meta
answered 0 "recovered .* requests" log recover shared/got
[ -e shared/got.tapioca.rank1.meta ] || fail "removed"
rm shared/got.tapioca.rank?.meta

# files that a user wants written, where another has put a link, a file or a pipe
(cd home && TAPIOCA_STAGE=ssd:$work/shared "${launcher[@]}" -n 2 "$bin/leave_log" "$work/home/got" leave) >out 2>&1
read_out=(log read home/got --rank 0 --request 0 --output)
draw=(plan --platform theta --nodes 1024 --ppn 16 --workload hacc:25000,aos --aggregators 192 --svg)
for command in read_out draw; do
    declare -n words=$command
    rm -rf shared/output
    nobody ln -s "$work/home/victim" shared/output
    [ $command = draw ] && status=2 || status=1
    answered $status "shared/output: belongs to user 65534" "${words[@]}" shared/output
    untouched "by ${words[0]} through a link"
    rm shared/output
    nobody mkfifo shared/output
    answered $status "shared/output: belongs to user 65534" "${words[@]}" shared/output
    rm shared/output
    nobody touch shared/output
    nobody chmod 666 shared/output
    answered $status "shared/output: belongs to user 65534" "${words[@]}" shared/output
    [ ! -s shared/output ] || fail "data where another user reads it"
    rm shared/output
    ln home/victim shared/output # as where fs.protected_hardlinks is 0
    answered $status "shared/output: has another name" "${words[@]}" shared/output
    rm shared/output
    untouched "by ${words[0]} through another name"
    ln -s "$work/home/mine" shared/output # our own link is followed
    answered 0 "" "${words[@]}" shared/output
    [ -s home/mine ] || fail "our own link was not followed"
    rm shared/output home/mine
done

# the benchmark's files have names that are known
for n in 0 1 2 3 4 5; do nobody ln -s "$work/home/victim" "shared/tapioca-bench.array1d.$n.dat"; done
nobody ln -s "$work/home/victim" shared/cells.json
timeout 60 "${launcher[@]}" -n 2 "$bin/tapioca-bench" array1d --bytes 10000 --methods tapioca,limit --reps 1 --dir shared \
    >out 2>&1 || fail "tapioca-bench"
untouched "by the benchmark"
[ -z "$(find shared -name 'tapioca-bench.??????' -type d)" ] || fail "the benchmark left its directory"
status=0
timeout 60 "$bin/tapioca-bench" array1d --bytes 10000 --reps 1 --dir shared --json shared/cells.json >out 2>&1 || status=$?
[ $status -eq 2 ] && grep -q "cells.json: belongs to user 65534" out || fail "--json through a link"
untouched "by --json"
echo "the command, in a directory where another user has put things: all well"
