// Staged: writes. They go to the log or, if necessary, to the file itself, with their place in the log.
#include <vector>

#include "mpiio/error_class.hpp"
#include "mpiio/independent.hpp"
#include "mpiio/program_file.hpp"
#include "mpiio/staged.hpp"

namespace tapioca::mpiio {

namespace {

/// Libraries write small data independently and expect others to find it in the file.
constexpr std::uint64_t through_by_default = 64 * 1024;

}  // namespace

/// None, with an obstacle, if there is no memory for it. @pre the part has bytes, and the log is locked
std::optional<ShapeCache::Match> Staged::variable_of(PreparedAccess& part)
try {
    return shapes_.of(part.access);
} catch (std::exception const& error) {
    part.obstacle = error.what();
    return std::nullopt;
}

/// A write through this log's own handle or, if it is independent, through another handle of the file. Data that comes
/// through another handle is in the file at once. Local. @pre the log exists and is locked
AccessOutcome Staged::write(ProgramFile& through, DataAccess const& request, bool collective)
{
    auto part = look_at(through, request);
    auto const found = part.bytes > 0 ? variable_of(part) : std::nullopt;
    if (!part.obstacle.empty()) {
        through.calls.passed(request.call, part.obstacle);
        auto const status = staging().hand_over(stage::Stage::PastTheLog::write, false);
        if (!status && collective) staging().note_failure(status);
        if (!status) return {true, outcome_alone(status), 0};
        return collective ? write_past_the_log(request, part) : AccessOutcome();
    }
    AccessOutcome outcome{true, MPI_SUCCESS, part.bytes};
    if (found) {
        part.pack(request);
        auto const few = file().settings.options.stage_through.value_or(through_by_default);
        bool const at_once = siblings_ || (!collective && static_cast<std::uint64_t>(part.bytes) < few);
        stage::Stage::Write const write{found->variable, found->shift, part.data, 0, collective};
        if (staging().stage().empty()) staging().touch();  // something may have been passed on before
        auto const status = at_once ? staging().write_through(write, siblings_) : staging().write(write);
        if (!status) outcome = {true, outcome_alone(status), 0};
    }
    through.calls.served(request.call);
    move_pointer(through, request, part);
    return outcome;
}

/// A collective write that this rank cannot log, for a reason that concerns only this rank: the others do not wait for
/// it. The MPI library reports what is wrong. Local.
AccessOutcome Staged::write_past_the_log(DataAccess const& request, PreparedAccess const& part)
{
    // Otherwise older bytes of another rank could be drained or handed over before these are read back.
    stage::Lock const lock(staging().stage().writer().place().directory);
    auto const& set = program_.set;
    auto outcome = set ? set->access(request) : access_alone(program_.opened.handle, request);
    if (outcome.error != MPI_SUCCESS) return outcome;
    if (auto const error = enter(part.access); error != MPI_SUCCESS) outcome = {true, error, outcome.bytes};
    return outcome;
}

/// Logs data that was written past the log, as it is in the file now, so that it has a place among the other ranks'
/// requests. Local.
int Staged::enter(pattern::Access const& access)
{
    if (access.shape.bytes == 0) return MPI_SUCCESS;
    try {
        auto const found = shapes_.of(access);
        auto* const target = file().target();
        std::vector<std::byte> data(static_cast<std::size_t>(access.shape.bytes));
        auto status = target ? core::Status() : file().target_status();
        each_piece(found, [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
            if (!status) return;
            auto const got = target->read(
                offset, std::span(data).subspan(static_cast<std::size_t>(place), static_cast<std::size_t>(length)));
            if (!got) status = tl::unexpected(got.error());
        });
        if (status)
            status = staging().stage().write_through({found.variable, found.shift, data.data(), 0, true},
                                                     [] { return core::Status(); });
        return outcome_alone(status);
    } catch (std::exception const&) {
        return MPI_ERR_NO_MEM;
    }
}

}  // namespace tapioca::mpiio
