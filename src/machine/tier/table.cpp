// Contains only the table, because tests/extension replaces it by one with an additional row.
#include "machine/tier/kinds.hpp"

namespace tapioca::machine {

#define ROW(kind) extern TierKind const kind;
#include "machine/tier/rows.inc"
#undef ROW

std::span<TierKind const* const> tier_kinds()
{
#define ROW(kind) &kind,
    static constexpr TierKind const* rows[] = {
#include "machine/tier/rows.inc"
    };
#undef ROW
    return rows;
}

}  // namespace tapioca::machine
