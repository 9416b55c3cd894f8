#!/usr/bin/env bash
# plan_test.sh BIN CMAKE: tapioca plan from a user's side: the papers' example, tables, JSON, pictures, bad arguments.
set -euo pipefail
bin=$1 cmake=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-plan-test.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "plan_test: $*" >&2; head -n 40 "$work/out" >&2; exit 1; }

shown() { # REGULAR-EXPRESSION ARGUMENTS...: a line of the output
    local words=$1
    shift
    "$bin/tapioca" plan "$@" >"$work/out" 2>&1 || fail "tapioca plan $* failed"
    grep -qE "$words" "$work/out" || fail "no '$words' from: tapioca plan $*"
}

refused() { # WORDS-IN-THE-ANSWER ARGUMENTS...
    local words=$1 status=0
    shift
    "$bin/tapioca" plan "$@" >"$work/out" 2>&1 || status=$?
    [ $status -eq 2 ] || fail "status $status from: tapioca plan $*"
    grep -qe "$words" "$work/out" || fail "no '$words' in the answer to: tapioca plan $*"
    [ "$(wc -l <"$work/out")" -eq 1 ] || fail "more than one line in answer to: tapioca plan $*"
}

value() { # KEYS...: of the JSON in $work/out
    cat >"$work/value.cmake" <<-END
	file(READ "$work/out" text)
	string(JSON value GET "\${text}" $*)
	message("\${value}")
	END
    "$cmake" -P "$work/value.cmake" 2>&1
}

cd "$work"
# The papers' toy: 10, 50, 20 and 5 MB do not come out of a distribution, but P1 is nearest to everybody anyway.
toy=(--platform paper-toy --ppn 1 --workload array1d:40M,normal --model paper-2024 --aggregators 1)
shown '^ +0 +1 +hbm ' "${toy[@]}" --explain
shown 'in nvr$' "${toy[@]}" --tier nvr
shown 'in nvr$' "${toy[@]}" --persistency job

theta=(--platform theta --nodes 1024 --ppn 16 --workload hacc:25000,aos --aggregators 192)
shown '^  write 192 aggregators' "${theta[@]}"
shown 'placed by CONTENTION_AWARE with model default on theta' "${theta[@]}"
shown '^RANK_ORDER +192 ' "${theta[@]}" --compare
[ "$(grep -cE '^(RANK_ORDER|SHORTEST_PATH|LONGEST_PATH|TOPOLOGY_AWARE|CONTENTION_AWARE) ' "$work/out")" -eq 5 ] ||
    fail "not all strategies are compared"
shown '"places"' "${theta[@]}" --json
[ "$(value write places 191 rivals 0 tier)" = dram ] || fail "no rival in the JSON"
shown 'drawn plan.svg' "${theta[@]}" --svg plan.svg
grep -q '</svg>' plan.svg || fail "no whole picture"
# 16 GiB over 4 MiB are 4096; with 1024 each writes more than a block.
shown '^  write 1024 aggregators' --platform mira --nodes 256 --ppn 16 --workload interleaved:4K,4M --aggregators poster --buffersize 2M --buffers 2
shown 'direct' --platform laptop --ppn 2 --workload array1d:100M

refused "did you mean 'theta'" --platform teta
refused '--nodes 9999' --platform theta --nodes 9999
refused '--workload hack:5: did you mean hacc' --workload hack:5
refused 'expected hacc:PARTICLES' --workload hacc:0
refused '--strategy FAST: expected one of' --strategy FAST
refused '--aggregators none' --aggregators none
refused 'no node has the tier tape' --platform theta --nodes 16 --tier tape
refused 'an aggregator takes' --platform theta --nodes 16 --tier hbm --buffersize 512M --buffers 64 --aggregators 4
refused 'TAPIOCA_PERSISTENCY=permanent' --platform theta --nodes 16 --persistency permanent --aggregators 4
refused 'plan.svg' "${theta[@]}" --svg no/such/plan.svg
refused 'nothing is placed' --platform laptop --ppn 2 --svg plan.svg
printf '[topology]\nkind = "torus"\nnodes = 9\ndimensions = [2, 4]\n' >bad.toml
refused 'bad.toml:4:' --platform ./bad.toml
echo "tapioca plan: ok"
