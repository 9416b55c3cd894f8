#!/usr/bin/env bash
# target_test.sh BIN CMAKE LAUNCHER...: tapioca target from a user's side, on files whose data jobs have left on a tier.
set -euo pipefail
verb=target
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/verb.sh"
launcher=("${@:3}")
unset TAPIOCA_STAGE TAPIOCA_SUBFILE TAPIOCA_RANKS_PER_NODE TAPIOCA_TARGET SLURM_JOB_ID
host=$(uname -n)
mkdir tier files small
tier=ssd:$work/tier
trap 'umount -l "$work/small" 2>/dev/null || true; rm -rf "$work"' EXIT
cd files

job() { # FILE HOW: 4 ranks of two pretended nodes
    rm -rf "$1" "$1.subfiles"
    write "$@"
}
write() { # FILE HOW: the same, to what is there
    env SLURM_JOB_ID=4711 TAPIOCA_TARGET="$tier" TAPIOCA_TARGET_THROUGH=0 TAPIOCA_RANKS_PER_NODE=2 \
        "${launcher[@]}" -n 4 "$bin/leave_log" "$PWD/$1" "$2"
}
answered() { # STATUS REGULAR-EXPRESSION COMMAND...
    local wanted=$1 words=$2 status=0
    shift 2
    "$bin/tapioca" "$@" >"$work/out" 2>&1 </dev/null || status=$?
    [ $status -eq "$wanted" ] || fail "status $status from: tapioca $*"
    grep -qE -- "$words" "$work/out" || fail "no '$words' from: tapioca $*"
}
one_line() { [ "$(grep -vc ' % of ' "$work/out")" -eq 1 ] || fail "more than one line"; }
places() { find "$work/tier" -mindepth 1 -maxdepth 1 -name 'tapioca-*.set' | wc -l; }
place() { echo "$work"/tier/tapioca-*.set; }
same() { # FILE: joined, it is what the job has written
    "$bin/tapioca" subfile join "$1" >"$work/out" 2>&1 || fail "joining $1"
    cmp "$1" "$work/want" >"$work/out" 2>&1 || fail "$1 is not the same file"
}
keep() { rm -rf "$work/kept" && mkdir "$work/kept" && cp -a got got.subfiles ../tier "$work/kept"; }
put_back() { rm -rf got got.subfiles ../tier && cp -a "$work/kept/got" "$work/kept/got.subfiles" . && cp -a "$work/kept/tier" ..; }

"${launcher[@]}" -n 4 "$bin/leave_log" "$work/want" close
job got close
keep

# what there is, and where
shown "^ +$PWD/got +[0-9.]+ KiB +2 +[0-9]+ s +4711 +$host +complete$" list "$tier"
TAPIOCA_TARGET=$tier shown "$PWD/got .* complete$" list
refused "name a tier, such as ssd:/scratch, or set TAPIOCA_TARGET" list
refused "unknown tier nonsense" list nonsense
refused "does not consist of subfiles" list "$work/want"
shown "^got: tier $tier" list got
shown "^ +subfile.0 +[0-9.]+ KiB +$host +here, on the tier$" list got
"$bin/tapioca" target list --json "$tier" >"$work/out"
[ "$(value 0 file),$(value 0 job),$(value 0 host),$(value 0 state)" = "$PWD/got,4711,$host,complete" ] || fail "not the right JSON"
"$bin/tapioca" target list --json got >"$work/out"
[ "$(value tier),$(value subfiles 1 subfile),$(value subfiles 1 where)" = "$tier,1,here, on the tier" ] || fail "not the right JSON of a file"
answered 0 "complete, 2 subfiles on $tier of the nodes" subfile list got
answered 0 "^got: sound: .*; 2 of them on the tier of this node$" subfile verify got
answered 1 "2 of 2 subfiles are on $tier of the nodes that wrote them: first .tapioca target drain .*got. on each" subfile join got
one_line

# drained
shown "^got: drained 2 subfiles, [0-9.]+ KiB, in [0-9.]+ s; everything is in its directory$" drain got
one_line
[ "$(places)" -eq 0 ] || fail "something is left on the tier"
[ -e got.subfiles/subfile.0 ] && [ -e got.subfiles/subfile.1 ] || fail "not in the directory: $(ls got.subfiles)"
shown "^got: nothing to drain on this node; everything is in its directory$" drain got
shown "in the directory" list got
shown "^no file has data there$" list "$tier"
answered 0 "^got: sound: [^;]*$" subfile verify got
same got
refused "does not consist of subfiles" drain got
refused "name a file, or a tier with --all" drain

# a job that has begun since this drain did: it has the lock, and its subfiles have higher numbers
put_back
cp "$(place)/subfile.0" "$(place)/subfile.9"
python3 - got.subfiles/writer "$work/locked" <<'END' &
import fcntl, struct, sys, time
with open(sys.argv[1], "w") as note:
    fcntl.fcntl(note, 37, struct.pack("hhiqqii", fcntl.F_WRLCK, 0, 0, 0, 0, 0, 0))  # F_OFD_SETLK
    open(sys.argv[2], "w").close()
    time.sleep(60)
END
job=$!
until [ -e "$work/locked" ]; do sleep 0.1; done
shown "^got: drained 2 subfiles, .*; everything is in its directory$" drain got
kill $job
[ -e "$(place)/subfile.9" ] && [ ! -e got.subfiles/subfile.9 ] || fail "the next job's subfile was drained, too"
[ ! -e "$(place)/subfile.0" ] && [ ! -e "$(place)/subfile.1" ] || fail "something is left on the tier"
rm got.subfiles/writer
# without that job, nobody knows the subfile: it is what a killed one had begun
shown "^got: nothing to drain on this node; everything is in its directory$" drain got
[ "$(places)" -eq 0 ] || fail "what a killed job had begun is left on the tier"
same got

# by several processes, of which each says the same at the end
put_back
for i in 1 2 3; do "$bin/tapioca" target drain got >"$work/out.$i" 2>&1 & done
for job in $(jobs -p); do wait "$job" || fail "one of several drains failed: $(cat "$work"/out.*)"; done
[ "$(cat "$work"/out.? | grep -c 'everything is in its directory')" -eq 3 ] || fail "not drained by three: $(cat "$work"/out.?)"
same got

# a drain that was killed between its last steps, and what it does not decide
put_back
cp -a "$(place)/subfile.0" got.subfiles/
shown "everything is in its directory" drain got
same got
put_back
(head -c -1 "$(place)/subfile.0"; printf x) >got.subfiles/subfile.0
answered 1 "got.subfiles/subfile.0 and $work/tier/tapioca-.*/subfile.0 both exist, and differ" target drain got
rm got.subfiles/subfile.0
echo unfinished >got.subfiles/draining.1
answered 0 "^incomplete: got.subfiles/draining.1: " subfile verify got
shown "everything is in its directory" drain got
[ ! -e got.subfiles/draining.1 ] || fail "something is left"
same got

# a subfile that is too short is drained as it is
put_back
truncate -s 100 "$(place)/subfile.1"
answered 1 "^too short: .*/tapioca-.*subfile.1: 100 of [0-9]+ B" subfile verify got
shown "subfile.1 .* but only 100 B of" list got
shown "drained 2 subfiles" drain got
answered 1 "^too short: got.subfiles/subfile.1: 100 of [0-9]+ B" subfile verify got

# one that is lost, and one that is on another host
put_back
rm "$(place)/subfile.1"
answered 1 "^missing: got.subfiles/subfile.1" subfile verify got
shown "^ +subfile.1 .* missing$" list got
answered 1 "1 of 2 subfiles are missing, though they were written here" target drain got
if unshare -u true 2>/dev/null; then
    on_n2() { unshare -u sh -c 'hostname n2; exec "$@"' sh "$@" >"$work/out" 2>&1 || fail "on another host: $*"; }
    says() { grep -qE -- "$1" "$work/out" || fail "no '$1' on another host"; }
    put_back
    mv "$(place)" "$work/away"
    on_n2 "$bin/tapioca" target list got
    says "subfile.1 .* $host +on another node"
    on_n2 "$bin/tapioca" subfile verify got
    says "^not looked at: subfile.1: [0-9]+ B on the tier of $host"
    says "got: sound: .*; 2 of them not looked at, on $host"
    on_n2 "$bin/tapioca" target drain got
    says "^got: nothing to drain on this node; 2 of 2 subfiles are still on $host: drain it there, too"
    rm -rf "$work/away"
fi

# full, then with more room
if mount -t tmpfs -o size=64k tmpfs "$work/small" 2>/dev/null; then
    put_back
    cp -a got got.subfiles "$work/small/"
    answered 1 "small/got is a copy of $PWD/got, to which the data on this node belongs" target drain "$work/small/got"
    rm -rf got got.subfiles
    truncate -s 300K "$(place)/subfile.1"
    dd if=/dev/urandom of="$(place)/subfile.1" bs=1k seek=20 count=200 conv=notrunc status=none
    cp "$(place)/subfile.1" "$work/one"
    answered 1 "draining.1: .*No space left on device: nothing is lost. With more room, the same command goes on" target drain "$work/small/got"
    mount -o remount,size=8m "$work/small"
    shown "everything is in its directory" drain "$work/small/got"
    cmp "$work/one" "$work/small/got.subfiles/subfile.1" >"$work/out" 2>&1 || fail "not the same after a full file system"
    umount -l "$work/small"
fi

# a job that ended without closing
rm -rf got got.subfiles ../tier/*
job got leave
shown "$PWD/got .* interrupted: tapioca subfile recover $PWD/got$" list "$tier"
answered 1 "process [0-9]+ on host $host has ended without closing the file: first .tapioca subfile recover .*got" target drain got
one_line
answered 0 "^got: recovered" subfile recover got
shown "everything is in its directory" drain got
answered 0 "^got: sound" subfile verify got

# while it is written
mkfifo ready
rm -rf got got.subfiles ../tier/*
job got live >ready &
running=$!
read -r _ <ready
shown "$PWD/got .* being written by process [0-9]+ on $host$" list "$tier"
answered 1 "process [0-9]+ on host $host is writing it: drain it when the job has ended" target drain got
answered 1 "is writing it" target drop --force got
touch got.go
wait $running
rm got.go
answered 0 "^got: sound" subfile verify got
shown "everything is in its directory" drain --all "$tier"
answered 0 "^got: sound: [^;]*$" subfile verify got
shown "nothing to drain on this node" drain --all "$tier"

# dropped
put_back
answered 1 "got: [0-9.]+ KiB in 2 subfiles are nowhere else and would be lost: .tapioca target drain. keeps them; --force" target drop got
one_line
[ "$(places)" -eq 1 ] || fail "dropped without --force"
shown "^got: removed 2 subfiles of this node; [0-9.]+ KiB are lost$" drop --force got
[ "$(places)" -eq 0 ] || fail "not dropped"
shown "nothing to drop on this node" drop got
put_back
cp -a "$(place)"/subfile.? got.subfiles/
shown "removed 2 subfiles of this node; 0 B are lost" drop got
same got

# files that are renamed, gone, replaced, or perhaps not mounted
put_back
mv got new
shown "^ +$PWD/new .* complete$" list "$tier"
shown "^nothing to drop on this node$" drop --gone "$tier"
shown "$PWD/new: drained 2 subfiles, .*; everything is in its directory$" drain --all "$tier"
mv new got
same got
put_back
mv "$PWD" "$work/unmounted"
cd "$work/unmounted"
shown "$work/files/got .* not known: $work/files/: No such file" list "$tier"
answered 0 "^$work/files/got: kept $work/tier/tapioca-.*: $work/files/: No such file" target drop --gone "$tier"
answered 1 "^$work/files/got: left alone: " target drain --all "$tier"
mkdir "$work/files"
answered 0 "^$work/files/got: kept .*files/ is another directory than before: perhaps its file system is not mounted" target drop --gone "$tier"
[ "$(places)" -eq 1 ] || fail "dropped what may be there"
rmdir "$work/files"
mv "$work/unmounted" "$work/files"
cd "$work/files"
mv got other
echo text >got
shown "nothing to drop" drop --gone "$tier"
rm other
shown "$PWD/got .* the file is another one now$" list "$tier"
answered 1 "left alone: the file is another one now" target drain --all "$tier"
shown "^$PWD/got: the file is another one now: removed [0-9.]+ KiB in 2 subfiles$" drop --gone "$tier"
[ "$(places)" -eq 0 ] && [ "$(cat got)" = text ] || fail "not dropped, or too much"
put_back
rm got
shown "$PWD/got .* the file is gone, or was moved$" list "$tier"
shown "^$PWD/got: the file is gone, or was moved: removed" drop --gone "$tier"
shown "nothing to drop" drop --gone "$tier"
refused "name a file, or a tier with --gone" drop
refused "missing.dat: no such file, and no tier, such as ssd:/scratch" list missing.dat
# a directory that was renamed is found again when its file is opened; one that was removed is the user's word
put_back
mv "$PWD" "$work/renamed"
cd "$work/renamed"
env TAPIOCA_RANKS_PER_NODE=2 "${launcher[@]}" -n 4 "$bin/leave_log" "$PWD/got" update >"$work/out" 2>&1 || fail "not opened where it is now"
shown "$work/renamed/got .* complete$" list "$tier"
mv "$work/renamed" "$work/away"
answered 0 "^$work/renamed/got: kept .*No such file or directory; --force removes it" target drop --gone "$tier"
answered 0 "^$work/renamed/got: $work/renamed/: No such file or directory: removed" target drop --force --gone "$tier"
[ "$(places)" -eq 0 ] || fail "kept what --force removes"
mv "$work/away" "$work/files"
cd "$work/files"

# a copy never touches what belongs to the original, and what was moved keeps its data
put_back
mkdir copies
cp -a got got.subfiles copies
! write copies/got update >"$work/out" 2>&1 || fail "a copy was written"
grep -q "copies/got is a copy of $PWD/got, to which the data on this node belongs" "$work/out" || fail "no word about a copy"
write copies/got close
shown "drained 2 subfiles" drain copies/got
cmp "$(place)/subfile.0" "$work"/kept/tier/tapioca-*/subfile.0 || fail "the original has other bytes"
shown "drained 2 subfiles, .*; everything is in its directory$" drain got
same got
put_back
rm -r copies/*
mv got got.subfiles copies
write copies/got update
shown "^ +$PWD/copies/got .* complete$" list "$tier"
shown "nothing to drop" drop --gone "$tier"
shown "drained [24] subfiles, .*; everything is in its directory$" drain copies/got
same copies/got
rm -r copies

# what cannot be read is told, and kept
put_back
printf x | dd of="$(place)/catalogue" bs=1 seek=100 conv=notrunc status=none
shown "the catalogue entry is damaged: its checksum does not match" list "$tier"
rm -r got got.subfiles
answered 0 "^kept: $work/tier/tapioca-.*: the catalogue entry is damaged" target drop --gone "$tier"
[ "$(places)" -eq 1 ] || fail "a damaged entry was dropped"
echo "target_test: all as expected"
