#!/usr/bin/env bash
# make.sh: the machines of this folder as hwloc XML, but for captured_vm, which lstopo saw: two cores of a virtual
# machine. Bandwidths in MiB/s, latencies in ns; memory in bytes.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"

machine() { # NAME SYNTHETIC-DESCRIPTION
    file=$1.xml
    lstopo -i "$2" --of xml --force -f "$file"
}
# hwloc tells a node's kind in either of two places, depending on its version.
label() { hwloc-annotate "$file" "$file.new" "numa:$1" subtype "$2" && mv "$file.new" "$file"; }
tier() { hwloc-annotate "$file" "$file.new" "numa:$1" info MemoryTier "$2" && mv "$file.new" "$file"; }
attribute() { # NODE ATTRIBUTE CPUS VALUE
    hwloc-annotate "$file" "$file.new" "numa:$1" memattr "$2" "$3" "$4" && mv "$file.new" "$file"
}
GiB=$((1 << 30))

machine two_sockets "pack:2 [numa(memory=$((64 * GiB)))] core:4 pu:1"

machine knl "pack:1 [numa(memory=$((96 * GiB)))] [numa(memory=$((16 * GiB)))] core:8 pu:1"
label 1 MCDRAM

machine dram_hbm_nvm "pack:2 [numa(memory=$((64 * GiB)))] [numa(memory=$((16 * GiB)))] [numa(memory=$((1024 * GiB)))] core:4 pu:1"
node=0
for cpus in 0x0f 0xf0; do
    for kind in "DRAM 100000 80" "HBM 400000 100" "NVM 10000 300"; do
        read -r name bandwidth latency <<<"$kind"
        tier $node "$name"
        attribute $node Bandwidth $cpus "$bandwidth"
        attribute $node Latency $cpus "$latency"
        node=$((node + 1))
    done
done

# Nodes 2 and 3 belong to no socket; hwloc says of one what it is.
machine cxl "[numa(memory=$((256 * GiB)))] [numa(memory=$((32 * GiB)))] pack:2 [numa(memory=$((128 * GiB)))] core:4 pu:1"
label 2 CXL-DRAM
attribute 0 Bandwidth 0x0f 100000
attribute 1 Bandwidth 0xf0 100000
attribute 2 ReadBandwidth 0xff 32000
attribute 2 WriteBandwidth 0xff 20000
attribute 2 Latency 0xff 250
# As a firmware's table has it: a node's own memory is 10 away.
{
    printf '%s\n' name=NUMALatency $((1 | 4)) 4 numa:0 numa:1 numa:2 numa:3
    printf '%s\n' 10 21 17 14 21 10 17 24 17 17 10 28 14 24 28 10
} >"$file.distances"
hwloc-annotate "$file" "$file.new" root distances "$file.distances" && mv "$file.new" "$file" && rm "$file.distances"
