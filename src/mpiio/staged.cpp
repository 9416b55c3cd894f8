// Staged files: writes go to this rank's log without communication, and reach the file when the log is flushed.
#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "api/c_face.hpp"
#include "mpiio/originals.hpp"
#include "mpiio/part.hpp"

namespace tapioca::mpiio {

namespace {

/// Libraries write small things alone and expect others to find them in the file.
constexpr std::uint64_t through_by_default = 64 * 1024;

/// The MPI library's independent counterpart of a collective write.
int write_alone(MPI_File file, Request const& request, MPI_Status* status)
{
    auto const& mpi = originals().mpi;
    auto const& [call, direction, offset, buffer, count, type] = request;
#if MPI_VERSION >= 4
    if (count > INT_MAX)
        return offset ? mpi.File_write_at_c(file, *offset, buffer, count, type, status)
                      : mpi.File_write_c(file, buffer, count, type, status);
#endif
    auto const few = static_cast<int>(count);
    return offset ? mpi.File_write_at(file, *offset, buffer, few, type, status)
                  : mpi.File_write(file, buffer, few, type, status);
}

}  // namespace

/// The file as the engine has it open. @pre it has
api::FileState& OpenFile::logged() const
{
    return *api::Inside::shared(*file_);
}

api::Staging& OpenFile::staging() const
{
    return *logged().staging;
}

bool OpenFile::is_staged() const
{
    return has_stage() && views_fit_ && !atomic_;
}

/// By what all ranks have said alike. What fewer ranks than the program has open together the others may open, too,
/// and would know nothing of the log; that is PnetCDF's way of aggregating within nodes.
bool OpenFile::may_stage() const
{
    return (amode_ & never_staged) == 0 && (wished_ || ranks_ >= comm::size_of(MPI_COMM_WORLD));
}

/// Whether writes through this rank's view can be logged, whatever they are.
bool OpenFile::fits_stage() const
{
    return bad_view_.empty() && view_.tile.ascending() && view_.extent >= view_.tile.end() - view_.tile.begin();
}

/// For the engine, with the stage that the settings ask for or, if that cannot be had, without. Collective.
File OpenFile::open_file()
{
    auto const mode = (amode_ & MPI_MODE_RDONLY) ? Mode::read : Mode::update;
    auto const open = [&](bool staged) {
        auto* const kept = channel_->comm.get() == MPI_COMM_SELF ? &channel_->pool : nullptr;
        return api::Inside::file(api::open_file(channel_->comm.get(), path_, mode, {}, hints_, false, staged, kept));
    };
    if (!may_stage()) return open(false);
    try {
        return open(true);
    } catch (Error const& error) {
        auto file = open(false);  // fails again, if it is not the stage
        static std::atomic<bool> warned = false;
        if (first_ && !warned.exchange(true)) std::fprintf(stderr, "%s; files go without the stage\n", error.what());
        return file;
    }
}

/// Whether all ranks have opened the same file; and whether their views can be staged. Collective.
bool OpenFile::identify()
{
    auto const mine = identity();
    std::array<std::int64_t, 3> values = {mine, -mine, fits_stage() ? 1 : 0};
    bool const heard = api::Inside::of(*file_).pool->least(values).has_value();  // also if this rank has found nothing
    identified_ = heard && values[0] != -INT64_MAX && values[0] == -values[1];
    views_fit_ = values[2] == 1;
    return identified_;
}

void OpenFile::tell(std::string const& text)
{
    if (first_ && !std::exchange(told_, true)) std::fprintf(stderr, "%s\n", text.c_str());
}

/// A flush has failed.
int OpenFile::failed(core::Failure const& failure)
{
    tell(fmt::format("tapioca: {}: {}", path_, failure.text));
    return class_of(failure.code, failure.sys_errno);
}

void OpenFile::move_pointer(Request const& request, Part const& part)
{
    if (!request.offset && part.bytes > 0) PMPI_File_seek(handle_, part.next(etype_bytes_), MPI_SEEK_SET);
}

/// None, with an obstacle, if there is no memory for it. @pre the part has bytes
std::optional<Recent::Found> OpenFile::variable_of(Part& part)
try {
    return recent_.of(part.access);
} catch (std::exception const& error) {
    part.obstacle = error.what();
    return std::nullopt;
}

/// The staged handle of the file, if this is another one, of this rank alone, through which accesses can be put in
/// order among what the ranks have logged.
std::shared_ptr<OpenFile> OpenFile::owner_of_log()
{
    if (!any_staged() || !alone_ || has_stage() || atomic_ || !fits_stage() || !which_) return nullptr;
    for (auto const& other : staged_handles_of(*which_, this))
        if (other->is_staged()) return other;
    return nullptr;
}

/// To the log of `owner`, this handle or another of the file. What comes through another one is in the file at once.
/// Local. @pre the owner's log is there, and locked
Outcome OpenFile::write_staged(Request const& request, bool collective, OpenFile& owner)
{
    auto part = look_at(request);
    auto const found = part.bytes > 0 ? variable_of(part) : std::nullopt;
    if (!part.obstacle.empty()) {
        calls_.passed(request.call, part.obstacle);
        auto const status = owner.staging().hand_over(stage::Stage::Next::write, false);
        if (!status && collective) owner.staging().note_failure(status);
        if (!status) return {true, class_of(status.error().code, status.error().sys_errno), 0};
        return collective ? write_past_the_log(request, part) : Outcome();
    }
    Outcome outcome{true, MPI_SUCCESS, part.bytes};
    if (found) {
        if (part.packed)
            pattern::pack(part.memory, static_cast<std::byte const*>(request.buffer), 0, part.bytes, part.data);
        auto const few = owner.logged().settings.options.stage_through.value_or(through_by_default);
        bool const at_once = owner.siblings_ || (!collective && static_cast<std::uint64_t>(part.bytes) < few);
        stage::Stage::Write const write{found->variable, found->shift, part.data, 0, collective};
        if (owner.staging().stage().empty()) owner.staging().touch();  // something may have been passed on before
        auto const status =
            at_once ? owner.staging().write_through(write, owner.siblings_) : owner.staging().write(write);
        if (!status) outcome = {true, class_of(status.error().code, status.error().sys_errno), 0};
    }
    calls_.served(request.call);
    move_pointer(request, part);
    return outcome;
}

/// A collective write that this rank cannot log, for a reason of its own: the others are not waiting for it. What is
/// wrong with it is the MPI library's to say. Local.
Outcome OpenFile::write_past_the_log(Request const& request, Part const& part)
{
    // Else older bytes of another rank could be drained or handed over before these are read back.
    stage::Lock const lock(staging().stage().writer().place().directory);
    MPI_Status status = {};
    Outcome outcome{true, write_alone(handle_, request, &status), 0, true};
    if (outcome.error != MPI_SUCCESS) return outcome;
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    outcome.bytes = bytes;
    if (auto const error = enter(part.access); error != MPI_SUCCESS) outcome = {true, error, bytes};
    return outcome;
}

/// Logs what was written past the log, as it is in the file now, so that it has its place among the other ranks'
/// requests. Local.
int OpenFile::enter(pattern::Access const& access)
{
    if (access.shape.bytes == 0) return MPI_SUCCESS;
    try {
        auto const found = recent_.of(access);
        auto* const target = logged().target();
        std::vector<std::byte> data(static_cast<std::size_t>(access.shape.bytes));
        auto status = target ? core::Status() : logged().target_status();
        each_piece(found, [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
            if (!status) return;
            auto const got = target->read(
                offset, std::span(data).subspan(static_cast<std::size_t>(place), static_cast<std::size_t>(length)));
            if (!got) status = tl::unexpected(got.error());
        });
        if (status)
            status = staging().stage().write_through({found.variable, found.shift, data.data(), 0, true},
                                                     [] { return core::Status(); });
        return status ? MPI_SUCCESS : class_of(status.error().code, status.error().sys_errno);
    } catch (std::exception const&) {
        return MPI_ERR_NO_MEM;
    }
}

Outcome OpenFile::serve_alone(Request const& request)
{
    Within const within;
    auto const other = owner_of_log();
    if (other || is_staged()) {
        auto& owner = other ? *other : *this;
        std::lock_guard const lock(owner.log_);
        if (owner.is_staged())  // else another thread has closed it just now, or changed its mode
            return request.direction == Direction::write ? write_staged(request, false, owner)
                                                         : read_over(request, owner);
    }
    calls_.passed(request.call);
    auto const error = hand_over(request.direction);
    return {error != MPI_SUCCESS, error, 0};
}

/// Before a collective read. Collective.
int OpenFile::flush_before(Request const& request)
{
    auto const part = look_at(request);
    bool const reads = part.obstacle.empty() && part.bytes > 0;
    std::lock_guard const lock(log_);
    auto const status =
        staging().flush_before_read(reads ? part.access.origin : pattern::no_offset, reads ? part.end : 0);
    return status ? MPI_SUCCESS : failed(status.error());
}

int OpenFile::hand_over_own(Direction direction, bool durable)
{
    Within const within;
    std::lock_guard const lock(log_);
    if (!has_stage()) return MPI_SUCCESS;
    auto const next = direction == Direction::write ? stage::Stage::Next::write : stage::Stage::Next::read;
    auto const status = staging().hand_over(next, durable);
    return status ? MPI_SUCCESS : class_of(status.error().code, status.error().sys_errno);
}

int OpenFile::hand_over(Direction direction, bool durable)
{
    auto error = has_stage() ? hand_over_own(direction, durable) : MPI_SUCCESS;
    if (!any_staged()) return error;
    if (!which_) return error;
    for (auto const& other : staged_handles_of(*which_, this)) {
        auto const others = other->hand_over_own(direction, durable);
        if (error == MPI_SUCCESS) error = others;
    }
    return error;
}

void OpenFile::passed_by(Direction direction)
{
    if (direction == Direction::read || !any_staged() || !which_) return;
    for (auto const& handle : staged_handles_of(*which_, nullptr)) {
        std::lock_guard const lock(handle->log_);
        if (handle->has_stage()) handle->staging().touch();
    }
}

int OpenFile::flush(bool durable)
{
    if (!has_stage()) return hand_over(Direction::write, durable);
    Within const within;
    watch("sync");
    std::lock_guard const lock(log_);
    staging().advance();
    auto const status = staging().flush(durable);
    staging().touch();  // the MPI library may change the file now
    overdue_ = !status;
    return status ? MPI_SUCCESS : failed(status.error());
}

int OpenFile::settle()
{
    if (!has_stage()) return MPI_SUCCESS;
    Within const within;
    watch("set_view");
    std::array<std::int64_t, 2> values = {fits_stage() ? 1 : 0, reopen_ ? 0 : 1};
    {
        std::lock_guard const lock(log_);
        staging().advance();
        if (!logged().pool->least(values)) return MPI_ERR_OTHER;
    }
    views_fit_ = values[0] == 1;
    if (views_fit_ && values[1] == 1) return MPI_SUCCESS;
    // What is in the log stays there if this fails, and so does the log: see overdue_.
    if (int const error = flush(false); error != MPI_SUCCESS) return error;
    if (values[1] == 1) return MPI_SUCCESS;
    close_engine();
    (void)open_engine();
    return std::exchange(late_, MPI_SUCCESS);
}

std::int64_t OpenFile::staged_end()
{
    std::lock_guard const lock(log_);
    if (!is_staged()) return 0;
    return staging().stage().end();
}

void OpenFile::tell_unclosed()
{
    if (has_stage()) tell("tapioca: " + api::never_closed(path_));
}

}  // namespace tapioca::mpiio
