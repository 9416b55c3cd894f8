// Staged: opening, flushing and handing over. Writes are in log_write.cpp, reads in read_over.cpp.
#include "mpiio/staged.hpp"

#include <array>
#include <utility>

#include <fmt/core.h>

#include "mpiio/diagnostics.hpp"
#include "mpiio/error_class.hpp"
#include "mpiio/handle_table.hpp"
#include "mpiio/mpi_functions.hpp"
#include "mpiio/other_logs.hpp"
#include "mpiio/program_file.hpp"
#include "mpiio/steps.hpp"

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
    return program_.has_log && views_fit_ && !program_.atomic;
}

void Staged::open()
{
    program_.has_log = true;
    overdue_ = false;
    count_log();
}

bool Staged::identify()
{
    std::int64_t fits = program_.view.fits_log() ? 1 : 0;
    bool const same = steps_.identify(fits);
    views_fit_ = fits == 1;
    return same;
}

std::optional<Error> Staged::close()
{
    std::lock_guard const lock(mutex_);
    auto error = steps_.close();
    if (error) tell_once(error->what());
    program_.has_log = false;
    discount_log();
    return error;
}

void Staged::tell_once(std::string const& line)
{
    if (program_.opened.first() && !std::exchange(told_, true)) tell(line);
}

void Staged::tell_unclosed()
{
    tell_once("tapioca: " + flush::never_closed(program_.opened.path));
}

/// Reports that a flush has failed.
int Staged::failed(core::Failure const& failure)
{
    tell_once(fmt::format("tapioca: {}: {}", program_.opened.path, failure.text));
    return class_of(failure);
}

/// The error class of what this rank has done by itself.
int Staged::outcome_alone(core::Status const& status)
{
    return !status && program_.set ? program_.set->failed_alone(status.error()) : class_of(status);
}

Attempt Staged::serve(DataAccess const& request)
{
    if (takes_writes()) {
        {
            std::lock_guard const lock(mutex_);
            staging().advance();
            if (request.direction == Direction::write) return {write(program_, request, true)};
        }
        if (auto const outcome = read_from_logs(request)) return {*outcome};
    } else if (overdue_) {
        if (int const error = flush(false); error != MPI_SUCCESS) return {{true, error, 0}};
    }
    auto attempt = steps_.serve(request);
    if (attempt.next != Attempt::Next::reopen) return attempt;
    if (int const error = flush(false); error != MPI_SUCCESS) return {{true, error, 0}};
    return attempt;
}

AccessOutcome Staged::serve_alone(DataAccess const& request)
{
    if (auto const outcome = serve_through(program_, request)) return *outcome;
    program_.calls.passed(request.call);
    auto const error = hand_over(request.direction, false);
    return {error != MPI_SUCCESS, error, 0};
}

std::optional<AccessOutcome> Staged::serve_through(ProgramFile& through, DataAccess const& request)
{
    if (!takes_writes()) return std::nullopt;
    std::lock_guard const lock(mutex_);
    if (!takes_writes()) return std::nullopt;
    return request.direction == Direction::write ? write(through, request, false) : read_over(through, request);
}

int Staged::hand_over_own(Direction direction, bool durable)
{
    Within const within;
    std::lock_guard const lock(mutex_);
    if (!program_.has_log) return MPI_SUCCESS;
    auto const next = direction == Direction::write ? stage::Stage::PastTheLog::write : stage::Stage::PastTheLog::read;
    return outcome_alone(staging().hand_over(next, durable));
}

int Staged::hand_over(Direction direction, bool durable)
{
    auto const own = hand_over_own(direction, durable);
    auto const others = hand_over_beside(program_.opened, direction, durable);
    return own != MPI_SUCCESS ? own : others;
}

void Staged::touch()
{
    std::lock_guard const lock(mutex_);
    if (program_.has_log) staging().touch();
}

int Staged::flush(bool durable)
{
    file().watch("sync");
    std::lock_guard const lock(mutex_);
    staging().advance();
    auto const status = staging().flush(durable);
    staging().touch();  // the MPI library may change the file now
    overdue_ = !status;
    return status ? MPI_SUCCESS : failed(status.error());
}

Attempt Staged::settle()
{
    file().watch("set_view");
    std::array<std::int64_t, 2> values = {program_.view.fits_log() ? 1 : 0, program_.has_new_hints ? 0 : 1};
    {
        std::lock_guard const lock(mutex_);
        staging().advance();
        if (!file().session->agreement().least(values)) return {{true, MPI_ERR_OTHER, 0}};
    }
    views_fit_ = values[0] == 1;
    bool const same_hints = values[1] == 1;
    if (views_fit_ && same_hints) return {};
    // If this fails, the contents of the log stay in the log, and the log stays: see overdue_.
    if (int const error = flush(false); error != MPI_SUCCESS) return {{true, error, 0}};
    return {.next = same_hints ? Attempt::Next::nothing : Attempt::Next::reopen};
}

std::int64_t Staged::end()
{
    std::lock_guard const lock(mutex_);
    return takes_writes() ? staging().stage().end() : 0;
}

}  // namespace tapioca::mpiio
