#!/usr/bin/env bash
# bench_test.sh BIN CMAKE: the tapioca command from a user's side: every workload, the JSON, and bad arguments.
set -euo pipefail
bin=$1 cmake=$2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-bench-test.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "bench_test: $*" >&2; exit 1; }

cells() { # COUNT WORKLOAD ARGUMENTS...
    local count=$1
    shift
    "$bin/tapioca" bench -n 2 "$@" --reps 2 --dir "$work" --json "$work/cells.json" >"$work/out" 2>&1 ||
        { cat "$work/out"; fail "tapioca bench $* failed"; }
    grep -qE "every byte written( and read)? was verified" "$work/out" || fail "tapioca bench $*: no word of verification"
    "$cmake" -D FILE="$work/cells.json" -D COUNT="$count" -P "$here/check_cells.cmake"
    [ "$(ls "$work" | sort | xargs)" = "cells.json out" ] || fail "left behind: $(ls "$work")"
    rm "$work/cells.json"
}

refused() { # WORDS-IN-THE-ANSWER COMMAND...
    local words=$1
    shift
    if "$@" >"$work/out" 2>&1; then fail "accepted: $*"; fi
    grep -qe "$words" "$work/out" || { cat "$work/out"; fail "no '$words' in the answer to: $*"; }
    [ "$(wc -l <"$work/out")" -le 3 ] || { cat "$work/out"; fail "a long answer to: $*"; }
}

cells 32 hacc --particles 500
cells 32 hacc --particles 500 --sizes normal --seed 7 --heavy last --share 0.9
grep -q "normal sizes (seed 7), 0.9 of the data on the last half" "$work/out" || fail "no word of sizes"
cells 2 hacc --particles 1000 --layout soa --methods tapioca --write-only --heavy first --share 1 --switches 2
grep -q "switches, write: 0.000 MB must cross" "$work/out" || fail "something must cross though one half has all"
cells 16 interleaved --block 64 --bytes 64K
cells 16 interleaved --block 64 --bytes 64K --declare list
cells 48 array1d --bytes 10000
cells 24 interleaved --block 64 --bytes 64K --dropin
grep -q "through TAPIOCA" "$work/out" || fail "no rows through the drop-in library"
grep -q "opening and closing a file that nobody uses" "$work/out" || fail "no word of opening"
cells 16 interleaved --block 4 --bytes 4K --declare list --dropin --methods tapioca,collective,limit
cells 4 array1d --bytes 10000 --distribution uniform --methods tapioca,limit --write-only --fsync

cells 4 array1d --bytes 1M --distribution uniform --methods tapioca,limit --write-only --limit-call 64K --link 1gbit
grep -q "links, write: nothing crosses" "$work/out" || fail "no word of links"

# Whole files, in phases; logs and copies on the fast tier leave nothing behind either.
mkdir "$work.stage"
trap 'rm -rf "$work" "$work.stage"' EXIT
cells 12 strided --block 4K --bytes 64K --stage "ssd:$work.stage" --dropin
grep -q "strided, 16 calls of 4096 bytes a rank" "$work/out" || fail "no title of a strided run"
grep -q "through, staged" "$work/out" || fail "no row through the drop-in library's log"
[ "$(awk '/%/ { if (length > most) most = length } END { print most }' "$work/out")" -le 100 ] || fail "a table wider than 100"
cells 3 segmented --block 3000 --bytes 64000 --methods staged,flattened-log,collective --fsync
cells 6 interleaved --block 64 --bytes 16K --declare list --steps 3 --methods limit,staged-node,stage-out,flattened-log,log-limit,collective
cells 9 hacc --layout aos --particles 500 --steps 2 --compute 0.01 --stage "ssd:$work.stage" --stage-drain on
grep -q "held up" "$work/out" || fail "no word of how long the application is held up"
[ -z "$(ls "$work.stage")" ] || fail "left behind on the fast tier: $(ls "$work.stage")"

# Every way that could have been taken, beside the one that was.
"$bin/tapioca" bench -n 2 segmented --block 4K --bytes 64K --ways --dropin --reps 2 --dir "$work" --json "$work/cells.json" \
    >"$work/out" 2>&1 || { cat "$work/out"; fail "tapioca bench --ways failed"; }
for words in "direct " "1 aggregator " "2 aggregators " "left to the MPI library" "learning, later steps" "^4 cells: regret"; do
    grep -qe "$words" "$work/out" || { cat "$work/out"; fail "--ways has no '$words'"; }
done
grep -q "every byte written and read was verified" "$work/out" || fail "--ways verified nothing"
[ "$(grep -c '"regret":' "$work/cells.json")" = 4 ] || fail "not four cells of ways"
[ "$(ls "$work" | sort | xargs)" = "cells.json out" ] || fail "left behind: $(ls "$work")"
refused "has its own methods" "$bin/tapioca" bench -n 2 hacc --ways --methods tapioca
# Calls that come again go all the ways in turns, one of them through the MPI library alone, and write the same bytes.
mkdir "$work.report"
TAPIOCA_LEARN=always TAPIOCA_REPORT=$work.report/report.json "$bin/tapioca" bench -n 2 segmented --block 4K --bytes 64K --dropin \
    --methods collective --reps 2 --dir "$work" >"$work/out" 2>&1 || { cat "$work/out"; fail "TAPIOCA_LEARN=always failed"; }
grep -q "every byte written was verified" "$work/out" || fail "TAPIOCA_LEARN=always verified nothing"
grep -q "the MPI library is faster, or is tried" "$work.report/report.json" || fail "nothing was left to the MPI library"
rm -r "$work.report"

"$bin/tapioca" bench -n 4 election --partitions 1,3,8 --reps 2 --dir "$work" --json "$work/cells.json" >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "tapioca bench election failed"; }
grep -q "4 ranks on 4 nodes" "$work/out" || fail "no four nodes"
[ "$(grep -c '"method": "\(split\|group\|declare\)"' "$work/cells.json")" = 9 ] || fail "not nine cells of elections"
"$bin/tapioca" bench -n 2 halo --edge 4,9 --dimensions 2 --reps 2 --dir "$work" --json "$work/cells.json" >"$work/out" 2>&1 ||
    { cat "$work/out"; fail "tapioca bench halo failed"; }
grep -q "every byte read was verified" "$work/out" || fail "tapioca bench halo verified nothing"
[ "$(grep -c '"method": "\(packed\|in_place\|by_hand\)"' "$work/cells.json")" = 12 ] || fail "not twelve cells of halos"
[ "$(ls "$work" | sort | xargs)" = "cells.json out" ] || fail "left behind: $(ls "$work")"

# A simulation and an analysis, by every way, with all that can happen to the cache between them.
ways=$("$bin/tapioca" bench workflow --help | grep -o "mpi-io,file,buffers[a-z,]*" | tr , '\n' | wc -l)
mkdir "$work.ssd"
trap 'rm -rf "$work" "$work.stage" "$work.ssd"' EXIT
cells $((ways * 3)) workflow --particles 1000 --steps 2 --ssd "$work.ssd"
grep -q "there is one node: every rank reads what the next rank wrote" "$work/out" || fail "no word of who reads"
grep -q "caches of files are left as they are" "$work/out" || fail "no word of caches"
grep -q "2 steps: 0.038 MB a rank and step, 2 ranks on 1 node" "$work/out" || fail "no title of a workflow"
[ "$(grep -c "MPI-IO collective" "$work/out")" = 4 ] || fail "not four figures of MPI-IO"
[ "$(awk '/%/ { if (length > most) most = length } END { print most }' "$work/out")" -le 100 ] || fail "a table wider than 100"
cells $((ways * 3)) workflow --particles 500 --ssd "$work.ssd" --ranks-per-node 1 --between drop --layout soa --fsync
grep -q "what a rank of the next node wrote" "$work/out" || fail "the next node does not read"
case $(stat -f -c %T "$work") in
    ext2/ext3 | xfs) emptied="are emptied" ;;
    *) emptied="(are emptied|CANNOT be emptied: they keep up to [0-9]+ % of the data)" ;;
esac
grep -qE "caches of files $emptied" "$work/out" || { cat "$work/out"; fail "no word of whether the caches could be emptied"; }
cells 6 workflow --particles 500 --ssd "$work.ssd" --between fill --fill 2M --same-ranks --methods buffers,mpi-io
grep -q "each node moves 2 MB of other data" "$work/out" || fail "no word of other data"
grep -q "every rank reads what it wrote" "$work/out" || fail "the same ranks do not read"
grep -q "SSD target\|file system" "$work/out" && fail "a method that was not asked for"
if [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then # has nothing but memory
    "$bin/tapioca" bench -n 2 workflow --particles 500 --ssd "$work.ssd" --dir /dev/shm --between drop --reps 1 >"$work/out" 2>&1 ||
        { cat "$work/out"; fail "tapioca bench workflow on tmpfs failed"; }
    grep -q "CANNOT be emptied: they keep up to 100 %" "$work/out" || fail "a tmpfs was emptied"
fi
[ -z "$(ls -A "$work.ssd")" ] || fail "left behind on the SSD: $(ls "$work.ssd")"

"$bin/tapioca" --help | grep -q "tapioca bench" || fail "no usage"
"$bin/tapioca" --version | grep -q "^tapioca [0-9]" || fail "no version"
"$bin/tapioca" bench hacc --help | grep -q particles || fail "no help for hacc"
refused "TAPIOCA_SUBFILE=node: the benchmark writes plain files: .*--subfile" env TAPIOCA_SUBFILE=node "$bin/tapioca" bench -n 2 hacc
refused "TAPIOCA_TARGET=ssd:/tmp: the benchmark .*workflow" env TAPIOCA_TARGET=ssd:/tmp "$bin/tapioca" bench -n 2 hacc
refused "unknown command frob" "$bin/tapioca" frob
refused "expected a number of ranks" "$bin/tapioca" bench -n zero hacc
refused "needs a value" "$bin/tapioca" bench -n
refused "Directory does not exist" "$bin/tapioca" bench -n 2 hacc --dir "$work/none"
refused "not in" "$bin/tapioca" bench -n 2 hacc --layout soap
refused "unit not recognized" "$bin/tapioca" bench -n 2 interleaved --block 64x
refused "expected a rate" "$bin/tapioca" bench -n 2 hacc --link fast
refused "not in range" "$bin/tapioca" bench -n 2 hacc --limit-call 0
refused "not in" "$bin/tapioca" bench -n 2 hacc --heavy middle
refused "not in range" "$bin/tapioca" bench -n 2 hacc --share 2
refused "for whole files only" "$bin/tapioca" bench -n 2 hacc --methods staged
refused "unknown tier disc: this node has dram" "$bin/tapioca" bench -n 2 strided --stage disc
refused "ssd tier: $work/none: No such file" "$bin/tapioca" bench -n 2 strided --stage "ssd:$work/none"
refused "expected on, off or bytes per second" "$bin/tapioca" bench -n 2 strided --stage-drain often
refused "more than a million calls" "$bin/tapioca" bench -n 2 strided --block 1
refused "not in range" "$bin/tapioca" bench -n 2 hacc --compute -1
refused "excludes" "$bin/tapioca" bench -n 2 hacc --steps 2 --explain
refused "not in range" "$bin/tapioca" bench -n 2 election --partitions 0
refused "frob not in" "$bin/tapioca" bench -n 2 workflow --between frob
refused "Directory does not exist" "$bin/tapioca" bench -n 2 workflow --ssd "$work/none"
refused "not in" "$bin/tapioca" bench -n 2 workflow --methods tapioca
refused "cannot write" "$bin/tapioca" bench -n 2 hacc --json "$work/none/cells.json"
refused "cannot start" "$bin/tapioca" bench --mpiexec "$work/none" hacc
echo "bench_test: all as expected"
