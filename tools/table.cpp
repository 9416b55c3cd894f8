// Nothing but the table of verbs: tests/extension has one with a row more in its place.
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
