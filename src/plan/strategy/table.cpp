// Contains only the table, because tests/extension replaces it by one with an additional row.
#include "plan/strategy/strategy.hpp"

namespace tapioca::plan {

#define ROW(name, object) extern Strategy const object;
#include "core/strategies.inc"
#undef ROW

std::span<NamedStrategy const> strategies()
{
#define ROW(name, object) {name, &object},
    static constexpr NamedStrategy rows[] = {
#include "core/strategies.inc"
    };
#undef ROW
    return rows;
}

}  // namespace tapioca::plan
