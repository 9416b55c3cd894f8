#!/usr/bin/env bash
# twins_check.sh SOURCE: every public C++ name has its twin in C and in Fortran, or a reason in twins.txt; every C
# function and constant has its Fortran twin; every option is a hint and in the man page.
set -euo pipefail
source=$1
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
c_header=$source/include/tapioca/tapioca.h
module=$source/fortran/tapioca.f90
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-twins.XXXXXX")
trap 'rm -rf "$work"' EXIT
wrong=0
complain() { echo "twins: $*" >&2; wrong=$((wrong + 1)); }

cat "$source"/include/tapioca/*.hpp | awk -f "$here/public_names.awk" | sort >"$work/cxx"
# The declarations without comments: C's up to their semicolon, Fortran's public names and procedures with their heads.
sed -e ':a;s|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||;ta' -e '/\/\*/{N;ba}' "$c_header" |
    sed 's/^    \(.*[^)]\); *$/    \1,/' | tr '\n' ' ' | tr ';' '\n' >"$work/c"  # a struct's members stay together
sed -e 's/!.*//' "$module" | sed -e ':a;/& *$/{N;s/& *\n */ /;ta}' | tr 'A-Z' 'a-z' >"$work/fortran"
{ grep -E '(^| )public( |,|::)' "$work/fortran" | tr -cs 'a-z0-9_' '\n'; } | sort -u >"$work/fortran_public"

in_c() { grep -E "\b$1\b" "$work/c" | { [ -z "${2:-}" ] && grep -q . || grep -qE "\b${2:-}\b"; }; }
in_fortran() {
    local name=${1,,} member=${2:-}
    grep -qx "$name" "$work/fortran_public" || return 1
    [ -z "$member" ] || awk -v name="$name" -v member="${member,,}" '
        $0 ~ "(type|subroutine|function)[^!]*[ :]" name "([ (]|$)" && $0 !~ /^ *end/ { inside = 1 }
        inside && $0 ~ "(^|[^a-z0-9_])" member "([^a-z0-9_]|$)" { found = 1 }
        /^ *end (type|subroutine|function)/ { inside = 0 }
        END { exit !found }' "$work/fortran"
}

declare -A known c_alone
while IFS='|' read -r cxx c fortran; do
    cxx=$(echo $cxx) c=$(echo $c) fortran=$(echo $fortran)
    case $cxx in '' | \#\ *) continue ;; esac
    known[$cxx]=1
    grep -qx "$cxx" "$work/cxx" || complain "$cxx is in twins.txt, and not in the C++ headers"
    case $c in
    '' | -) complain "$cxx has neither a C twin nor a reason" ;;
    '- hint')
        name=${cxx#Options::}
        grep -q "\"$name\"" "$source/src/settings/rows.inc" || complain "$cxx is no hint"
        grep -q "TAPIOCA_${name^^}$" "$source/docs/tapioca.1" || complain "$cxx is missing in docs/tapioca.1"
        ;;
    -\ *) ;;
    *.*) in_c "${c%.*}" "${c#*.}" || complain "$cxx: no $c in tapioca.h" ;;
    *) in_c "$c" || complain "$cxx: no $c in tapioca.h" ;;
    esac
    case $fortran in
    '' | -) complain "$cxx has neither a Fortran twin nor a reason" ;;
    -\ *) c_alone[$c]=1 ;;
    *.*) in_fortran "${fortran%.*}" "${fortran#*.}" || complain "$cxx: no $fortran in tapioca.f90" ;;
    *) in_fortran "$fortran" || complain "$cxx: no $fortran in tapioca.f90" ;;
    esac
done <"$here/twins.txt"

while read -r name; do
    [ -n "${known[$name]:-}" ] || complain "$name has no C and Fortran twin in tests/tools/twins.txt"
done <"$work/cxx"

# Null handles and ignored statuses are default values and absent arguments in Fortran.
while read -r name; do
    in_fortran "$name" || [ -n "${c_alone[$name]:-}" ] || complain "$name of tapioca.h is missing in tapioca.f90"
done < <(grep -oE '\bTAPIOCA_[A-Za-z_]+\b' "$work/c" | grep -vE '_s$|_NULL$|_IGNORE$|^TAPIOCA_TAPIOCA_H$' | sort -u)

numbers() { grep -oE 'TAPIOCA_[A-Z_]+ = [0-9]+' "$1" | grep -v TAPIOCA_VERSION_ | sort; }
diff <(numbers "$c_header") <(numbers "$module") >&2 || complain "constants differ between tapioca.h and tapioca.f90"

for part in MAJOR MINOR PATCH; do
    number=$(sed -n "s/^#define TAPIOCA_VERSION_$part //p" "$source/include/tapioca/version.h")
    grep -q "public :: TAPIOCA_VERSION_$part = $number$" "$module" || complain "TAPIOCA_VERSION_$part is not $number in tapioca.f90"
done

[ "$(wc -l <"$work/cxx")" -gt 60 ] || complain "only $(wc -l <"$work/cxx") public names found: is public_names.awk still right?"
[ "$wrong" -eq 0 ] || exit 1
echo "twins: $(wc -l <"$work/cxx") public names of C++, all with their twins"
