#include "engine/overlap.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "engine/slices.hpp"

namespace tapioca::engine {

namespace {

using Interval = comm::Team::Interval;

/// This rank's pieces, merged, cut at slice boundaries, sorted into the slices' owners.
std::vector<std::vector<Interval>> deal(comm::Team const& team, pattern::Variables const& variables,
                                        FileSection const& section)
{
    std::vector<std::vector<Interval>> slices(static_cast<std::size_t>(team.size()));
    auto const width = slice_of(team, section);
    for (auto const& variable : variables)
        for (auto const& layout : variable->layouts()) {
            pattern::LayoutCursor cursor(layout);
            cursor.seek(section.begin);
            while (cursor.position() < section.end) {
                auto const slice = (cursor.position() - section.begin) / width;
                auto& list = slices[static_cast<std::size_t>(slice)];
                auto const start = section.begin + slice * width;
                auto const limit = section.end - start < width ? section.end : start + width;
                auto const add = [&](std::int64_t begin, std::int64_t length, std::int64_t /*place*/) {
                    if (!list.empty() && list.back().end == begin)
                        list.back().end += length;
                    else
                        list.push_back({begin, begin + length, team.rank()});
                };
                for (pattern::PieceRun run; cursor.next(limit, run);) pattern::each_piece(run, add);
            }
        }
    return slices;
}

/// The failure that describes two ranks' overlapping pieces, if there are any.
core::Status overlap_of(std::vector<Interval>& intervals)
{
    std::sort(intervals.begin(), intervals.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
    Interval reach{0, 0, -1};  // the furthest end so far, and the furthest end of another rank
    Interval other{0, 0, -1};
    for (auto const& interval : intervals) {
        auto const& rival = reach.rank != interval.rank ? reach : other;
        if (rival.rank >= 0 && interval.begin < rival.end)
            return core::fail(
                Errc::mismatch,
                fmt::format("ranks {} and {} both declare bytes {} to {}", std::min(rival.rank, interval.rank),
                            std::max(rival.rank, interval.rank), interval.begin, std::min(interval.end, rival.end)));
        if (interval.rank == reach.rank) {
            reach.end = std::max(reach.end, interval.end);
        } else if (interval.end > reach.end) {
            other = reach;
            reach = interval;
        } else if (interval.end > other.end) {
            other = interval;
        }
    }
    return {};
}

}  // namespace

core::Status find_overlap(comm::Team const& team, pattern::Variables const& variables, pattern::Summary const& total)
{
    core::Status agreed;
    for (auto const& section : sections_of(total)) {
        auto intervals = team.exchange(deal(team, variables, section));
        agreed = comm::agree(team.all(), overlap_of(intervals));
        if (!agreed) break;
    }
    if (!agreed) agreed.error().rank = -1;  // the error names the two ranks that it concerns
    return agreed;
}

}  // namespace tapioca::engine
