// Contains only the table of verbs, because tests/extension replaces it by one with an additional row.
#include "verb.hpp"

namespace tools {

#define ROW(verb) extern Verb const verb;
#include "tools/rows.inc"
#undef ROW

std::span<Verb const* const> verbs()
{
#define ROW(verb) &verb,
    static constexpr Verb const* rows[] = {
#include "tools/rows.inc"
    };
#undef ROW
    return rows;
}

}  // namespace tools
