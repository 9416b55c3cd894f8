#!/usr/bin/env bash
# stage_crash_test.sh BIN TAPIOCA-CLUSTER OPTIONS...: a job on four hosts is killed, with a log on each host's own SSD;
# one host alone names the logs that it does not see, all hosts together recover the file. OPTIONS choose the MPI,
# MAPPINGS="process node" both mappings.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../support/jobs.sh"
bin=$1 tool=$2
shift 2
mpi=("$@")
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-stage-crash.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset TAPIOCA_STAGE TAPIOCA_STAGE_MAPPING
fail() { echo "stage_crash_test: $*" >&2; cat "$work/out" >&2; exit 1; }

box() { # SHAPE COMMAND...
    "$tool" "$1" "${mpi[@]}" --timeout 60 --shared "$work" -- \
        unshare --mount sh -c "$with_ssd" sh '{shared}' "${@:2}" >"$work/out" 2>&1
}

: >"$work/before"
for mapping in ${MAPPINGS:-process}; do
    rm -rf "$work"/ssd-* "$work/d" && mkdir "$work/d" "$work"/ssd-n{0..3}
    : >"$work/file"
    status=0
    box 4x2 env TAPIOCA_STAGE=ssd:/run/cluster/ssd TAPIOCA_STAGE_MAPPING=$mapping TAPIOCA_STAGE_DRAIN=off CRASH_RANK=5 \
        "$bin/crash_worker" 12 {shared}/file /run/cluster/ssd {shared}/d || status=$?
    [ $status -ne 77 ] || { cat "$work/out"; exit 77; }
    [ $status -ne 0 ] && [ -e "$work/file.tapioca" ] || fail "the job was not killed"
    for host in n0 n1 n2 n3; do ls "$work/ssd-$host"/tapioca-*/*.meta >/dev/null || fail "no log on $host"; done
    if box 1x1 "$bin/tapioca-recover" {shared}/file; then fail "recovered without three hosts"; fi
    grep ^missing "$work/out" | sed 's/:.*tapioca-[0-9a-f]*//' >"$work/missing" || true
    if [ $mapping = process ]; then
        for rank in 2 3 4 5 6 7; do echo "missing/rank$rank.meta (rank $rank)"; done
    else
        for node in 1 2 3; do echo "missing/node$node.meta (ranks $((2 * node)) to $((2 * node + 1)))"; done
    fi | diff - "$work/missing" || fail "not the logs that are missing"
    grep -q "^missing: n3: /run/cluster/ssd/" "$work/out" || fail "the host of a log is not told"
    box 4x1 "$bin/tapioca-recover" {shared}/file || fail "not recovered"
    [ ! -e "$work/file.tapioca" ] || fail "the marker is left"
    [ -z "$(ls "$work"/ssd-n?)" ] || [ -z "$(ls -A "$work"/ssd-n?/* 2>/dev/null)" ] || fail "logs are left"
    "$bin/crash_check" 12 8 "$work/file" "$work/before" "$work/d" >"$work/out" || fail "not what was written"
    [ "$(cut -d ' ' -f 1 "$work/out")" -gt 1000 ] || fail "nothing was written"
done
echo "stage_crash_test: all as expected"
