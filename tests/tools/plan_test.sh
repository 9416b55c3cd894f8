#!/usr/bin/env bash
# plan_test.sh BIN CMAKE: tapioca plan from a user's side: the papers' example, tables, JSON, pictures, bad arguments.
set -euo pipefail
verb=plan
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/verb.sh"

# The papers' toy: Table 2, in ms, the winner first.
toy=(--platform paper-toy --ppn 1 --workload sizes:10M,50M,20M,5M --model paper-2024 --aggregators 1)
shown ' 1 +hbm .* 469\.918  3 hbm 502\.945; 0 hbm 592\.609; 2 hbm 741\.936$' "${toy[@]}" --explain
shown ' 1 +dram .* 479\.918  3 dram 512\.945; 0 dram 602\.609; 2 dram 751\.936$' "${toy[@]}" --explain --tier dram
shown ' 1 +nvr .* 2020\.026  3 nvr 2120\.026; 0 nvr 2350\.026; 2 nvr 2710\.026$' "${toy[@]}" --explain --tier nvr
shown 'in nvr$' "${toy[@]}" --tier nvr
shown 'in nvr$' "${toy[@]}" --persistency job

theta=(--platform theta --nodes 1024 --ppn 16 --workload hacc:25000,aos --aggregators 192)
shown '^  write 192 aggregators' "${theta[@]}"
shown 'placed by CONTENTION_AWARE with model default on theta' "${theta[@]}"
shown '^RANK_ORDER +192 ' "${theta[@]}" --compare
[ "$(grep -cE '^(RANK_ORDER|BRIDGE_FIRST|SHORTEST_PATH|LONGEST_PATH|TOPOLOGY_AWARE|CONTENTION_AWARE) ' "$work/out")" -eq 6 ] ||
    fail "not all strategies are compared"
shown '"places"' "${theta[@]}" --json
[ "$(value write places 191 rivals 0 tier)" = dram ] || fail "no rival in the JSON"
shown 'drawn plan.svg' "${theta[@]}" --svg plan.svg
grep -q '</svg>' plan.svg || fail "no whole picture"
# 16 GiB over 4 MiB are 4096; with 1024 each writes more than a block.
shown '^  write 1024 aggregators' --platform mira --nodes 256 --ppn 16 --workload interleaved:4K,4M --aggregators poster --buffersize 2M --buffers 2
# The papers' numbers, and their Table 10: the tier that has room.
shown '^  write 192 aggregators' --platform theta --nodes 1024 --ppn 16 --workload hacc:25000,aos --aggregators paper
shown '^  write 128 aggregators' --platform mira --nodes 1024 --ppn 16 --workload hacc:25000,aos --aggregators paper
shown "as auto: the papers' rules need" --platform cooley --nodes 8 --aggregators paper
table10=(--platform theta-paper --nodes 256 --ppn 16 --workload array1d:40M,uniform --aggregators 96 --buffers 3 --buffersize 16M --model paper-2024)
shown 'each in hbm$' "${table10[@]}"
shown 'each in dram$' "${table10[@]}" --tier-capacity hbm=32M
shown 'each in ssd$' "${table10[@]}" --tier-capacity hbm=32M --tier-capacity dram=32M
refused 'tier-capacity tape=32M: no node has the tier tape: there are hbm, dram, ssd' "${table10[@]}" --tier-capacity tape=32M
refused 'tier-capacity hbm=big: expected a positive number of bytes' "${table10[@]}" --tier-capacity hbm=big
refused 'tier-capacity hbm: expected TIER=BYTES' "${table10[@]}" --tier-capacity hbm
refused '--model paper-2017: expected default, paper-2024, cluster-2017, poster or report-2017' --model paper-2017
# What passes gateways, and the way that is predicted to be the fastest.
mira=(--platform mira --nodes 1024 --ppn 16 --workload hacc:65000,aos)
shown '^        predicted to be the fastest: 128 aggregators .* direct ' "${mira[@]}"
shown '^        16 gateways to the file system: at most ' "${mira[@]}"
shown '"most_block_bytes"' "${mira[@]}" --json
shown 'direct' --platform laptop --ppn 2 --workload array1d:100M

refused "did you mean 'theta'" --platform teta
refused '--nodes 9999' --platform theta --nodes 9999
refused '--workload hack:5: did you mean hacc' --workload hack:5
refused 'expected hacc:PARTICLES' --workload hacc:0
refused 'for each of the 4 ranks' --platform paper-toy --ppn 1 --workload sizes:1M,2M
export TAPIOCA_PLATFORM=theta TAPIOCA_STRATEGY=RANK_ORDER
shown 'placed by RANK_ORDER with model default on theta' --nodes 16 --aggregators 4
shown 'placed by TOPOLOGY_AWARE' --nodes 16 --aggregators 4 --strategy TOPOLOGY_AWARE
TAPIOCA_STRATEGI=x refused 'did you mean TAPIOCA_STRATEGY' --nodes 16
unset TAPIOCA_PLATFORM TAPIOCA_STRATEGY
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
