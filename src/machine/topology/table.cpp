// Contains only the table, because tests/extension replaces it by one with an additional row.
#include "machine/topology/kind.hpp"

namespace tapioca::machine {

#define ROW(kind) extern TopologyKind const kind;
#include "machine/topology/rows.inc"
#undef ROW

std::span<TopologyKind const* const> topology_kinds()
{
#define ROW(kind) &kind,
    static constexpr TopologyKind const* rows[] = {
#include "machine/topology/rows.inc"
    };
#undef ROW
    return rows;
}

}  // namespace tapioca::machine
