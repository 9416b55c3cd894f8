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

/// Calls visit(offset, length, place in the buffer) for every piece.
template <class Visit>
void each_piece(Recent::Found const& found, Visit const& visit)
{
    for (auto const& layout : found.variable.layouts()) {
        pattern::Cursor cursor(layout);
        for (pattern::Run run; cursor.next(pattern::no_offset, run);)
            for (std::int64_t i = 0; i < run.count; ++i)
                visit(found.shift + run.offset + i * run.stride, run.length, run.buffer + i * run.buffer_stride);
    }
}

}  // namespace

bool OpenFile::has_stage() const
{
    return file_ && api::Inside::shared(*file_)->staging;
}

/// The file as the engine has it open, with the log. @pre is_staged() or has_stage()
api::FileState& OpenFile::logged() const
{
    return *api::Inside::shared(first_handle_ ? *first_handle_->file_ : *file_);
}

api::Staging& OpenFile::staging() const
{
    return *logged().staging;
}

std::mutex& OpenFile::log() const
{
    return first_handle_ ? first_handle_->log_ : log_;
}

bool OpenFile::is_staged() const
{
    if (first_handle_) return first_handle_->has_stage() && fits_stage();
    return has_stage() && views_fit_ && !atomic_;
}

/// By what all ranks have said alike.
bool OpenFile::may_stage() const
{
    return (amode_ & (MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_SEQUENTIAL)) == 0;
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
        auto* const kept = bench_->comm == MPI_COMM_SELF ? &bench_->pool : nullptr;
        return api::Inside::file(api::open_file(bench_->comm, path_, mode, {}, hints_, false, staged, kept));
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

/// Local.
Outcome OpenFile::write_staged(Request const& request, bool collective)
{
    auto part = look_at(request);
    std::lock_guard const lock(log());
    auto const found = part.bytes > 0 ? variable_of(part) : std::nullopt;
    if (!part.obstacle.empty() && collective) return write_past_the_log(request, part);
    if (!part.obstacle.empty()) {
        calls_.passed(request.call, part.obstacle);
        return {false, MPI_SUCCESS, 0, false, part.access};
    }
    Outcome outcome{true, MPI_SUCCESS, part.bytes};
    if (found) {
        if (part.packed)
            pattern::pack(part.memory, static_cast<std::byte const*>(request.buffer), 0, part.bytes, part.data);
        bool const with_others = collective && !first_handle_;
        auto const few = logged().settings.options.stage_through.value_or(through_by_default);
        bool const at_once = atomic_ || (!with_others && static_cast<std::uint64_t>(part.bytes) < few);
        stage::Stage::Write const write{found->variable, found->shift, part.data, 0, with_others};
        auto const status = at_once ? staging().write_through(write) : staging().write(write);
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
    calls_.passed(request.call, part.obstacle);
    MPI_Status status = {};
    Outcome outcome{true, write_alone(handle_, request, &status), 0, true};
    if (outcome.error != MPI_SUCCESS) return outcome;
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    outcome.bytes = bytes;
    if (auto const error = enter(part.access, !first_handle_); error != MPI_SUCCESS) outcome = {true, error, bytes};
    return outcome;
}

/// Logs what was written past the log, as it is in the file now. Local.
int OpenFile::enter(pattern::Access const& access, bool collective)
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
            status = staging().stage().write_through({found.variable, found.shift, data.data(), 0, collective},
                                                     [] { return core::Status(); });
        return status ? MPI_SUCCESS : class_of(status.error().code, status.error().sys_errno);
    } catch (std::exception const&) {
        return MPI_ERR_NO_MEM;
    }
}

int OpenFile::note(pattern::Access const& access)
try {
    Within const within;
    std::lock_guard const lock(log());
    if (!is_staged() || access.shape.bytes == 0) return MPI_SUCCESS;
    auto const found = recent_.of(access);
    auto const status = staging().stage().forget(found.variable, found.shift);
    return status ? MPI_SUCCESS : class_of(status.error().code, status.error().sys_errno);
} catch (std::exception const&) {
    return MPI_ERR_NO_MEM;
}

Outcome OpenFile::serve_alone(Request const& request)
{
    if (!is_staged()) {
        calls_.passed(request.call);
        return {};
    }
    Within const within;
    return request.direction == Direction::write ? write_staged(request, false) : read_over(request);
}

/// Whether a read would find something else, or end elsewhere, without the logs of this node. Local.
bool OpenFile::concerns_log(Part const& part)
{
    if (!part.obstacle.empty() || part.bytes == 0) return false;
    auto const logged_range = staging().stage().range();
    if (part.access.origin >= logged_range.end) return false;
    if (part.end > logged_range.begin) return true;
    auto* const target = logged().target();
    auto const size = target ? target->size().value_or(0) : 0;
    return part.end > static_cast<std::int64_t>(size);
}

/// What is in the file, with what this node's ranks have staged over it; zeros where there is nothing. Local.
core::Status OpenFile::load(std::int64_t offset, std::span<std::byte> to)
{
    auto& file = logged();
    auto& stage = staging().stage();
    auto const end = offset + static_cast<std::int64_t>(to.size());
    std::int64_t logged = 0;
    auto status = stage.look(offset, end, [&](std::int64_t, std::int64_t length, auto const*) { logged += length; });
    if (!status) return status;
    if (logged < end - offset) {
        auto* const target = file.target();
        if (!target) return file.target_status();
        auto const got = target->read(offset, to);
        if (!got) return tl::unexpected(got.error());
        std::fill(to.begin() + static_cast<std::ptrdiff_t>(*got), to.end(), std::byte{0});
    }
    return stage.look(offset, end, [&](std::int64_t at, std::int64_t length, std::byte const* data) {
        std::copy_n(data, length, to.begin() + (at - offset));
    });
}

/// An independent read: passed on, unless a log of this node has to do with it. Local.
Outcome OpenFile::read_over(Request const& request)
{
    std::lock_guard const lock(log());
    auto part = look_at(request);
    auto const found = concerns_log(part) ? variable_of(part) : std::nullopt;
    if (!found) {
        calls_.passed(request.call);
        return {};
    }
    auto* const target = logged().target();
    auto const in_file = target ? static_cast<std::int64_t>(target->size().value_or(0)) : 0;
    auto const size = std::max(in_file, staging().stage().range().end);
    Outcome outcome{true, MPI_SUCCESS, 0};
    core::Status status;
    each_piece(*found, [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
        auto const there = std::clamp<std::int64_t>(size - offset, 0, length);
        if (!status || there == 0) return;
        status = load(offset, {part.data + place, static_cast<std::size_t>(there)});
        outcome.bytes += there;
    });
    if (!status) return {true, class_of(status.error().code, status.error().sys_errno), 0};
    if (part.packed) pattern::unpack(part.memory, static_cast<std::byte*>(request.buffer), 0, outcome.bytes, part.data);
    calls_.served(request.call);
    move_pointer(request, part);
    return outcome;
}

/// Before a collective read. Collective.
int OpenFile::flush_before(Request const& request)
{
    auto const part = look_at(request);
    bool const reads = part.obstacle.empty() && part.bytes > 0;
    std::lock_guard const lock(log());
    auto const status =
        staging().flush_before_read(reads ? part.access.origin : pattern::no_offset, reads ? part.end : 0);
    return status ? MPI_SUCCESS : failed(status.error());
}

int OpenFile::flush(bool durable)
{
    if (first_handle_ ? !is_staged() : !has_stage()) return MPI_SUCCESS;
    Within const within;
    watch("sync");
    std::lock_guard const lock(log());
    if (!first_handle_) staging().advance();
    auto const status = first_handle_ ? spill(0, pattern::no_offset) : staging().flush(durable);
    return status ? MPI_SUCCESS : failed(status.error());
}

int OpenFile::settle()
{
    if (!has_stage()) return MPI_SUCCESS;
    Within const within;
    watch("set_view");
    std::array<std::int64_t, 2> values = {fits_stage() ? 1 : 0, reopen_ ? 0 : 1};
    {
        std::lock_guard const lock(log());
        staging().advance();
        if (!logged().pool->least(values)) return MPI_ERR_OTHER;
    }
    views_fit_ = values[0] == 1;
    if (values[1] == 0) {
        close_engine();
        (void)open_engine();
        return std::exchange(late_, MPI_SUCCESS);
    }
    return views_fit_ ? MPI_SUCCESS : flush(false);
}

std::int64_t OpenFile::staged_end()
{
    if (!is_staged()) return 0;
    std::lock_guard const lock(log());
    return staging().stage().end();
}

/// Writes this rank's own staged bytes of [begin, end) to the file, ahead of the flush. Local.
core::Status OpenFile::spill(std::int64_t begin, std::int64_t end)
{
    auto& file = logged();
    auto* const target = file.target();
    if (!target) return file.target_status();
    core::Status status;
    staging().stage().taint();
    auto const looked = staging().stage().look(begin, end, [&](std::int64_t at, std::int64_t length, auto const* data) {
        if (status) status = target->write(at, std::span(data, static_cast<std::size_t>(length)));
    });
    return looked ? status : looked;
}

int OpenFile::lengthen()
{
    if (!is_staged()) return MPI_SUCCESS;
    Within const within;
    std::lock_guard const lock(log());
    auto const end = staging().stage().end();
    auto* const target = logged().target();
    if (end == 0 || (target && static_cast<std::int64_t>(target->size().value_or(0)) >= end)) return MPI_SUCCESS;
    auto const status = spill(end - 1, end);
    return status ? MPI_SUCCESS : class_of(status.error().code, status.error().sys_errno);
}

OpenFile::Shared OpenFile::before_shared(Direction direction)
{
    Shared shared;
    if (!is_staged()) return shared;
    Within const within;
    std::lock_guard const lock(log());
    shared.error = PMPI_File_get_position_shared(handle_, &shared.position);
    if (shared.error != MPI_SUCCESS || direction == Direction::write) return shared;
    auto const status = spill(view_.offset_of(shared.position * etype_bytes_), pattern::no_offset);
    if (!status) shared.error = class_of(status.error().code, status.error().sys_errno);
    return shared;
}

/// Whatever lies between the pointer's places was written by now, or is about to be, by this rank or another.
int OpenFile::after_shared(Shared const& before)
{
    if (!is_staged()) return MPI_SUCCESS;
    Within const within;
    MPI_Offset after = 0;
    if (PMPI_File_get_position_shared(handle_, &after) != MPI_SUCCESS || after <= before.position) return MPI_SUCCESS;
    auto const access =
        pattern::access_of(view_, before.position * etype_bytes_, (after - before.position) * etype_bytes_);
    return access ? note(*access) : MPI_SUCCESS;
}

}  // namespace tapioca::mpiio
