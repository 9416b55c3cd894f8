// Contains only the table of workloads, because tests/extension replaces it by one with an additional row.
#include "workloads/workload.hpp"

namespace workloads {

#define ROW(kind) extern WorkloadKind const kind;
#include "workloads/rows.inc"
#undef ROW

std::span<WorkloadKind const* const> kinds()
{
#define ROW(kind) &kind,
    static constexpr WorkloadKind const* rows[] = {
#include "workloads/rows.inc"
    };
#undef ROW
    return rows;
}

}  // namespace workloads
