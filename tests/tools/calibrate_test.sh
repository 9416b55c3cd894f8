#!/usr/bin/env bash
# calibrate_test.sh BIN: tapioca calibrate from a user's side: what it shows and writes, and bad arguments.
set -euo pipefail
bin=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-calibrate-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset TAPIOCA_PLATFORM TAPIOCA_RANKS_PER_NODE

fail() { echo "calibrate_test: $*" >&2; cat "$work/out" >&2; exit 1; }

calibrated() { # ARGUMENTS...: writes $work/m.toml
    rm -f "$work/m.toml"
    "$bin/tapioca" calibrate --quick --dir "$work/target" --output "$work/m.toml" "$@" >"$work/out" 2>"$work/err" ||
        { cat "$work/err"; fail "tapioca calibrate $* failed"; }
    [ "$(ls -A "$work" | sort | xargs)" = "err m.toml out target" ] || fail "left behind: $(ls -A "$work")"
    [ -z "$(ls -A "$work/target")" ] || fail "left behind: $(ls -A "$work/target")"
    "$bin/tapioca" info --platform "$work/m.toml" >"$work/info" || fail "tapioca info does not read it"
    cat "$work/info" >>"$work/out"
    rm "$work/info"
}

shown() { grep -qE -- "$1" "$work/out" || fail "no '$1'"; }
written() { grep -qE -- "$1" "$work/m.toml" || { cat "$work/m.toml"; fail "no '$1' in the file"; }; }

refused() { # WORDS-IN-THE-ANSWER ARGUMENTS...
    local words=$1 status=0
    shift
    "$bin/tapioca" calibrate -n 2 "$@" >"$work/out" 2>&1 || status=$?
    [ $status -eq 2 ] || fail "status $status from: tapioca calibrate $*"
    grep -qe "$words" "$work/out" || fail "no '$words' in the answer to: tapioca calibrate $*"
    [ "$(wc -l <"$work/out")" -eq 1 ] || fail "more than one line in answer to: tapioca calibrate $*"
}

mkdir "$work/target"
cd "$work"

# one node: no links to measure
calibrated -n 2
shown '^ +link .* none: not measured$'
shown '^ +dram .* 1$'
shown '^ +1 +[0-9.]+ [MG]B/s +[0-9.]+ [MG]B/s$'
shown '^ +2 +[0-9.]+ [MG]B/s +[0-9.]+ [MG]B/s$'
shown '^ +enough: [12].* to write, [12].* to read'
shown '^ +figures: m measured$'
written '^# Not measured, for want of nodes: level link'
written '^name = "measured on .*, 20'
written "^hosts = \[\"$(uname -n)\"\]"

# two pretended nodes
export TAPIOCA_RANKS_PER_NODE=1
calibrated -n 2 --tier "ssd:$work/target" --tier dram
shown '^ +link .*B/s +1$'
shown "^ +ssd:$work/target +.* 2$"
shown '^network +flat of 2 nodes'
written '^nodes = 2$'
written '^name = "ssd:'
! grep -q '^# Not measured' "$work/m.toml" || fail "something was not measured"
grep -q '^links 1 of 1: link, ranks 0 and 1$' "$work/err" || fail "no progress"

# a machine of which the job is a part keeps its shape, and figures of what the job does not reach
calibrated -n 3 --platform fat-tree
shown '^network +fat_tree of 512 nodes'
shown '^ +[^ ].* 2$'
shown 'none: not measured$'
unset TAPIOCA_RANKS_PER_NODE

# what is there is kept
cp m.toml before
refused "m.toml already exists: use --force to replace it" --output "$work/m.toml"
cmp m.toml before || fail "a file was overwritten"
rm before
"$bin/tapioca" calibrate -n 1 --quick --force --output "$work/m.toml" >"$work/out" 2>&1 || fail "--force failed"
written '^# Written by tapioca calibrate: 1 rank on 1 node'

# a failure in the middle: one line of ours from whatever many ranks, nothing left
status=0
"$bin/tapioca" calibrate -n 2 --quick --dir "$work/target" --tier ssd:/nope --output x.toml >"$work/out" 2>&1 || status=$?
[ $status -eq 1 ] || fail "status $status for a tier that is not there"
[ "$(grep -c '^tapioca-calibrate: ssd tier: /nope: No such file' "$work/out")" = 1 ] || fail "not one line"
[ ! -e x.toml ] || fail "x.toml was written"

"$bin/tapioca" calibrate --help | grep -q -e --quick || fail "no help"
refused "not expected: --frob" --frob
refused "/nope is not a directory" --dir /nope
refused "cannot write" --output "$work/none/m.toml"
refused "did you mean 'theta'" --platform thetta
refused "expected a number of ranks" -n none
echo "calibrate_test: all as expected"
