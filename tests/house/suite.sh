#!/usr/bin/env bash
# Lists what is too long, is written twice, or has a name with two meanings; all lists must be empty. Part of ./test.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
cd "$here/../.."

names=("$here/names.txt")
case ${1:-} in
'') ;;
--names) names=(--all) ;;
--help | -h)
    cat <<'END'
usage: tests/run house [--names]

Four lists, of src, tools, bench and workloads:
  sources of more than 400 lines
  functions of more than 60 lines
  runs of six or more equal lines, but for those that tests/house/explained.txt explains
  type names that are defined in more than one folder, but for those that tests/house/names.txt explains
With --names no more than the last list, of all such names.
Exit status: 0 if all are empty, 1 if not, 2 for bad arguments, 77 without the package universal-ctags.
END
    exit 0 ;;
*) echo "tests/run house: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac
if ! ctags --version 2>/dev/null | grep -q '^Universal Ctags'; then
    echo "tests/run house: ctags is not installed: apt-get install universal-ctags"
    exit 77
fi

folders=(src workloads tools bench)
shared=$(python3 "$here/names.py" "${names[@]}" include "${folders[@]}")
if [ "${names[0]}" = --all ]; then
    printf '%s\n' "$shared"
    exit 0
fi
status=0
list() { # TITLE LINES: what there is, if anything
    [ -n "$2" ] || return 0
    printf '%s\n' "$1" "$2"
    status=1
}

# What looks for them must not fail unseen: a list that could not be made is not an empty one.
sources=$(find "${folders[@]}" -type f ! -name '*.map' -exec wc -l {} + | awk '$2 != "total" && $1 > 400 { print "  " $1, $2 }' | sort -rn)
functions=$(ctags -R --languages=C,C++ --langmap=C++:+.hpp.inc --kinds-C=f --kinds-C++=f --fields=+ne -f - "${folders[@]}" |
    awk -F'\t' '{
        first = last = 0
        for (i = 4; i <= NF; i++) { if ($i ~ /^line:/) first = substr($i, 6); if ($i ~ /^end:/) last = substr($i, 5) }
        if (last - first + 1 > 60) print "  " last - first + 1, $2 ":" first, $1
    }' | sort -rn)
copies=$(python3 "$here/copies.py" "$here/explained.txt" "${folders[@]}")
list "sources of more than 400 lines:" "$sources"
list "functions of more than 60 lines:" "$functions"
list "equal lines, six or more:" "$copies"
list "type names of several folders:" "$shared"
[ $status -ne 0 ] || echo "house: nothing too long, nothing written twice, one meaning for each name"
exit $status
