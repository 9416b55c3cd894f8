#include "flush/logged_read.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <numeric>

#include "stage/covered.hpp"

namespace tapioca::flush {

namespace {

using Interval = comm::Team::Interval;
using Lists = std::vector<std::vector<Interval>>;  ///< by rank

/// What is wanted, ascending and disjoint.
std::vector<Interval> united(std::vector<WantedPiece> const& wanted)
{
    std::vector<Interval> all;
    for (auto const& piece : wanted) all.push_back({piece.begin, piece.begin + piece.length, 0});
    std::sort(all.begin(), all.end(), [](Interval const& a, Interval const& b) { return a.begin < b.begin; });
    std::size_t kept = 0;
    for (auto const& interval : all) {
        if (kept > 0 && interval.begin <= all[kept - 1].end)
            all[kept - 1].end = std::max(all[kept - 1].end, interval.end);
        else
            all[kept++] = interval;
    }
    all.resize(kept);
    return all;
}

/// What one rank has written in a slice.
struct SliceClaim {
    std::int64_t begin;
    std::int64_t end;
    std::uint64_t epoch;
    std::int64_t rank;
    bool in_log;  ///< the rank's log has the bytes; otherwise they are in the file
};

/// What a rank has heard about its slice.
struct SliceContents {
    std::vector<SliceClaim> claims;
    std::vector<Interval> wanted;  ///< by the rank that it names
};

/// For each rank, what is to be sent there: first this rank, how much it has written in the slice and how much it wants
/// of it; then what it has written, with the epoch and whether its log has it; then what it wants.
Lists deal(comm::Team const& team, engine::FileSection const& range, std::vector<stage::Claim> const& claims,
           std::vector<Interval> const& wanted)
{
    auto const ranks = static_cast<std::size_t>(team.size());
    Lists slices(ranks, {{team.rank(), 0, 0}});
    for (auto const& claim : claims)
        engine::each_slice(team, range, claim.begin, claim.end, [&](std::size_t slice, std::int64_t from, auto to) {
            slices[slice].push_back({from, to, static_cast<std::int64_t>(claim.epoch * 2 + (claim.in_log ? 1 : 0))});
            ++slices[slice].front().end;
        });
    for (auto const& interval : wanted)
        engine::each_slice(team, range, interval.begin, interval.end,
                           [&](std::size_t slice, std::int64_t from, auto to) {
                               slices[slice].push_back({from, to, 0});
                               ++slices[slice].front().rank;
                           });
    return slices;
}

SliceContents hear(std::vector<Interval> const& incoming)
{
    SliceContents slice;
    for (std::size_t i = 0; i < incoming.size();) {
        auto const [rank, claims, wanted] = incoming[i++];
        for (auto const end = i + static_cast<std::size_t>(claims); i < end; ++i) {
            auto const told = static_cast<std::uint64_t>(incoming[i].rank);
            slice.claims.push_back({incoming[i].begin, incoming[i].end, told / 2, rank, told % 2 == 1});
        }
        for (auto const end = i + static_cast<std::size_t>(wanted); i < end; ++i)
            slice.wanted.push_back({incoming[i].begin, incoming[i].end, rank});
    }
    return slice;
}

/// Whether two ranks have written the same bytes between two collective calls.
bool ambiguous(std::vector<SliceClaim>& claims)
{
    std::sort(claims.begin(), claims.end(), [](SliceClaim const& a, SliceClaim const& b) {
        return std::pair(stage::Stage::call_of(a.epoch), a.begin) < std::pair(stage::Stage::call_of(b.epoch), b.begin);
    });
    for (std::size_t i = 1; i < claims.size(); ++i)
        if (stage::Stage::call_of(claims[i - 1].epoch) == stage::Stage::call_of(claims[i].epoch) &&
            claims[i].begin < claims[i - 1].end)
            return true;  // a rank has each of its bytes once
    return false;
}

/// The latest claims, each byte once, ascending.
std::vector<SliceClaim> latest(std::vector<SliceClaim>& claims)
{
    std::stable_sort(claims.begin(), claims.end(),
                     [](SliceClaim const& a, SliceClaim const& b) { return a.epoch > b.epoch; });
    std::vector<SliceClaim> all;
    stage::Covered covered;
    for (auto const& claim : claims)
        covered.take(claim.begin, claim.end, [&](std::int64_t begin, std::int64_t end) {
            all.push_back({begin, end, claim.epoch, claim.rank, claim.in_log});
        });
    std::sort(all.begin(), all.end(), [](SliceClaim const& a, SliceClaim const& b) { return a.begin < b.begin; });
    return all;
}

/// For each rank, the bytes that it wants and whose log has them. `past_logs`: set if some of them were written by a
/// rank, but are in the file and not in its log.
Lists answers(comm::Team const& team, std::vector<SliceClaim> const& latest, std::vector<Interval> const& wanted,
              bool& past_logs)
{
    Lists answers(static_cast<std::size_t>(team.size()));
    for (auto const& want : wanted) {
        auto& list = answers[static_cast<std::size_t>(want.rank)];
        auto at = std::partition_point(latest.begin(), latest.end(),
                                       [&](SliceClaim const& claim) { return claim.end <= want.begin; });
        for (; at != latest.end() && at->begin < want.end; ++at) {
            auto const begin = std::max(at->begin, want.begin);
            auto const end = std::min(at->end, want.end);
            past_logs = past_logs || !at->in_log;
            if (!at->in_log) continue;
            if (!list.empty() && list.back().end == begin && list.back().rank == at->rank)
                list.back().end = end;
            else
                list.push_back({begin, end, at->rank});
        }
    }
    return answers;
}

}  // namespace

bool may_be_listed(std::uint64_t pieces, std::int64_t bytes)
{
    constexpr std::uint64_t few = 4096;
    constexpr std::uint64_t most = 250'000;
    constexpr std::int64_t piece_bytes = 512;
    return pieces <= few || (pieces <= most && bytes / static_cast<std::int64_t>(pieces) >= piece_bytes);
}

LoggedRead::LoggedRead(engine::Session& session, stage::Stage& stage, engine::FileSection const& range, bool coherent)
    : session_(&session), stage_(&stage), range_(range), coherent_(coherent)
{
    auto const& team = session.team();
    servers_.resize(static_cast<std::size_t>(team.size()));
    std::iota(servers_.begin(), servers_.end(), 0);
    // An index of the node's logs takes memory on every rank, which should not have one of very many entries.
    constexpr std::uint64_t most_entries = 65'536;
    if (stage.entries_of_neighbours() > most_entries) return;
    near_ = range;
    for (auto const rank : team.nodes()[static_cast<std::size_t>(team.my_node())])
        servers_[static_cast<std::size_t>(rank)] = team.rank();
}

/// What this rank has written in the range; nothing if that cannot be found out. `doubtful`: what is not in the log may
/// not be in the file either.
std::optional<std::vector<stage::Claim>> LoggedRead::own_claims(bool& doubtful) const
{
    auto const content = stage_->content();
    if (!content || !stage_->surface(near_.begin, near_.end)) return std::nullopt;
    doubtful = doubtful || (*content)->doubtful();
    auto claims = (*content)->claims(range_.begin, range_.end);
    std::int64_t bytes = 0;
    for (auto const& claim : claims) bytes += claim.end - claim.begin;
    if (!may_be_listed(claims.size(), bytes)) return std::nullopt;
    return claims;
}

core::Result<std::optional<ReadFrom>> LoggedRead::find(std::optional<std::vector<WantedPiece>> const& wanted)
{
    auto const& team = session_->team();
    bool doubtful = !coherent_;
    auto claims = wanted ? own_claims(doubtful) : std::nullopt;
    auto mine = wanted ? united(*wanted) : std::vector<Interval>();
    std::int64_t bytes = 0;
    if (wanted)
        for (auto const& piece : *wanted) bytes += piece.length;
    bool const able = claims.has_value();
    if (!able) claims.reset();
    if (!able) mine.clear();

    auto slice = hear(team.exchange(deal(team, range_, claims.value_or(std::vector<stage::Claim>()), mine)));
    bool const clear = !ambiguous(slice.claims);
    bool past_logs = false;
    auto owned = team.exchange(answers(team, latest(slice.claims), slice.wanted, past_logs));
    std::sort(owned.begin(), owned.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
    std::int64_t found = 0;
    if (able)
        for (auto const& piece : *wanted) found += take(piece, owned);

    enum ReadFact { possible, all_in_logs, all_in_file, none_doubtful, none_past_logs };
    std::array<std::int64_t, 5> known = {able && clear, found == bytes, found == 0, !doubtful, !past_logs};
    if (auto status = session_->agreement().least(known); !status) return tl::unexpected(status.error());
    if (known[possible] == 0 || (known[none_doubtful] == 0 && known[none_past_logs] == 0)) return std::nullopt;
    return known[all_in_logs] == 1 ? ReadFrom::logs : known[all_in_file] == 1 ? ReadFrom::file : ReadFrom::both;
}

std::int64_t LoggedRead::take(WantedPiece const& piece, std::vector<Interval> const& owned)
{
    auto const end = piece.begin + piece.length;
    std::int64_t found = 0;
    auto at = std::partition_point(owned.begin(), owned.end(),
                                   [&](Interval const& interval) { return interval.end <= piece.begin; });
    for (; at != owned.end() && at->begin < end; ++at) {
        auto const from = std::max(at->begin, piece.begin);
        auto const length = std::min(at->end, end) - from;
        pieces_.push_back({servers_[static_cast<std::size_t>(at->rank)], static_cast<std::uint64_t>(at->rank), from,
                           length, piece.to + (from - piece.begin)});
        found += length;
    }
    return found;
}

core::Status LoggedRead::get(core::Status const& local, engine::FetchCounts& counts)
{
    auto status = local;
    auto const surface = stage_->surface(near_.begin, near_.end);
    if (status && !surface) status = tl::unexpected(surface.error());
    // The files that ranks know are the ranks' logs, and positions are those in the target.
    auto const read = [&](std::uint64_t rank, std::int64_t position, std::span<std::byte> to) -> core::Status {
        auto const end = position + static_cast<std::int64_t>(to.size());
        (*surface)->look_at(static_cast<std::uint32_t>(rank), position, end,
                            [&](std::int64_t at, std::int64_t length, std::byte const* data) {
                                if (data) std::copy_n(data, length, to.begin() + (at - position));
                            });
        return {};
    };
    return engine::fetch(*session_, status, std::move(pieces_), read, &counts);
}

}  // namespace tapioca::flush
