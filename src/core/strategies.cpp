// Contains only the table, because tests/extension replaces it by one with an additional row.
#include "core/strategies.hpp"

namespace tapioca::core {

std::span<std::string_view const> strategy_names()
{
#define ROW(name, object) name,
    static constexpr std::string_view names[] = {
#include "core/strategies.inc"
    };
#undef ROW
    return names;
}

}  // namespace tapioca::core
