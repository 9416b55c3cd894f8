// Check mode: do two ranks write the same bytes? Each rank looks after one slice of the file.
#include <algorithm>

#include <fmt/core.h>

#include "api/state.hpp"
#include "core/units.hpp"

namespace tapioca::api {

namespace {

using Interval = comm::Team::Interval;

/// This rank's pieces, merged, cut at slice boundaries, sorted into the slices' owners.
std::vector<std::vector<Interval>> deal(comm::Team const& team, pattern::Variables const& variables,
                                        pattern::Summary const& total)
{
    std::vector<std::vector<Interval>> slices(static_cast<std::size_t>(team.size()));
    auto const range = total.bytes == 0 ? 0 : total.end - total.begin;
    auto const width = std::max<std::int64_t>(1, core::divide_up(range, team.size()));
    for (auto const& variable : variables)
        for (auto const& layout : variable->layouts()) {
            pattern::Cursor cursor(layout);
            while (cursor.position() != pattern::no_offset) {
                auto const slice = (cursor.position() - total.begin) / width;
                auto& list = slices[static_cast<std::size_t>(slice)];
                auto const start = total.begin + slice * width;
                auto const limit = total.end - start < width ? total.end : start + width;
                for (pattern::Run run; cursor.next(limit, run);)
                    for (std::int64_t i = 0; i < run.count; ++i) {
                        auto const begin = run.offset + i * run.stride;
                        if (!list.empty() && list.back().end == begin)
                            list.back().end += run.length;
                        else
                            list.push_back({begin, begin + run.length, team.rank()});
                    }
            }
        }
    return slices;
}

}  // namespace

core::Status find_overlap(comm::Team const& team, pattern::Variables const& variables, pattern::Summary const& total)
{
    auto intervals = team.exchange(deal(team, variables, total));
    std::sort(intervals.begin(), intervals.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
    core::Status local;
    Interval reach{0, 0, -1};  // the furthest end so far, and the furthest of another rank
    Interval other{0, 0, -1};
    for (auto const& interval : intervals) {
        auto const& rival = reach.rank != interval.rank ? reach : other;
        if (rival.rank >= 0 && interval.begin < rival.end && local)
            local = core::fail(
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
    auto agreed = comm::agree(team.all(), local);
    if (!agreed) agreed.error().rank = -1;  // not of the rank that looked, but of the two that it names
    return agreed;
}

}  // namespace tapioca::api
