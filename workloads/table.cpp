// The table of workloads. To add one: a .cpp that defines its Kind, and a row of rows.inc.
#include <array>

#include "workloads/workload.hpp"

namespace workloads {

#define ROW(kind) extern Kind const kind;
#include "workloads/rows.inc"
#undef ROW

std::span<Kind const* const> kinds()
{
    static constexpr std::array all = {
#define ROW(kind) &kind,
#include "workloads/rows.inc"
#undef ROW
    };
    return all;
}

}  // namespace workloads
