// Do two ranks write the same bytes, and whose are they then? Each rank looks after one slice of the file.
#include <algorithm>

#include <fmt/core.h>

#include "api/state.hpp"
#include "core/units.hpp"
#include "stage/covered.hpp"

namespace tapioca::api {

namespace {

using Interval = comm::Team::Interval;

/// A part of the file that is looked at in one go.
struct Window {
    std::int64_t begin;
    std::int64_t end;
};

/// So many that small pieces take little memory, as long as they are spread evenly. The same on all ranks.
std::vector<Window> windows_of(pattern::Summary const& total)
{
    constexpr std::uint64_t pieces = 250'000;
    if (total.bytes == 0) return {};
    auto const count = static_cast<std::int64_t>(1 + total.most_pieces / pieces);
    auto const width = core::divide_up(total.end - total.begin, count);
    std::vector<Window> windows;
    for (auto begin = total.begin; begin < total.end;) {
        auto const end = total.end - begin < width ? total.end : begin + width;
        windows.push_back({begin, end});
        begin = end;
    }
    return windows;
}

/// How much of it a rank looks after.
std::int64_t slice_of(comm::Team const& team, Window const& window)
{
    return core::divide_up(window.end - window.begin, team.size());
}

/// This rank's pieces, merged, cut at slice boundaries, sorted into the slices' owners.
std::vector<std::vector<Interval>> deal(comm::Team const& team, pattern::Variables const& variables,
                                        Window const& window)
{
    std::vector<std::vector<Interval>> slices(static_cast<std::size_t>(team.size()));
    auto const width = slice_of(team, window);
    for (auto const& variable : variables)
        for (auto const& layout : variable->layouts()) {
            pattern::Cursor cursor(layout);
            cursor.seek(window.begin);
            while (cursor.position() < window.end) {
                auto const slice = (cursor.position() - window.begin) / width;
                auto& list = slices[static_cast<std::size_t>(slice)];
                auto const start = window.begin + slice * width;
                auto const limit = window.end - start < width ? window.end : start + width;
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

/// This rank's claims, with their epochs in the place of the rank, cut at slice boundaries; first in each slice is who
/// makes them, and how many.
std::vector<std::vector<Interval>> deal(comm::Team const& team, std::vector<stage::Claim> const& claims,
                                        Window const& window)
{
    std::vector<std::vector<Interval>> slices(static_cast<std::size_t>(team.size()), {{team.rank(), 0, 0}});
    auto const width = slice_of(team, window);
    for (auto const& claim : claims)
        for (auto begin = claim.begin; begin < claim.end;) {
            auto const slice = (begin - window.begin) / width;
            auto const limit = window.begin + slice * width;
            auto const end = window.end - limit < width ? claim.end : std::min(claim.end, limit + width);
            auto& list = slices[static_cast<std::size_t>(slice)];
            list.push_back({begin, end, static_cast<std::int64_t>(claim.epoch)});
            ++list.front().end;
            begin = end;
        }
    return slices;
}

/// Of the claims on this rank's slice, what each rank loses to others.
std::vector<std::vector<Interval>> judge(comm::Team const& team, std::vector<Interval> const& incoming)
{
    struct Claimed {
        Interval bytes;  ///< with the epoch
        std::int64_t rank;
    };
    std::vector<Claimed> claims;
    claims.reserve(incoming.size());
    for (std::size_t i = 0; i < incoming.size();) {
        auto const [rank, count, none] = incoming[i++];
        for (auto const end = i + static_cast<std::size_t>(count); i < end; ++i) claims.push_back({incoming[i], rank});
    }
    std::sort(claims.begin(), claims.end(), [](Claimed const& a, Claimed const& b) {
        return std::pair(a.bytes.rank, a.rank) > std::pair(b.bytes.rank, b.rank);
    });
    std::vector<std::vector<Interval>> lost(static_cast<std::size_t>(team.size()));
    stage::Covered covered;
    for (auto const& claim : claims) {
        auto& list = lost[static_cast<std::size_t>(claim.rank)];
        auto at = claim.bytes.begin;
        covered.take(claim.bytes.begin, claim.bytes.end, [&](std::int64_t begin, std::int64_t end) {
            if (at < begin) list.push_back({at, begin, 0});
            at = end;
        });
        if (at < claim.bytes.end) list.push_back({at, claim.bytes.end, 0});
    }
    return lost;
}

}  // namespace

std::vector<Extent> owned_by_others(comm::Team const& team, stage::Content& content, pattern::Summary const& total)
{
    std::vector<Extent> extents;
    for (auto const& window : windows_of(total)) {
        auto const claims = content.claims(window.begin, window.end);
        auto lost = team.exchange(judge(team, team.exchange(deal(team, claims, window))));
        std::sort(lost.begin(), lost.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
        for (auto const& bytes : lost) {
            if (!extents.empty() && extents.back().offset + extents.back().length == bytes.begin)
                extents.back().length += bytes.end - bytes.begin;
            else
                extents.push_back({bytes.begin, bytes.end - bytes.begin});
        }
    }
    return extents;
}

namespace {

/// Two ranks' pieces that overlap, in words.
core::Status overlap_of(std::vector<Interval>& intervals)
{
    std::sort(intervals.begin(), intervals.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
    Interval reach{0, 0, -1};  // the furthest end so far, and the furthest of another rank
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
    for (auto const& window : windows_of(total)) {
        auto intervals = team.exchange(deal(team, variables, window));
        agreed = comm::agree(team.all(), overlap_of(intervals));
        if (!agreed) break;
    }
    if (!agreed) agreed.error().rank = -1;  // not of the rank that looked, but of the two that it names
    return agreed;
}

}  // namespace tapioca::api
