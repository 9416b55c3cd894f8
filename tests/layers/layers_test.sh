#!/bin/bash
# Checks the boundaries between the parts of src/: tries includes with the directories that each part's sources really have,
# and compares the parts with the table in docs/design.md.
# usage: layers_test.sh SOURCE PARTS COMPILER    PARTS: a line "name:what it uses:include directories" for each part
set -u
source=$1 parts=$2 compiler=$3
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

declare -A uses directories sees header
order=()
while IFS=: read -r name used where; do
    order+=("$name")
    uses[$name]=$used
    directories[$name]=$where
    sees[$name]=" $name "
    for part in $used; do sees[$name]+="${sees[$part]:- (no part $part before $name) } "; done
    header[$name]=$(cd "$source/src" && ls "$name"/*.hpp "$name"/*/*.hpp 2>/dev/null | head -n 1)
done <"$parts"
[ ${#order[@]} -ge 15 ] || fail "only ${#order[@]} parts in $parts"

# Reads a source of part $1 from standard input.
compile() {
    local flags=()
    for directory in ${directories[$1]}; do flags+=(-I "$directory"); done
    "$compiler" -std=c++20 "${flags[@]}" -E -x c++ - 2>&1 >/dev/null
}

# The table, and the parts as they are built.
table=$(sed -n '/^| part | uses | what it is/,/^$/p' "$source/docs/design.md" | tail -n +3 |
    sed -n 's/^| `\([a-z]*\)` |\([^|]*\)|.*/\1:\2/p' | tr -d '`,' | sed 's/: */:/; s/ *$//')
built=$(for part in "${order[@]}"; do echo "$part:${uses[$part]}"; done)
[ "$(sort <<<"$table")" = "$(sort <<<"$built")" ] ||
    fail "docs/design.md and src/CMakeLists.txt differ:"$'\n'"$(diff <(sort <<<"$table") <(sort <<<"$built"))"
below=" "
while IFS=: read -r name used; do
    for part in $used; do [[ $below == *" $part "* ]] || fail "docs/design.md: $name uses $part, which is not above it in the table"; done
    below+="$name "
done <<<"$table"

# Every part sees itself and what it uses, and nothing else.
for part in "${order[@]}"; do
    text=
    for other in "${order[@]}"; do
        if [[ ${sees[$part]} == *" $other "* ]]; then not='!' word=must; else not='' word='must not'; fi
        text+="#if ${not}__has_include(\"${header[$other]}\")"$'\n'"#error $part $word see ${header[$other]}"$'\n#endif\n'
    done
    said=$(compile "$part" <<<"$text") || fail "$said"
done

# A wrong include does not compile, and that is why; a right one does.
while read -r part wrong right; do
    said=$(compile "$part" <<<"#include \"$wrong\"") && fail "$part includes $wrong, and that compiles"
    [[ $said == *"$wrong"*"No such file"* || $said == *"$wrong"*"not found"* ]] || fail "$part includes $wrong: $said"
    [ -e "$source/src/$wrong" ] || fail "there is no $wrong to be kept out"
    said=$(compile "$part" <<<"#include \"$right\"") || fail "$part includes $right: $said"
done <<'END'
machine stage/stage.hpp core/result.hpp
pattern plan/plan.hpp core/units.hpp
target stage/stage.hpp machine/storage.hpp
core settings/settings.hpp core/result.hpp
comm mpiio/datatype.hpp core/result.hpp
comm api/internals.hpp comm/team.hpp
settings pattern/layout.hpp core/result.hpp
plan comm/team.hpp pattern/layout.hpp
engine flush/staging.hpp plan/plan.hpp
stage engine/transfer.hpp target/target.hpp
report api/internals.hpp engine/transfer.hpp
report stage/stage.hpp settings/settings.hpp
file flush/staging.hpp stage/find_logs.hpp
flush declared/file_state.hpp file/open_file.hpp
declared api/internals.hpp flush/staging.hpp
api mpiio/datatype.hpp declared/step_state.hpp
mpiio api/internals.hpp declared/step_state.hpp
END

# Nobody climbs over the wall.
climbing=$(grep -rnE '#include *["<][^">]*\.\./' "$source/src" "$source/tools" "$source/bench" "$source/workloads")
[ -z "$climbing" ] || fail "includes with .. in them:"$'\n'"$climbing"

# Only comm communicates.
talking=$(grep -rnE '\bP?MPI_(I?(Send|send|Recv|recv|Bcast|bcast|Reduce|reduce|Allreduce|allreduce|Gatherv?|gatherv?|Allgatherv?|allgatherv?|Alltoall[vw]?|alltoall[vw]?|Scan|scan|Barrier|barrier|Probe|probe)|Sendrecv|Win_[a-z_]+|Put|Get|Comm_(dup|split|create_group))\b *\(' \
    "$source/src" --include='*.cpp' --include='*.hpp' | grep -v "^$source/src/comm/")
[ -z "$talking" ] || fail "communicates, and is not in comm:"$'\n'"$talking"

[ $failures -eq 0 ] && echo "${#order[@]} parts, and the walls between them hold"
exit $((failures > 0))
