// How data accesses and calls that flush are handled: served by the file's handle, or passed on to the MPI library.
// `pass_on` calls the MPI library's own function with the program's arguments.
#pragma once

#include <utility>

#include "mpiio/handle.hpp"
#include "mpiio/handle_table.hpp"
#include "mpiio/independent.hpp"
#include "mpiio/mpi_functions.hpp"
#include "mpiio/return_code.hpp"

namespace tapioca::mpiio {

/// A call that the MPI library does on a known file. If it is collective, all ranks must make it, even a rank with an
/// earlier error, which is reported afterwards.
template <class PassOn>
int pass_on_with(MPI_File file, Handle& known, Direction direction, int late, PassOn pass_on)
{
    Within const within;
    auto const code = pass_on();
    known.passed_by(direction);
    return code != MPI_SUCCESS ? code : raise(file, late);
}

/// The same for a data access. If the file is a set of subfiles, every rank does its own part of the access instead,
/// and `reply` returns the outcome to the program.
template <class Reply, class PassOn>
int pass_on_access(MPI_File file, Handle& known, DataAccess const& request, int late, Reply reply, PassOn pass_on)
{
    if (!known.set()) return pass_on_with(file, known, request.direction, late, pass_on);
    Within const within;
    auto outcome = known.set()->access(request);
    known.passed_by(request.direction);
    if (outcome.error == MPI_SUCCESS) outcome.error = late;
    return reply(outcome);
}

/// A collective call: served, or passed on to the MPI library.
template <class PassOn>
int collective(MPI_File file, DataAccess const& request, MPI_Status* status, PassOn pass_on)
{
    if (auto const known = find(file)) {
        auto const reply = [&](AccessOutcome const& outcome) { return answer(file, outcome, status); };
        auto const outcome = known->serve(request);
        if (outcome.served) return reply(outcome);
        auto const code = pass_on_access(file, *known, request, outcome.late, reply, pass_on);
        known->was_left();
        return code;
    }
    Within const within;
    return pass_on();
}

/// The beginning of a split call. The access is done beside the program or, if that is not possible, here, which MPI
/// allows.
template <class PassOn>
int begin(MPI_File file, DataAccess const& request, PassOn pass_on)
{
    if (auto const known = find(file)) {
        if (known->is_split()) {
            PMPI_File_call_errhandler(file, MPI_ERR_OTHER);  // only one may be active at a time
            return MPI_ERR_OTHER;
        }
        auto const pending = known->begin(request, nullptr);
        if (pending && pending->part.obstacle.empty()) {
            known->pending_split = pending;
            return MPI_SUCCESS;
        }
        if (pending) known->calls().passed(request.call, pending->part.obstacle);
        auto const outcome = pending ? access_alone(file, request) : known->serve(request);
        auto const keep = [&](AccessOutcome const& done) {
            if (done.told && done.error != MPI_SUCCESS) return done.error;
            known->split = done;
            return MPI_SUCCESS;
        };
        if (outcome.served) return keep(outcome);
        return pass_on_access(file, *known, request, outcome.late, keep, pass_on);
    }
    Within const within;
    return pass_on();
}

template <class PassOn>
int end(MPI_File file, MPI_Status* status, PassOn pass_on)
{
    auto const known = find(file);
    if (known && known->pending_split) {
        auto const pending = std::exchange(known->pending_split, nullptr);
        pending->finish();
        return answer(file, pending->outcome, status);
    }
    if (known && known->split) return answer(file, *std::exchange(known->split, std::nullopt), status);
    Within const within;
    return pass_on();
}

/// An independent access: served if the file is staged. Then `reply` returns the outcome to the program.
template <class Reply, class PassOn>
int independent(MPI_File file, DataAccess const& request, Reply reply, PassOn pass_on)
{
    auto const known = find(file);
    if (!known) return pass_on();
    auto const outcome = known->serve_alone(request);
    return outcome.served ? reply(outcome) : pass_on_access(file, *known, request, MPI_SUCCESS, reply, pass_on);
}

/// A nonblocking collective call, which must not wait for other ranks. If possible, it is done beside the program; a
/// rank that cannot take part uses `pass_on_alone`. On a staged file, a write is logged, and a read is done by this
/// rank alone, with `pass_on_alone` if it does not concern the logs. On a set of subfiles, every rank does its own
/// part. Otherwise the call is passed on.
template <class PassOn, class PassOnAlone>
int nonblocking(MPI_File file, DataAccess const& request, MPI_Request* handle, PassOn pass_on,
                PassOnAlone pass_on_alone)
{
    auto const known = find(file);
    if (!known) return pass_on();
    if (auto const pending = known->begin(request, handle)) {
        if (pending->part.obstacle.empty()) return MPI_SUCCESS;
        known->calls().passed(request.call, pending->part.obstacle);
        return pass_on_with(file, *known, request.direction, pending->late, pass_on_alone);
    }
    bool const staged = known->takes_writes();
    if (!staged && !known->opened().alone() && !known->set()) {
        known->calls().passed(request.call, known->why_not_nonblocking());
        return pass_on_with(file, *known, request.direction, known->hand_over(request.direction), pass_on);
    }
    bool const logged = staged && request.direction == Direction::write;
    auto const outcome = logged ? known->serve(request) : known->serve_alone(request);
    auto const reply = [&](AccessOutcome const& done) { return answer_later(file, done, handle); };
    if (outcome.served) return reply(outcome);
    if (known->set()) return pass_on_access(file, *known, request, MPI_SUCCESS, reply, pass_on);
    return staged ? pass_on_alone() : pass_on_with(file, *known, request.direction, MPI_SUCCESS, pass_on);
}

/// Moves the shared pointer, which the MPI library keeps. Collective: no rank returns before it has moved.
inline int move_shared(MPI_File file, MPI_Offset to)
{
    Within const within;
    return mpi_functions().mpi.File_seek_shared(file, to, MPI_SEEK_SET);
}

/// An independent access at the shared pointer. For a set of subfiles, `reply` returns the outcome to the program.
template <class Reply, class PassOn>
int shared(MPI_File file, DataAccess const& request, Reply reply, PassOn pass_on)
{
    auto const known = find(file);
    if (!known) return pass_on();
    auto const error = known->hand_over(request.direction);
    if (known->set() && error == MPI_SUCCESS) {
        Within const within;
        return reply(known->set()->access_shared(request));
    }
    known->calls().passed(request.call);
    return error != MPI_SUCCESS ? raise(file, error)
                                : pass_on_with(file, *known, request.direction, MPI_SUCCESS, pass_on);
}

/// A collective call that the MPI library does, after everything was brought into the file.
template <class PassOn>
int after_flush(MPI_File file, bool durable, PassOn pass_on)
{
    auto const known = find(file);
    if (!known) {
        Within const within;
        return pass_on();
    }
    bool const together = known->has_log();
    auto const late = known->flush(durable);
    if (together && late != MPI_SUCCESS) return raise(file, late);
    return pass_on_with(file, *known, Direction::write, late, pass_on);
}

/// A collective access at the shared pointer, served as an access at explicit offsets. The pointer, which the MPI
/// library keeps, is moved past it; no rank returns before that.
template <class PassOn>
int ordered(MPI_File file, DataAccess request, MPI_Status* status, PassOn pass_on)
{
    auto const known = find(file);
    auto const place = known ? known->place_in_order(request) : std::nullopt;
    if (!place && known && known->set()) return raise(file, MPI_ERR_UNSUPPORTED_OPERATION);
    if (!place) return after_flush(file, false, pass_on);
    request.offset = place->begin;
    auto const reply = [&](AccessOutcome const& done) {
        auto const moved = move_shared(file, place->after);
        auto const code = answer(file, done, status);
        return code != MPI_SUCCESS ? code : moved;
    };
    auto const outcome = known->serve(request);
    return outcome.served ? reply(outcome) : pass_on_access(file, *known, request, outcome.late, reply, pass_on);
}

/// The beginning of a split access at the shared pointer.
template <class PassOn>
int ordered_begin(MPI_File file, DataAccess request, PassOn pass_on)
{
    auto const known = find(file);
    if (!known || known->is_split()) return begin(file, request, pass_on);
    auto const place = known->place_in_order(request);
    if (!place && known->set()) return raise(file, MPI_ERR_UNSUPPORTED_OPERATION);
    if (!place) return after_flush(file, false, pass_on);
    request.offset = place->begin;
    bool passed_on = false;
    auto const code = begin(file, request, [&] {
        passed_on = true;
        return pass_on();
    });
    if (passed_on) return code;
    auto const moved = move_shared(file, place->after);
    return code != MPI_SUCCESS ? code : moved;
}

}  // namespace tapioca::mpiio
