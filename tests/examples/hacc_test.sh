#!/usr/bin/env bash
# hacc_test.sh BIN LAUNCHER...
# The examples of HACC-IO in C++, C and, where BIN has it, Fortran: 3 ranks write the same file in each of them, and
# every particle's number is where each layout has it.
set -euo pipefail
bin=$1
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-hacc-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "hacc_test: $*" >&2; exit 1; }

mine=(1000 1010 1020) total=3030
numbers() { od -An -v -w8 -t d8 -j "$2" -N $(($3 * 8)) "$1" | tr -d ' '; } # FILE OFFSET COUNT

for layout in aos soa; do
    for program in hacc c_hacc fortran_hacc; do
        [ $program != fortran_hacc ] || [ -x "$bin/$program" ] || continue
        "$@" -n 3 "$bin/$program" "$work/$program" $layout || fail "$program $layout failed"
        cmp "$work/hacc" "$work/$program" || fail "$layout: $program wrote another file than hacc"
    done
    [ "$(stat -c %s "$work/hacc")" = $((total * 38)) ] || fail "$layout: not 38 bytes a particle"
    if [ $layout = soa ]; then # the numbers of all ranks, behind seven variables of 4 bytes
        numbers "$work/hacc" $((total * 28)) $total
    else
        before=0
        for count in "${mine[@]}"; do
            numbers "$work/hacc" $((before * 38 + count * 28)) "$count"
            before=$((before + count))
        done
    fi | cmp - <(seq 0 $((total - 1))) || fail "$layout: particles are not where they should be"
done
