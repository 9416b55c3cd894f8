#!/usr/bin/env bash
# info_test.sh BIN CMAKE: tapioca info from a user's side: described machines, the JSON, and bad arguments.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
verb=info
. "$here/verb.sh"

narrow() { # as shown(); and it fits a terminal, paths aside
    shown "$@"
    [ "$(grep -v / "$work/out" | wc -L)" -le 100 ] || fail "lines longer than 100 columns"
}

shown '^ +dram .* GB/s' --dir "$work"
narrow '^network +one host: no network'
shown "^target +$work: " --dir "$work/."
shown '^target +/dev/shm: tmpfs' --dir /dev/shm
[ "$(ls -A "$work")" = out ] || fail "left behind: $(ls -A "$work")"

narrow '^network +torus of 4096 nodes' --platform mira
narrow '^ +hbm .* p .*NUMA 1$' --platform theta
shown '^target +/dev/shm: tmpfs' --platform theta --dir /dev/shm
shown '.' --platform theta --json
[ "$(value platform topology)" = dragonfly ] || fail "no topology in the JSON"

export HWLOC_XMLFILE=$here/../golden/dram_hbm_nvm.xml
narrow '2 sockets, 8 cores, 6 NUMA nodes'
shown '^ +hbm +100 ns h +419\.4 GB/s h +419\.4 GB/s h +32 GiB h +none +NUMA 1,4$'
shown '.' --json
[ "$(value tiers 0 name)" = hbm ] || fail "hbm is not the first tier of the JSON"
[ "$(value tiers 0 latency_s origin)" = hwloc ] || fail "no origin in the JSON"
[ "$(value host numa_nodes)" = 6 ] || fail "no NUMA nodes in the JSON"
[ "$(value target directory)" = "$work" ] || fail "no directory in the JSON"
unset HWLOC_XMLFILE

"$bin/tapioca" info --help | grep -q -e --platform || fail "no help"
refused "not expected: --frob" --frob
refused "Directory does not exist: /nope" --dir /nope
refused "platform" --platform
refused "nope" --platform nope
echo "info_test: all as expected"
