#include "flush/owners.hpp"

#include <algorithm>

#include "engine/slices.hpp"
#include "stage/covered.hpp"

namespace tapioca::flush {

namespace {

using Interval = comm::Team::Interval;

/// This rank's claims, with the epoch in place of the rank, cut at slice boundaries. The first entry of each slice says
/// whose claims they are, and how many.
std::vector<std::vector<Interval>> deal(comm::Team const& team, std::vector<stage::Claim> const& claims,
                                        engine::FileSection const& section)
{
    std::vector<std::vector<Interval>> slices(static_cast<std::size_t>(team.size()), {{team.rank(), 0, 0}});
    for (auto const& claim : claims)
        engine::each_slice(team, section, claim.begin, claim.end,
                           [&](std::size_t slice, std::int64_t begin, std::int64_t end) {
                               auto& list = slices[slice];
                               list.push_back({begin, end, static_cast<std::int64_t>(claim.epoch)});
                               ++list.front().end;
                           });
    return slices;
}

/// For the claims on this rank's slice: what each rank loses to others.
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

std::vector<Extent> owned_by_others(comm::Team const& team, stage::LogContent& content, pattern::Summary const& total)
{
    std::vector<Extent> extents;
    for (auto const& section : engine::sections_of(total)) {
        auto const claims = content.claims(section.begin, section.end);
        auto lost = team.exchange(judge(team, team.exchange(deal(team, claims, section))));
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

}  // namespace tapioca::flush
