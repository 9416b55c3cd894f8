#include "mpiio/nonblocking.hpp"

#include <exception>
#include <tuple>
#include <vector>

#include <fmt/core.h>

#include "engine/backoff.hpp"
#include "mpiio/datatype_envelope.hpp"
#include "mpiio/environment.hpp"
#include "mpiio/generalized_requests.hpp"
#include "mpiio/independent.hpp"
#include "mpiio/mpi_functions.hpp"
#include "mpiio/other_logs.hpp"

namespace tapioca::mpiio {

namespace {

/// What a session was made for, and what takes MPI calls when a file is opened on it.
auto concerns_session(Options& options)
{
    return std::tie(options.ranks_per_node, options.platform, options.aggrtier, options.check);
}

}  // namespace

bool NonblockingAccesses::fits(Hints const& hints)
{
    auto wished = hints.settings();
    auto given = environment();
    if (!wished || !given) return true;  // nothing is served anyway
    return !wished->options.check.value_or(false) &&
           concerns_session(wished->options) == concerns_session(given->options);
}

NonblockingAccesses::NonblockingAccesses(ProgramFile& program, Hints const& hints, std::shared_ptr<Channel> channel)
    : program_(program), hints_(hints), file_(program.opened), queue_(channel->session->core_set())
{
    auto const settings = environment();
    if (settings && settings->options.timeout) seconds_ = *settings->options.timeout;
    file_.channel = std::move(channel);
    set_view();
}

NonblockingAccesses::~NonblockingAccesses()
{
    abandon();
}

void NonblockingAccesses::abandon()
{
    {
        std::lock_guard const lock(mutex_);
        if (!pending_.empty()) file_.channel->session->abandon();
    }
    queue_.stop();
}

std::shared_ptr<PendingAccess> NonblockingAccesses::begin(DataAccess const& request, int late, MPI_Request* handle)
{
    if (!has_settings_) {
        settings_ = hints_.settings();
        if (auto given = environment(); given && settings_) {  // hints that came after opening change nothing here
            auto const pretended = file_.channel->session->team().ranks_per_node();
            given->options.ranks_per_node = pretended > 0 ? std::optional(pretended) : std::nullopt;
            concerns_session(settings_->options) = concerns_session(given->options);
        }
        has_settings_ = true;
    }
    auto const pending = std::make_shared<PendingAccess>();
    pending->accesses = weak_from_this();
    pending->request = request;
    pending->late = late;
    pending->part = look_at(file_, request);
    auto& part = pending->part;
    if (part.obstacle.empty()) {
        move_pointer(file_, request, part);
        pending->request.offset = part.offset;
        if (!predefined(request.type)) PMPI_Type_dup(request.type, &pending->request.type);
        if (handle) hand_out(pending, handle);
    } else {  // the others' plan has no data of this rank
        part.access = {};
        part.bytes = 0;
        part.end = 0;
    }
    std::lock_guard const lock(mutex_);
    pending_.push_back(pending);
    pending->number = queue_.add([this, pending] { serve(*pending); });
    return pending;
}

/// Opens the file for the engine, on the file's own session. Throws the same error on all ranks. Collective.
void NonblockingAccesses::open()
{
    auto const& opened = file_.opened;
    declared::OpenRequest opening;
    opening.may_stage = false;
    opening.session = file_.channel->session;
    opening.settings = &settings_;
    steps_.open(declared::open_file(file_.channel->comm.get(), opened.path,
                                    opened.read_only() ? Mode::read : Mode::update, {}, MPI_INFO_NULL, opening));
    auto const& storage = steps_.file().storage;
    if (!storage.coherent) off_ = fmt::format("file system {}", storage.name);
}

/// The engine does the access together with the other ranks; or it cannot, and each rank has to do its part alone.
/// Collective, in the order of the queue; on any thread.
void NonblockingAccesses::serve(PendingAccess& pending) noexcept
try {
    if (!steps_.is_open() && off_.empty()) open();
    if (off_.empty()) {
        auto const attempt = steps_.serve(pending.request, pending.part);
        pending.outcome = attempt.outcome;
        if (attempt.next != Attempt::Next::nothing) off_ = attempt.why;
    }
    pending.why = off_.empty() ? "another rank's data" : off_;
} catch (std::exception const& error) {
    pending.why = off_ = error.what();
}

/// To be called in a thread of the program.
void NonblockingAccesses::settle(PendingAccess& pending)
{
    std::lock_guard const lock(pending.mutex);
    if (pending.settled) return;
    auto const& request = pending.request;
    bool const own = pending.part.obstacle.empty();  // otherwise its data goes, or went, another way
    if (own) {
        if (pending.outcome.served)
            program_.calls.served(request.call);
        else
            program_.calls.passed(request.call, pending.why);
        if (!pending.outcome.served && pending.part.bytes > 0)
            pending.outcome = access_alone(program_.opened.handle, request);
        if (pending.outcome.error == MPI_SUCCESS) pending.outcome.error = pending.late;
        passed_by(program_.opened, request.direction);
        if (!predefined(request.type)) PMPI_Type_free(&pending.request.type);
    }
    pending.settled = true;
    if (pending.handle != MPI_REQUEST_NULL) complete(pending);
    std::lock_guard const of_list(mutex_);
    std::erase_if(pending_, [&](auto const& one) { return one.get() == &pending; });
}

void NonblockingAccesses::finish(PendingAccess& pending)
{
    if (pending.settled) return;
    Within const within;
    auto const& opened = program_.opened;
    auto const watchdog =
        comm::watch({seconds_, opened.rank, opened.ranks, name(pending.request.call).data(), &opened.path});
    auto const number = pending.number;
    while (!queue_.done(number) && !queue_.stopped()) {
        if (queue_.help()) continue;
        engine::wait_until(file_.channel->session->agreement().wait_policy(), "the other ranks to begin the access",
                           [&] { return queue_.done(number) || !queue_.busy(); });
    }
    if (queue_.done(number)) settle(pending);
}

void NonblockingAccesses::poll(PendingAccess& pending)
{
    if (pending.settled) return;
    Within const within;
    if (queue_.done(pending.number))
        settle(pending);
    else if (!queue_.has_thread())
        finish(pending);
}

void NonblockingAccesses::finish_all()
{
    std::deque<std::shared_ptr<PendingAccess>> all;
    {
        std::lock_guard const lock(mutex_);
        all = pending_;
    }
    for (auto const& pending : all) finish(*pending);
}

void PendingAccess::finish()
{
    if (auto const its = accesses.lock()) its->finish(*this);
}

void PendingAccess::poll()
{
    if (auto const its = accesses.lock()) its->poll(*this);
}

}  // namespace tapioca::mpiio
