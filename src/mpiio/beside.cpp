#include "mpiio/beside.hpp"

#include "mpiio/handle.hpp"
#include "mpiio/table.hpp"

namespace tapioca::mpiio {

std::shared_ptr<Staged> log_beside(Handle const& handle)
{
    auto const& opened = handle.opened();
    if (!any_logs() || !opened.alone() || handle.has_log() || handle.is_atomic() || !handle.view().fits_log() ||
        !opened.which)
        return nullptr;
    for (auto const& log : logs_of(*opened.which, &handle))
        if (log->takes_writes()) return log;
    return nullptr;
}

int hand_over_beside(Handle const& handle, Direction direction, bool durable)
{
    auto const& which = handle.opened().which;
    if (!any_logs() || !which) return MPI_SUCCESS;
    int error = MPI_SUCCESS;
    for (auto const& log : logs_of(*which, &handle)) {
        auto const its = log->hand_over_own(direction, durable);
        if (error == MPI_SUCCESS) error = its;
    }
    return error;
}

void touch_logs(Handle const& handle)
{
    auto const& which = handle.opened().which;
    if (!any_logs() || !which) return;
    for (auto const& log : logs_of(*which, nullptr)) log->touch();
}

}  // namespace tapioca::mpiio
