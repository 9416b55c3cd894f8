#!/usr/bin/env bash
# Misuse of the C++ interface that must not compile, one mistake at a time. misuse.sh COMPILER OPTIONS...
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

compiles() { # NUMBER
    "${compiler[@]}" -std=c++20 -fsyntax-only -DMISUSE="$1" -include "$work/headers.hpp" "$here/misuse.cpp" >"$work/out" 2>&1
}
compiler=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep '^#include' "$here/misuse.cpp" >"$work/headers.hpp"
"${compiler[@]}" -std=c++20 -x c++-header "$work/headers.hpp" -o "$work/headers.hpp.gch"
if ! compiles 0; then
    cat "$work/out"
    echo "misuse: what is right does not compile"
    exit 1
fi
last=$(grep -o '^#elif MISUSE == [0-9]*' "$here/misuse.cpp" | tail -1 | grep -o '[0-9]*$')
status=0
for number in $(seq 1 "$last"); do
    if compiles "$number"; then
        echo "misuse $number compiles:"
        grep -A 1 "MISUSE == $number\b" "$here/misuse.cpp"
        status=1
    elif grep -q 'no such mistake' "$work/out"; then
        echo "misuse $number: there is none"
        status=1
    fi
done
# The first error says what is missing, whichever header is the first.
for header in "$here"/../../include/tapioca/*.hpp; do
    if "${compiler[@]}" -std=c++17 -fsyntax-only -x c++ - <<<"#include <tapioca/$(basename "$header")>" >"$work/out" 2>&1 ||
        ! grep -m 1 'error:' "$work/out" | grep -q "needs C++20: compile with -std=c++20"; then
        echo "misuse: C++17 is not refused in the first line of $(basename "$header"):"
        head -n 3 "$work/out"
        status=1
    fi
done
exit $status
