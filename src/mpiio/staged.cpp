// Staged: opening, flushing and handing over. Writes are in log_write.cpp, reads in read_over.cpp.
#include "mpiio/staged.hpp"

#include <array>
#include <utility>

#include <fmt/core.h>

#include "mpiio/beside.hpp"
#include "mpiio/error_class.hpp"
#include "mpiio/handle.hpp"
#include "mpiio/originals.hpp"
#include "mpiio/table.hpp"
#include "mpiio/tell.hpp"

namespace tapioca::mpiio {

/// The file as the engine has it open. @pre there is a log
declared::FileState& Staged::file() const
{
    return steps_.file();
}

flush::Staging& Staged::staging() const
{
    return *file().staging;
}

bool Staged::takes_writes() const
{
    return open_ && views_fit_ && !handle_.is_atomic();
}

void Staged::open()
{
    open_ = true;
    overdue_ = false;
    count_log();
}

bool Staged::identify()
{
    std::int64_t fits = handle_.view().fits_log() ? 1 : 0;
    bool const same = steps_.identify(fits);
    views_fit_ = fits == 1;
    return same;
}

std::optional<Error> Staged::close()
{
    std::lock_guard const lock(mutex_);
    auto error = steps_.close();
    if (error) tell_once(error->what());
    open_ = false;
    discount_log();
    return error;
}

void Staged::tell_once(std::string const& line)
{
    if (handle_.opened().first() && !std::exchange(told_, true)) tell(line);
}

void Staged::tell_unclosed()
{
    tell_once("tapioca: " + flush::never_closed(handle_.opened().path));
}

/// A flush has failed.
int Staged::failed(core::Failure const& failure)
{
    tell_once(fmt::format("tapioca: {}: {}", handle_.opened().path, failure.text));
    return class_of(failure);
}

Outcome Staged::serve(Request const& request)
{
    if (takes_writes()) {
        {
            std::lock_guard const lock(mutex_);
            staging().advance();
            if (request.direction == Direction::write) return write(handle_, request, true);
        }
        if (int const error = flush_before(request); error != MPI_SUCCESS) return {true, error, 0};
    } else if (overdue_) {
        if (int const error = flush(false); error != MPI_SUCCESS) return {true, error, 0};
    }
    if (auto const outcome = steps_.serve(request)) return *outcome;
    // The hints have changed.
    if (int const error = flush(false); error != MPI_SUCCESS) return {true, error, 0};
    handle_.close_engine();
    return handle_.serve(request);
}

Outcome Staged::serve_alone(Request const& request)
{
    if (auto const outcome = serve_through(handle_, request)) return *outcome;
    handle_.calls().passed(request.call);
    auto const error = hand_over(request.direction, false);
    return {error != MPI_SUCCESS, error, 0};
}

std::optional<Outcome> Staged::serve_through(Handle& handle, Request const& request)
{
    if (!takes_writes()) return std::nullopt;
    std::lock_guard const lock(mutex_);
    if (!takes_writes()) return std::nullopt;
    return request.direction == Direction::write ? write(handle, request, false) : read_over(handle, request);
}

/// Before a collective read. Collective.
int Staged::flush_before(Request const& request)
{
    auto const part = handle_.look_at(request);
    bool const reads = part.obstacle.empty() && part.bytes > 0;
    std::lock_guard const lock(mutex_);
    auto const status =
        staging().flush_before_read(reads ? part.access.origin : pattern::no_offset, reads ? part.end : 0);
    return status ? MPI_SUCCESS : failed(status.error());
}

int Staged::hand_over_own(Direction direction, bool durable)
{
    Within const within;
    std::lock_guard const lock(mutex_);
    if (!open_) return MPI_SUCCESS;
    auto const next = direction == Direction::write ? stage::Stage::Next::write : stage::Stage::Next::read;
    return class_of(staging().hand_over(next, durable));
}

int Staged::hand_over(Direction direction, bool durable)
{
    auto const own = hand_over_own(direction, durable);
    auto const others = hand_over_beside(handle_, direction, durable);
    return own != MPI_SUCCESS ? own : others;
}

void Staged::touch()
{
    std::lock_guard const lock(mutex_);
    if (open_) staging().touch();
}

int Staged::flush(bool durable)
{
    handle_.watch("sync");
    std::lock_guard const lock(mutex_);
    staging().advance();
    auto const status = staging().flush(durable);
    staging().touch();  // the MPI library may change the file now
    overdue_ = !status;
    return status ? MPI_SUCCESS : failed(status.error());
}

int Staged::settle()
{
    handle_.watch("set_view");
    std::array<std::int64_t, 2> values = {handle_.view().fits_log() ? 1 : 0, handle_.has_new_hints() ? 0 : 1};
    {
        std::lock_guard const lock(mutex_);
        staging().advance();
        if (!file().session->agreement().least(values)) return MPI_ERR_OTHER;
    }
    views_fit_ = values[0] == 1;
    bool const same_hints = values[1] == 1;
    if (views_fit_ && same_hints) return MPI_SUCCESS;
    // What is in the log stays there if this fails, and so does the log: see overdue_.
    if (int const error = flush(false); error != MPI_SUCCESS) return error;
    return same_hints ? MPI_SUCCESS : handle_.reopen_engine();
}

std::int64_t Staged::end()
{
    std::lock_guard const lock(mutex_);
    return takes_writes() ? staging().stage().end() : 0;
}

}  // namespace tapioca::mpiio
