#include "mpiio/plain.hpp"

#include "mpiio/beside.hpp"
#include "mpiio/handle.hpp"

namespace tapioca::mpiio {

Outcome Plain::serve(Request const& request)
{
    if (log_beside(handle_)) return serve_alone(request);
    int const late = hand_over(request.direction, false);
    auto outcome = serve_together(request);
    if (!handle_.has_log()) handle_.passed_by(request.direction);
    if (outcome.served && outcome.error == MPI_SUCCESS) outcome.error = late;
    if (!outcome.served) outcome.late = late;
    return outcome;
}

/// On the engine, with the other ranks, if all can. Collective.
Outcome Plain::serve_together(Request const& request)
{
    while (handle_.is_ready()) {
        if (handle_.has_log()) return handle_.serve(request);  // from now on: the hints ask for it
        if (auto const outcome = steps_.serve(request)) return *outcome;
        handle_.close_engine();  // the hints have changed
    }
    handle_.calls().passed(request.call, handle_.off());
    return {};
}

Outcome Plain::serve_alone(Request const& request)
{
    if (auto const log = log_beside(handle_))
        if (auto const outcome = log->serve_through(handle_, request)) return *outcome;
    handle_.calls().passed(request.call);
    auto const error = hand_over(request.direction, false);
    return {error != MPI_SUCCESS, error, 0};
}

int Plain::hand_over(Direction direction, bool durable)
{
    return hand_over_beside(handle_, direction, durable);
}

}  // namespace tapioca::mpiio
