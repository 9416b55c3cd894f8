#!/usr/bin/env bash
# subfile_test.sh BIN CMAKE LAUNCHER...: tapioca subfile from a user's side, on sets that jobs and splits have made.
set -euo pipefail
verb=subfile
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/verb.sh"
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../support/jobs.sh"
launcher=("${@:3}")
unset TAPIOCA_STAGE TAPIOCA_SUBFILE TAPIOCA_RANKS_PER_NODE
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
host=$(uname -n)
trap 'umount -l "$work/small" 2>/dev/null || true; rm -rf "$work"' EXIT

job() { # TARGET HOW [LAYOUT]: 4 ranks of two pretended nodes
    rm -rf "$1" "$1.subfiles"
    env TAPIOCA_SUBFILE="${3:-node}" TAPIOCA_RANKS_PER_NODE=2 "${launcher[@]}" -n 4 "$bin/leave_log" "$work/$1" "$2"
}
answered() { # STATUS REGULAR-EXPRESSION ARGUMENTS...
    local wanted=$1 words=$2 status=0
    shift 2
    "$bin/tapioca" subfile "$@" >"$work/out" 2>&1 </dev/null || status=$?
    [ $status -eq "$wanted" ] || fail "status $status from: tapioca subfile $*"
    grep -qE -- "$words" "$work/out" || fail "no '$words' from: tapioca subfile $*"
}
one_line() { [ "$(grep -vc ' % of ' "$work/out")" -eq 1 ] || fail "more than one line"; }
same() { cmp "$1" "$2" >"$work/out" 2>&1 || fail "$3"; }
keep() { rm -rf kept && mkdir kept && cp -a got got.subfiles kept; }
put_back() { rm -rf got got.* && cp -a kept/* .; }

# a stub that was changed is no plain file, and is made again
change() { # DAMAGE
    put_back
    eval "$1"
    answered 1 "got: this was the stub of the subfiles in .*got.subfiles, and was changed; .*tapioca subfile recover" verify got
    ! env TAPIOCA_RANKS_PER_NODE=2 "${launcher[@]}" -n 4 "$bin/leave_log" "$work/got" update >out 2>&1 || fail "a changed stub was written to"
    grep -q "this was the stub of the subfiles in" out || fail "no word about a changed stub"
    shown "^got: made the stub again$" recover got
    shown "sound" verify got
    shown "removed the subfiles" join got
    same want got "joined after its stub was changed: not the same file"
}
job want close off
job got close
keep
change 'echo >>got'
change 'truncate -s 500 got'
change 'truncate -s 5000000 got'
change 'printf "x%.0s" {1..60} | dd of=got conv=notrunc status=none'
# one that an editor has changed, or that was removed or emptied, is made again when it is asked for
for damage in 'sed -i "s/TAPIOCA subfile/xx/" got' 'rm got' 'rm got got.subfiles/stub' ': >got'; do
    put_back
    eval "$damage"
    shown "^got: made the stub again$" recover got
    shown "sound" verify got
    shown "removed the subfiles" join got
    same want got "joined after '$damage': not the same file"
done
# another file that has its name now is left alone
put_back
echo "something else" >got
answered 1 "got: it holds 15 B of something else: move it away" recover got
grep -q "^something else$" got || fail "another file was changed"
put_back
rm got.subfiles/index
answered 1 "neither an index nor a note of the job that wrote" verify got
answered 1 "neither an index nor a note of the job that wrote" recover got
# what a program adds may be used by whoever may use the file by then
put_back
chmod 600 got
env TAPIOCA_RANKS_PER_NODE=2 "${launcher[@]}" -n 4 "$bin/leave_log" "$work/got" update >out 2>&1 || fail "not written to"
[ "$(stat -c %a got.subfiles)" = 700 ] || fail "the directory of subfiles is open to others"
# a copy of the stub alone leads to the original's subfiles, which stay as they are
put_back
cp got bb
answered 1 "bb is a copy of the stub of another file, to which .*got.subfiles belongs" join bb
answered 1 "^copy: .*bb is a copy of the stub of another file" verify bb
! env TAPIOCA_RANKS_PER_NODE=2 "${launcher[@]}" -n 4 "$bin/leave_log" "$work/bb" update >out 2>&1 || fail "a copy was written to"
grep -q "bb is a copy of the stub of another file" out || fail "no word about a copy"
shown "sound" verify got
shown "removed the subfiles" join got
same want got "joined after a copy of its stub was made: not the same file"
rm -rf bb kept got*

# what jobs have made, joined alone and by several processes
job want close off
job got close
keep
shown "^ +got +[0-9.]+ KiB +2 +[0-9]+ .* node +complete +4 ranks on $host +20[0-9-]+ [0-9:]+$" list
shown "^ +$work/got " list "$work"
shown "got .*complete" list got .
"$bin/tapioca" subfile list --json got >out
[ "$(value 0 file),$(value 0 state),$(value 0 size),$(value 0 layout),$(value 0 subfiles),$(value 0 host)" = \
    "got,complete,$(stat -c %s want),node,2,$host" ] || fail "not the right JSON"
[ "$(value 0 dead_bytes)" -gt 0 ] && [ "$(value 0 data_bytes)" -gt "$(value 0 dead_bytes)" ] || fail "no dead bytes"
shown "^got: sound: $(stat -c %s want) B, [0-9]+ chunks in 2 subfiles" verify got
shown "^got: nothing to recover" recover got
shown "^plain: a plain file of .*; the set is as it was" join got -o plain
same want plain "joined into another file: not the same"
shown "sound" verify got
shown "^got: a plain file of .*; removed the subfiles" join got
same want got "joined: not the same file"
[ "$(ls -d got*)" = got ] || fail "something is left: $(ls)"
answered 1 "got is not a set of subfiles" join got
put_back
"${launcher[@]}" -n 3 "$bin/tapioca" subfile join --keep got >out 2>&1 || fail "joining with 3 processes"
[ "$(grep -c 'kept the subfiles' out)" -eq 1 ] || fail "no answer with 3 processes"
same want got "joined by 3 processes: not the same file"
[ -e got.subfiles/subfile.1 ] || fail "the subfiles were not kept"
put_back
shown "removed the subfiles" join -n 2 --mpiexec "${launcher[0]}" got
same want got "joined by processes that the command started: not the same file"
put_back
ln -s got alias
shown "removed the subfiles" join alias
same want got "joined by another name: not the same file"
[ -L alias ] || fail "a link was replaced"
rm alias

# a job that ended without closing
job got leave
keep
shown "got .* interrupted \(process [0-9]+ on $host\)" list
answered 1 "^interrupted: process [0-9]+ on host $host has ended .*tapioca subfile recover got" verify got
answered 1 "tapioca subfile recover" join got
shown "^got: recovered 6 chunks with .* from 2 journals of process [0-9]+ on host $host; the file has $(stat -c %s want) B" recover got
shown "^got: nothing to recover" recover got
shown "sound" verify got
shown "removed the subfiles" join got
same want got "recovered: not the same file"
put_back
rm got.subfiles/writer
answered 1 "neither an index nor a note" recover got

# a command that is advised can be pasted, whatever the name is
odd="two words; it's \$HOME"
job "$odd" leave
answered 1 "tapioca subfile recover" join "$odd"
advised=$(sed -n 's/.*`\(tapioca subfile recover .*\)` completes.*/\1/p' out)
(PATH=$bin:$PATH && eval "$advised") >out 2>&1 || fail "pasted, this fails: $advised"
shown "sound" verify "$odd"
rm -r "$odd" "$odd.subfiles"

# while it is written
mkfifo ready
job got live >ready &
running=$!
read -r _ <ready
shown "got .* being written by process [0-9]+ on $host" list
"$bin/tapioca" subfile list --json got >out
[ "$(value 0 state)" = live ] && [ "$(value 0 process)" -gt 0 ] || fail "not the right JSON of a live set"
shown "sound so far, and being written by process" verify got
answered 1 "a job is writing these subfiles \(process [0-9]+ on $host\)" recover got
one_line
answered 1 "a job is writing these subfiles" join got
one_line
touch got.go
wait $running
rm got.go
shown "sound" verify got
keep

# what is missing or damaged: told exactly, and nothing is changed
refuses() { # REGULAR-EXPRESSION of verify, of join
    answered 1 "$1" verify got
    answered 1 "$2" join got
    one_line
    [ ! -e got.joining ] || fail "something was changed"
    put_back
}
rm got.subfiles/subfile.1
answered 1 "^cannot be read: \[100, 400\), 300 B" verify got
[ "$(grep -c '^cannot be read' out)" -eq 20 ] && grep -q "^\.\.\. [0-9]* more ranges" out || fail "not 20 ranges"
answered 1 "^[0-9]+ of $(stat -c %s want) B cannot be read" verify --ranges 0 got
listed=$(sed -n 's/^cannot be read: .*, \([0-9]*\) B$/\1/p' out | paste -sd+ | tee sum | bc 2>/dev/null || echo $(($(cat sum))))
[ "$listed" -eq "$(sed -n 's/^\([0-9]*\) of .* cannot be read$/\1/p' out)" ] || fail "the ranges have $listed B"
refuses "^missing: got.subfiles/subfile.1: [0-9]+ B" "subfile.1: No such file.*tapioca subfile verify got. lists"
truncate -s 1000 got.subfiles/subfile.0
refuses "^too short: got.subfiles/subfile.0: 1000 of [0-9]+ B" "subfile.0 has 1000 bytes, and the index says"
mv got.subfiles/subfile.0 . && ln -s ../subfile.0 got.subfiles/subfile.0
refuses "^damaged: got.subfiles/subfile.0 is a symbolic link" "subfile.0 is not a plain file"
rm got.subfiles/subfile.0 && mkfifo got.subfiles/subfile.0
refuses "^damaged: got.subfiles/subfile.0 is something else" "subfile.0 is not a plain file"
rm got.subfiles/index && ln -s /dev/zero got.subfiles/index
refuses "^damaged: got.subfiles: index: Too many levels of symbolic links" "symbolic links"
rm got.subfiles/index && mkfifo got.subfiles/index
refuses "^damaged: got.subfiles: the index is damaged: 0 bytes" "0 bytes are too few"
printf x | dd of=got.subfiles/index bs=1 seek=600 conv=notrunc status=none
answered 0 "^damaged: got.subfiles: the index is damaged" list
refuses "^damaged: got.subfiles: the index is damaged: the checksum" "checksum"
truncate -s -8 got.subfiles/index
refuses "the index is damaged" "the index is damaged"
truncate -s 100 got.subfiles/index
refuses "100 bytes are too few" "100 bytes are too few"
rm -r got.subfiles
refuses "^damaged: got: the directory of its subfiles, got.subfiles: No such file" "the directory of its subfiles"
rm -r got.subfiles && ln -s kept/got.subfiles got.subfiles
refuses "the directory of its subfiles, got.subfiles: " "the directory of its subfiles"
sed -i 's/^directory: got.sub/directory: off.sub/' got
answered 1 "its directory is there, under the usual name: got.subfiles" verify got
answered 0 "^damaged: .*got: the text that names its directory of subfiles is damaged" list
refuses "^damaged: got: the text that names its directory of subfiles is damaged" "is damaged"
touch got.subfiles/mine got.subfiles/subfile.01 got.subfiles/subfile.99
answered 1 "^unknown: got.subfiles/mine: " verify got
grep -q "^unknown: got.subfiles/subfile.01: " out && grep -q "^unknown: got.subfiles/subfile.99: 0 B" out || fail "not all that is unknown"
put_back
touch got.subfiles/writer got.subfiles/journal.0 got.subfiles/index.new
shown "^left over: got.subfiles/writer" verify got
[ "$(grep -c '^left over' out)" -eq 3 ] || fail "not all that is left over"
put_back
ln got.subfiles/subfile.0 second
answered 1 "subfile.0 has 2 names" verify got
rm second
answered 1 "got.subfiles would be|would be among the subfiles" join got -o got.subfiles/plain
answered 1 "exists and is not a plain file" join got -o kept
answered 1 "No such file or directory" join got -o nowhere/plain
one_line
shown "sound" verify got

# of root it takes no other user's files through a directory that is not root's
if [ "$(id -u)" -eq 0 ]; then
    chown -R 12345 got got.subfiles
    shown "sound" verify got
    shown "the set is as it was" join got -o plain
    [ "$(stat -c %u plain)" -eq 12345 ] || fail "the plain file does not belong to the owner of the set"
    chown 0 got.subfiles/subfile.1
    answered 1 "subfile.1 does not belong to the owner" verify got
    answered 1 "subfile.1 does not belong to the owner" join got -o plain
    one_line
    put_back
else
    echo "subfile_test: not root: files of other users were not tried"
fi

# split, and joined again
head -c 10000000 /dev/urandom >orig
cp -p orig got && rm -r got.subfiles
shown "^got: 9.5 MiB in 4 subfiles" split got --subfiles 4
shown "got +9.5 MiB +4 +4 +9.5 MiB +0 B +split +complete" list
shown "sound: 10000000 B, 4 chunks in 4 subfiles" verify got
answered 1 "got is a set of subfiles already" split got --subfiles 2
"${launcher[@]}" -n 2 "$bin/tapioca" subfile join got >out 2>&1 || fail "joining what was split"
same orig got "split and joined: not the same file"
[ "$(ls -d got*)" = got ] || fail "something is left: $(ls)"
mkdir got.subfiles && touch got.subfiles/mine
answered 1 "got.subfiles exists already" split got --subfiles 2
one_line
same orig got "a split that was refused has changed the file"
rm -r got.subfiles
: >empty
answered 1 "empty is empty: there is nothing to split" split empty --subfiles 2
answered 1 "is not a plain file" split kept --subfiles 2
answered 1 "nope: No such file" split nope --subfiles 2

# a disk that is full: one line, nothing is lost, and with more room the same command goes on
mkdir -p small
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=16m tmpfs small 2>out; then
    cp orig small/got
    answered 1 "small/got.subfiles/subfile.[0-9]: .*No space left on device: the file is as it was" split small/got --subfiles 3
    one_line
    same orig small/got "a split without room has changed the file"
    [ "$(ls small)" = got ] || fail "a split without room has left something: $(ls small)"
    mount -o remount,size=32m small
    shown "in 3 subfiles" split small/got --subfiles 3
    mount -o remount,size=16m small
    answered 1 "small/got.joining: .*No space left on device: the subfiles are as they were" join small/got
    one_line
    shown "sound: 10000000 B" verify small/got
    mount -o remount,size=32m small
    shown "removed the subfiles" join small/got
    same orig small/got "joined with more room: not the same file"
    [ "$(ls small)" = got ] || fail "something is left: $(ls small)"
    full=yes
else
    echo "subfile_test: skipped: a full disk (no small file system can be mounted here)"
fi

# a job whose disk is full when it closes the file
dropin=$(ls "$bin"/../lib*/libtapioca_mpiio.so 2>/dev/null | head -n 1 || true)
through() { # HOW: with MPI-IO, 8 chunks of 200,000 bytes
    rm -rf small/*
    env TAPIOCA_SUBFILE=node TAPIOCA_RANKS_PER_NODE=2 \
        "${launcher[@]}" -n 4 sh -c "$preloaded" "$dropin" "$bin/leave_log" "$work/small/got" "$1" 2>err
}
fill_up() { cat /dev/zero >small/filler 2>/dev/null || true; }
if [ -n "${full:-}" ] && [ -n "$dropin" ]; then
    rm -r small/*
    mount -o remount,size=3m small
    through through-close || fail "closing with room: $(cat err)"
    shown "sound: 250000 B" verify small/got
    "$bin/tapioca" subfile join small/got -o want >out 2>&1 || fail "joining what MPI-IO has written"
    rm -f ready && mkfifo ready
    through through-live >ready &
    running=$!
    read -r _ <ready
    fill_up
    touch small/got.go
    wait $running || fail "a program that ignores errors: $(cat err)"
    [ "$(grep -c '^tapioca: close: .*small/got: .*No space left on device: 4096 bytes must be free for it; .*tapioca subfile recover .*/small/got' err)" -eq 1 ] ||
        fail "not told what to do when the file was closed: $(cat err)"
    answered 1 "small/got: .*4096 bytes must be free for it; .* with more room, .tapioca subfile recover .*small/got. completes the set" recover small/got
    one_line
    rm small/filler
    shown "recovered 8 chunks" recover small/got
    shown "the set is as it was" join small/got -o plain
    same want plain "recovered with more room: not the same file"
    # what failed steps have left makes room for the index
    rm -r small/*
    mount -o remount,size=1m small
    through through-close || fail "a program that ignores errors: $(cat err)"
    ! grep -q "^tapioca: close" err || fail "a set was not closed: $(cat err)"
    shown "sound: [0-9]+ B" verify small/got
    shown "the set is as it was" join small/got -o plain
fi

# bad input
refused "unknown command frob" frob
refused "nope: No such file" verify nope
refused "orig does not consist of subfiles" verify orig
refused "kept is a directory: name the file" verify kept
refused "orig does not consist of subfiles" recover orig
refused "orig does not consist of subfiles" list orig
refused "nope: No such file" list nope
refused "PATH is required" verify
refused "PATH is required" join
refused "subfiles is required" split orig
refused "expected a number from 1 to 65536" split orig --subfiles 0
refused "expected a number from 1 to 65536" split orig --subfiles 70000
refused "not expected: --frob" list --frob
refused "not expected: --frob" join --frob orig
answered 1 "nope: No such file" join nope
one_line
mkdir none
shown "no files that consist of subfiles" list none
"$bin/tapioca" subfile --help | grep -q recover || fail "no help"
for each in list verify join split recover; do
    "$bin/tapioca" subfile $each --help | grep -q -e --help || fail "no help for $each"
done
echo "subfile_test: all as expected"
