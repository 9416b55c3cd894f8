#!/usr/bin/env bash
# Runs a program on 4 ranks without and with the drop-in library, and compares what it printed and the files it wrote:
#   programs_test.sh [OPTIONS] LIBRARY LAUNCHER... -- PROGRAM...
#   --serves CALLS   data access calls, such as "write_all read_all", of which the report must say that some were served
#   --output-only    the program checks its files itself; they may differ in holes
#   --with-only      the program hangs without the library
#   --staged         TAPIOCA_STAGE=dram, of which the report must tell; without --with-only in one more run, where the
#                    results must be the same
#   --subfiled TAPIOCA  in one more run, files consist of subfiles, which the command TAPIOCA joins; the results must be
#                    the same
#   --on-nodes TAPIOCA  in one more run, each two ranks are a node, and files consist of subfiles on the nodes' own
#                    directories, from where the command TAPIOCA drains them; the results must be the same
#   --says TEXT      what the program with the library must say on its error output, in one line (may be repeated)
#   --tool FILE      another library that is preloaded, before ours and after it
#   --skip REASON    says so and is skipped
set -euo pipefail

fail() { echo "programs_test: $*" >&2; exit 1; }

serves="" output_only="" with_only="" staged="" subfiled="" on_nodes="" tool="" says=()
while [ $# -gt 0 ]; do
    case $1 in
    --serves) serves=$2; shift 2 ;;
    --output-only) output_only=yes; shift ;;
    --with-only) with_only=yes; shift ;;
    --staged) staged=yes; shift ;;
    --subfiled) subfiled=$2; shift 2 ;;
    --on-nodes) on_nodes=$2; shift 2 ;;
    --says) says+=("$2"); shift 2 ;;
    --tool) tool=$2; shift 2 ;;
    --skip) echo "skipped: $2"; exit 77 ;;
    --*) fail "unknown option $1" ;;
    *) break ;;
    esac
done
[ $# -gt 1 ] || fail "no library and launcher"
library=$1
shift
launcher=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do launcher+=("$1"); shift; done
[ $# -gt 1 ] || fail "no program after --"
shift
program=("$@")
[ -r "$library" ] || fail "no library $library"

work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-programs-test.XXXXXX")
trap 'rm -rf "$work"' EXIT

run() { # NAME PRELOADED: in a folder of that name, with the libraries preloaded in the ranks alone
    local name=$1 status=0
    mkdir "$work/$name"
    cd "$work/$name"
    timeout -k 5 100 "${launcher[@]}" -n 4 bash -c '
        if [ -n "${NODES-}" ]; then  # the descriptor 99 of each two ranks is a directory of their own; launchers use lower ones
            node=$NODES/$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / 2))
            mkdir -p "$node"
            exec 99<"$node"
        fi
        if [ -n "$0" ]; then LD_PRELOAD=$0${LD_PRELOAD:+:$LD_PRELOAD}; export LD_PRELOAD; fi
        exec "$@"' "$2" "${program[@]}" >"$work/$name.out" 2>"$work/$name.err" || status=$?
    [ $status -eq 0 ] || {
        tail -n 30 "$work/$name.out" "$work/$name.err" >&2
        fail "$name the library: status $status from ${program[*]}"
    }
}

same_output() { # NAME NAME
    diff "$work/$1.out" "$work/$2.out" >&2 || fail "other output $2 than $1"
}

# HDF5 leaves times and what was in memory in its files, so that they are compared by what they hold.
same_files() { # NAME NAME
    local file
    diff <(cd "$work/$1" && ls) <(cd "$work/$2" && ls) >&2 || fail "other files $2 the library than $1"
    for file in "$work/$1"/*; do
        case $file in
        *.h5)
            if command -v h5diff >/dev/null; then
                h5diff "$file" "$work/$2/${file##*/}" >&2 || fail "${file##*/} differs"
            else
                echo "no h5diff (package hdf5-tools): ${file##*/} is compared by what the program read"
            fi
            ;;
        *) cmp "$file" "$work/$2/${file##*/}" >&2 || fail "${file##*/} differs" ;;
        esac
    done
}

# The report has for each file, and each kind of call: {"call": "MPI_File_write_all", "served": 3, ...}.
calls_were_served() {
    local call
    [ -s "$work/report.json" ] || fail "no report: the library was not there"
    for call in $serves; do
        tr -d ' \n' <"$work/report.json" | grep -qE "\"call\":\"MPI_File_$call\",\"served\":[1-9]" || {
            grep -A1 '"call"' "$work/report.json" >&2
            fail "no $call was served"
        }
    done
}

was_staged() {
    tr -d ' \n' <"$work/report.json" | grep -qE '"stage":\{"tier":"dram".*"requests":[1-9]' || fail "nothing was staged"
}

drain_files() { # NAME: every node brings what it has; at least two must have something
    local stub node drained=0
    for node in "$work/nodes"/*; do
        [ -z "$(ls "$node")" ] || drained=$((drained + 1))
        for stub in "$work/$1"/*.subfiles; do
            # Other nodes have the same host name, so that what they still have counts as missing here.
            (exec 99<"$node"; "$on_nodes" target drain "${stub%.subfiles}") >"$work/drain.out" 2>&1 || true
        done
        [ -z "$(ls "$node")" ] || { cat "$work/drain.out" >&2; fail "something is left on a node: $(ls "$node"/*)"; }
    done
    [ $drained -gt 1 ] || fail "only $drained nodes had subfiles"
}

# Every file that consists of subfiles becomes a plain one.
join_files() { # NAME TAPIOCA
    local stub joined=0 tapioca=$2
    for stub in "$work/$1"/*.subfiles; do
        [ -d "$stub" ] || break
        "$tapioca" subfile verify "${stub%.subfiles}" >"$work/verify.out" 2>&1 || { cat "$work/verify.out" >&2; fail "a set that is not sound"; }
        "$tapioca" subfile join "${stub%.subfiles}" >"$work/join.out" 2>&1 || { cat "$work/join.out" >&2; fail "cannot join"; }
        joined=$((joined + 1))
    done
    [ $joined -gt 0 ] || fail "no file consists of subfiles"
}

[ -n "$with_only" ] || run without ""
# What was given back must not be used again.
export TAPIOCA_REPORT=$work/report.json BEHAVIOUR_STRICT=1 MALLOC_PERTURB_=165
if [ -n "$staged" ] && [ -n "$with_only" ]; then export TAPIOCA_STAGE=dram; fi
run with "$library"
[ -z "$serves" ] || calls_were_served
[ -z "${TAPIOCA_STAGE-}" ] || was_staged
for text in ${says+"${says[@]}"}; do
    [ "$(grep -c -- "$text" "$work/with.err")" = 1 ] || { cat "$work/with.err" >&2; fail "not one line: $text"; }
done
cat "$work/with.out"
if [ -n "$staged" ] && [ -z "$with_only" ]; then
    rm -f "$TAPIOCA_REPORT"
    export TAPIOCA_STAGE=dram
    run staged "$library"
    unset TAPIOCA_STAGE
    [ -z "$serves" ] || calls_were_served
    was_staged
    same_output without staged
    [ -n "$output_only" ] || same_files without staged
fi
if [ -n "$subfiled" ]; then
    rm -f "$TAPIOCA_REPORT"
    export TAPIOCA_SUBFILE=files:2
    run subfiled "$library"
    unset TAPIOCA_SUBFILE
    [ -z "$serves" ] || calls_were_served
    join_files subfiled "$subfiled"
    same_output without subfiled
    [ -n "$output_only" ] || same_files without subfiled
fi
if [ -n "$on_nodes" ]; then
    rm -f "$TAPIOCA_REPORT"
    export NODES=$work/nodes TAPIOCA_TARGET=ssd:/proc/self/fd/99 TAPIOCA_TARGET_THROUGH=1K TAPIOCA_RANKS_PER_NODE=2
    run on_nodes "$library"
    unset NODES TAPIOCA_TARGET TAPIOCA_TARGET_THROUGH TAPIOCA_RANKS_PER_NODE
    [ -z "$serves" ] || calls_were_served
    drain_files on_nodes
    join_files on_nodes "$on_nodes"
    same_output without on_nodes
    [ -n "$output_only" ] || same_files without on_nodes
fi
if [ -z "$with_only" ]; then
    same_output without with
    [ -n "$output_only" ] || same_files without with
fi
if [ -n "$tool" ]; then
    unset TAPIOCA_REPORT
    run tool_alone "$tool"
    run tool_first "$tool:$library"
    run tool_last "$library:$tool"
    grep "^profiler:" "$work/tool_alone.out" || fail "the tool did not count"
    same_output tool_alone tool_first
    same_output tool_alone tool_last
fi
