#include "mpiio/other_logs.hpp"

#include "mpiio/handle_table.hpp"
#include "mpiio/program_file.hpp"
#include "mpiio/staged.hpp"

namespace tapioca::mpiio {

std::shared_ptr<Staged> log_beside(ProgramFile const& program)
{
    auto const& opened = program.opened;
    if (!any_logs() || !opened.alone() || program.has_log || program.atomic || !program.view.fits_log() ||
        !opened.which)
        return nullptr;
    for (auto const& log : logs_of(*opened.which, &opened))
        if (log->takes_writes()) return log;
    return nullptr;
}

int hand_over_beside(OpenArguments const& opened, Direction direction, bool durable)
{
    if (!any_logs() || !opened.which) return MPI_SUCCESS;
    int error = MPI_SUCCESS;
    for (auto const& log : logs_of(*opened.which, &opened)) {
        auto const its = log->hand_over_own(direction, durable);
        if (error == MPI_SUCCESS) error = its;
    }
    return error;
}

void passed_by(OpenArguments const& opened, Direction direction)
{
    if (direction != Direction::write || !any_logs() || !opened.which) return;
    for (auto const& log : logs_of(*opened.which, nullptr)) log->touch();
}

}  // namespace tapioca::mpiio
