#include "mpiio/plain.hpp"

#include "mpiio/other_logs.hpp"
#include "mpiio/program_file.hpp"
#include "mpiio/staged.hpp"
#include "mpiio/steps.hpp"

namespace tapioca::mpiio {

/// What concerns only this rank comes first, because afterwards it may have to wait for the other ranks.
Attempt Plain::serve(DataAccess const& request)
{
    if (log_beside(program_)) return {serve_alone(request)};
    int const late = hand_over(request.direction, false);
    auto attempt = serve_together(request);
    if (attempt.next != Attempt::Next::open) passed_by(program_.opened, request.direction);
    attempt.outcome.late = late;
    return attempt;
}

/// Serves the access on the engine, together with the other ranks, if all can take part. Collective.
Attempt Plain::serve_together(DataAccess const& request)
{
    if (steps_.is_open()) return steps_.serve(request);
    if (program_.off.empty()) return {.next = Attempt::Next::open};
    program_.calls.passed(request.call, program_.off);
    return {};
}

AccessOutcome Plain::serve_alone(DataAccess const& request)
{
    if (auto const log = log_beside(program_))
        if (auto const outcome = log->serve_through(program_, request)) return *outcome;
    program_.calls.passed(request.call);
    auto const error = hand_over(request.direction, false);
    return {error != MPI_SUCCESS, error, 0};
}

int Plain::hand_over(Direction direction, bool durable)
{
    return hand_over_beside(program_.opened, direction, durable);
}

}  // namespace tapioca::mpiio
