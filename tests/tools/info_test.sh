#!/usr/bin/env bash
# info_test.sh BIN CMAKE: tapioca info from a user's side: described machines, the JSON, and bad arguments.
set -euo pipefail
bin=$1 cmake=$2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-info-test.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "info_test: $*" >&2; cat "$work/out" >&2; exit 1; }

shown() { # REGULAR-EXPRESSION ARGUMENTS...: a line of the output
    local words=$1
    shift
    "$bin/tapioca" info "$@" >"$work/out" 2>&1 || fail "tapioca info $* failed"
    grep -qE "$words" "$work/out" || fail "no '$words' from: tapioca info $*"
    [ "$(wc -L <"$work/out")" -le 100 ] || fail "lines longer than 100 columns"
}

refused() { # WORDS-IN-THE-ANSWER ARGUMENTS...
    local words=$1 status=0
    shift
    "$bin/tapioca" info "$@" >"$work/out" 2>&1 || status=$?
    [ $status -eq 2 ] || fail "status $status from: tapioca info $*"
    grep -qe "$words" "$work/out" || fail "no '$words' in the answer to: tapioca info $*"
    [ "$(wc -l <"$work/out")" -eq 1 ] || fail "more than one line in answer to: tapioca info $*"
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
shown '^ +dram .* GB/s' --dir "$work"
shown '^network +one host: no network'
shown "^target +$work: " --dir "$work/."
shown '^target +/dev/shm: tmpfs' --dir /dev/shm
[ "$(ls -A "$work")" = out ] || fail "left behind: $(ls -A "$work")"

export HWLOC_XMLFILE=$here/../golden/dram_hbm_nvm.xml
shown '2 sockets, 8 cores, 6 NUMA nodes'
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
