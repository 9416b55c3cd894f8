// Writes to the log of a file, and past the log to the file itself. All functions are local.
#include <algorithm>
#include <cstdint>

#include <fmt/core.h>

#include "core/warn.hpp"
#include "flush/staging.hpp"
#include "stage/log_files.hpp"
#include "target/range_lock.hpp"

namespace tapioca::flush {

namespace {

/// From the first byte to the end of the last; an empty range at 0 if there are no bytes.
std::pair<std::int64_t, std::int64_t> range_of(stage::Stage::Write const& write)
{
    auto begin = pattern::no_offset;
    std::int64_t end = 0;
    for (auto const& layout : write.variable.layouts()) {
        if (layout.pieces() == 0) continue;
        begin = std::min(begin, layout.base + layout.entries.front().offset);
        end = std::max(end, layout.end());
    }
    if (end == 0) return {0, 0};
    return {begin + write.shift, end + write.shift};
}

}  // namespace

core::Status Staging::write_to_target(stage::Stage::Write const& write)
{
    auto* const target = file_.target();
    if (!target) return file_.target_status();
    if (!write.data.packed()) return core::fail(Errc::unsupported, "scattered data can only be logged");
    core::Status status;
    auto const& layouts = write.variable.layouts();
    bool const one_piece = layouts.size() == 1 && layouts[0].pieces() == 1;
    auto const [begin, end] = range_of(write);
    // A single piece needs no lock, as in the MPI library.
    target::RangeLock const lock(*target, begin, one_piece ? begin : end);
    for (auto const& layout : layouts)
        pattern::each_piece(layout, [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
            if (status)
                status = target->write(write.shift + offset,
                                       std::span(write.data.packed() + place, static_cast<std::size_t>(length)));
        });
    return status;
}

/// Warns once per node.
void Staging::warn_if_full()
{
    if (!stage_.take_warning()) return;
    auto const& directory = stage_.writer().place().directory;
    auto const first = stage::create_private(directory + "/full");
    if (first || first.error().sys_errno != EEXIST)
        core::warn(fmt::format("{}: the log in {} is full and continues beside the file until the next flush",
                               file_.path, directory));
}

void Staging::note_failure(core::Status const& status)
{
    core::keep_first(failed_, status);
}

/// Data that can never be written to the file must not get into the log, because no flush could succeed then.
core::Status Staging::check_reach(stage::Stage::Write const& write)
{
    auto const end = range_of(write).second;
    if (end <= reach_) return {};
    auto* const target = file_.target();
    if (!target) return file_.target_status();
    reach_ = std::min(target::longest_file(target->descriptor()), stage::longest_file);
    return end <= reach_ ? core::Status() : core::fail_errno(EFBIG, fmt::format("a write that ends at byte {}", end));
}

core::Status Staging::write(stage::Stage::Write const& write)
{
    auto status = check_reach(write);
    if (status) status = stage_.write(write);
    warn_if_full();
    if (write.collective) core::keep_first(failed_, status);
    return status;
}

core::Status Staging::write_through(stage::Stage::Write const& write, bool beside_others)
{
    auto status = [&] {
        // Otherwise the background drainer, or another handle that hands over, could write older bytes in between.
        stage::Lock const lock(draining_ || beside_others ? stage_.writer().place().directory : std::string());
        return stage_.write_through(write, [&] { return write_to_target(write); });
    }();
    if (status && stage_.stage_sync() == StageSync::write) status = file_.target()->sync();
    if (write.collective) core::keep_first(failed_, status);
    return status;
}

core::Status Staging::hand_over(stage::Stage::PastTheLog next, bool durable)
{
    if (next == stage::Stage::PastTheLog::write) touch();
    if (stage_.empty()) return {};
    auto* const target = file_.target();
    if (!target) return file_.target_status();
    // Otherwise the background drainer could write these bytes after the access that follows, or this rank could
    // overwrite what another rank writes now.
    stage::Lock const lock(stage_.writer().place().directory);
    target::RangeLock const range(*target, stage_.begin(), stage_.end());
    bool const lasting = durable || (next == stage::Stage::PastTheLog::write && stage_.stage_sync() != StageSync::sync);
    auto const status = stage_.hand_over(*target, next, lasting);
    warn_if_full();
    return status;
}

}  // namespace tapioca::flush
