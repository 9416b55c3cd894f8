#!/usr/bin/env bash
# memory_test.sh BIN
# The example of named memory: the first run allocates the field, the second one finds it and frees it.
set -euo pipefail
bin=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-memory-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "memory_test: $*" >&2; exit 1; }
for wanted in allocated "found: 20.5 degrees"; do
    "$bin/memory" "ssd:$work" >"$work/said" || fail "failed: $(cat "$work/said")"
    [ "$(tail -1 "$work/said")" = "$wanted" ] || fail "not '$wanted': $(cat "$work/said")"
done
[ "$(ls "$work")" = said ] || fail "left behind: $(ls "$work")"
! "$bin/memory" "ssd:$work/nowhere" 2>"$work/said" || fail "a tier that does not exist is no error"
[ "$(wc -l <"$work/said")" = 1 ] || fail "not one line: $(cat "$work/said")"
