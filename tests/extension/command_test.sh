#!/usr/bin/env bash
# command_test.sh BIN PLATFORMS: a command with a verb and a workload more, which are used like its own.
set -euo pipefail
bin=$1 platforms=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-extension-test.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "extension: $*" >&2; cat "$work/out" >&2; exit 1; }

answers() { # STATUS WORDS-IN-THE-ANSWER ARGUMENTS...
    local expected=$1 words=$2 status=0
    shift 2
    "$bin/tapioca" "$@" >"$work/out" 2>&1 || status=$?
    [ $status -eq "$expected" ] || fail "status $status from: tapioca $*"
    grep -qe "$words" "$work/out" || fail "no '$words' in the answer to: tapioca $*"
}

# The verb.
answers 0 '^  tapioca parrot WORD\.\.\.$' --help
answers 0 '^  tapioca parrot pieces of eight$' --help
answers 0 '^polly$' parrot polly
answers 2 '^tapioca parrot: there is nothing to say$' parrot
answers 2 'unknown command parot: did you mean parrot?' parot

# The workload, planned and measured.
answers 0 'WORKLOAD is hacc, interleaved, array1d or backwards;' --help
answers 0 'backwards:BYTES' plan --help
plan=(plan --platform "$platforms/theta.toml" --nodes 4 --ppn 2 --aggregators 2)
answers 0 '8 ranks' "${plan[@]}" --workload backwards:1M
answers 0 'drawn' "${plan[@]}" --workload backwards:1M --svg "$work/plan.svg"
grep -q 'backwards, 1048576 bytes a rank' "$work/plan.svg" || fail "no word of the workload in the picture"
answers 2 'backwards:0: expected backwards:BYTES' "${plan[@]}" --workload backwards:0
answers 2 'backward:1M: did you mean backwards?' "${plan[@]}" --workload backward:1M
answers 0 'the last rank comes first' bench backwards --help
answers 0 'every byte written and read was verified' bench -n 2 backwards --bytes 64K --reps 1 --dir "$work" \
    --json "$work/cells.json"
grep -q '"workload": "backwards"' "$work/cells.json" || fail "no cells of the workload"
answers 106 'subcommand is required' bench -n 2 forwards
echo "extension: a verb and a workload more"
