#!/usr/bin/env bash
# settings_test.sh LIBRARY LAUNCHER... -- PROGRAM...: what turns the drop-in library off, and what it says of a bad setting.
set -euo pipefail
library=$1
shift
launcher=()
while [ "$1" != -- ]; do launcher+=("$1"); shift; done
shift
program=("$@")
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-settings-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { cat "$work/out" >&2; echo "settings_test: $*" >&2; exit 1; }

run() { # NAME=VALUE...: the program with the library and these settings
    rm -f report.json
    env "$@" TAPIOCA_REPORT="$work/report.json" timeout -k 5 60 "${launcher[@]}" -n 3 sh -c '
        LD_PRELOAD=$0${LD_PRELOAD:+:$LD_PRELOAD}; export LD_PRELOAD; exec "$@"' "$library" "${program[@]}" >out 2>&1 ||
        fail "the program fails with $*"
}
account() { tr -d ' \n' <report.json; }

run TAPIOCA_OFF=0
account | grep -q '"call":"MPI_File_write_all","served":[1-9]' || fail "not served at all"
run TAPIOCA_FILES='*.none:pla?n'
account | grep -q '"call":"MPI_File_write_all","served":[1-9]' || fail "a file that matches is not served"
run TAPIOCA_FILES='*.none'
account | grep -q '"passed_on":"TAPIOCA_FILES"' || fail "a file that does not match is served"
run TAPIOCA_OFF=1
[ ! -e report.json ] || fail "TAPIOCA_OFF does not turn it off"
run TAPIOCA_BUFERSIZE=1M
[ "$(grep -c '^tapioca:' out)" = 1 ] || fail "not one line about an unknown setting"
grep -q 'TAPIOCA_BUFERSIZE: did you mean TAPIOCA_BUFFERSIZE?; files are left to the MPI library' out || fail "another line"
[ ! -e report.json ] || fail "a bad setting does not turn it off"

# Three writes and three reads of 3 ranks, in turns: the first three are left to the MPI library, or none.
program=("${program[0]}" blocks)
for leave in TAPIOCA_LEAVE=0 TAPIOCA_LEAVE=1; do
    run $leave
    account | grep -q '"call":"MPI_File_write_at_all","served":9,"passed_on":0' || fail "$leave leaves an access"
done
run -u TAPIOCA_LEAVE
account | grep -q '"call":"MPI_File_write_at_all","served":3,"passed_on":6,"why":\["littledatasofar' || fail "the first are not left"
account | grep -q '"call":"MPI_File_read_at_all","served":6,"passed_on":3' || fail "others than the first three are left"
# What MPI libraries get wrong is not left to them, though it comes first.
for behaviour in holes end_of_file; do
    program=("${program[0]}" $behaviour)
    run -u TAPIOCA_LEAVE BEHAVIOUR_STRICT=1
    ! grep -q littledatasofar <(account) || fail "$behaviour: left to the MPI library"
done
echo "settings_test: all as expected"
