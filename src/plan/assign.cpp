// The best bids become seats: each partition where it is cheapest, then moves and short chains of moves as long as they
// make the whole cheaper.
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/index.hpp"
#include "core/units.hpp"
#include "plan/election.hpp"

namespace tapioca::plan {

namespace {

constexpr double worthwhile = 1e-9;  // relative: less is rounding
constexpr int most_passes = 16;
constexpr std::size_t rivals_shown = 3;

using core::index;

class Assignment {
public:
    Assignment(Election const& election, Bids const& bids)
        : election_(election), model_(election.costs()), guests_(election.where.size())
    {
        for (std::size_t node = 0; node < guests_.size(); ++node)
            room_.push_back(index(election.fit_on(static_cast<int>(node))));
        for (std::size_t p = 0; p < election.partitions.size(); ++p) {
            std::vector<Bid> list;
            for (std::size_t i = 0; i < bids_kept; ++i)
                if (auto const& bid = bids[p * bids_kept + i]; bid.node >= 0) list.push_back(bid);
            // From here on the score counts, but for rounding; among equals the first node.
            auto const key = [](Bid const& bid) {
                return std::pair(std::bit_cast<std::uint64_t>(bid.score) >> 24, bid.node);
            };
            std::sort(list.begin(), list.end(), [&](auto const& a, auto const& b) { return key(a) < key(b); });
            lists_.push_back(std::move(list));
            taken_.push_back(Bid());
        }
    }

    std::vector<Seat> run()
    {
        for (auto const p : by_regret()) sit(p, cheapest(p));
        for (int pass = 0; pass < most_passes && improve(); ++pass) {}
        spread();
        return seats();
    }

private:
    using Guests = std::vector<std::size_t>;

    /// The score of a node's aggregators together: the dearest pays the least surcharge.
    [[nodiscard]] double score_of(Guests const& guests) const
    {
        std::vector<double> scores;
        scores.reserve(guests.size());
        for (auto const p : guests) scores.push_back(taken_[p].score);
        return sum(std::move(scores));
    }
    [[nodiscard]] double sum(std::vector<double> scores) const
    {
        if (scores.size() == 1) return scores[0];
        std::sort(scores.begin(), scores.end(), std::greater<>());
        double total = 0;
        for (std::size_t i = 0; i < scores.size(); ++i) total += scores[i] * surcharge(election_.strategy, i);
        return total;
    }
    /// What `node` would cost more with `score` in place of the guest `without` (none: size_t(-1)).
    [[nodiscard]] double change(int node, double score, std::size_t without) const
    {
        auto const& guests = guests_[index(node)];
        std::vector<double> scores;
        scores.reserve(guests.size() + 1);
        for (auto const p : guests)
            if (p != without) scores.push_back(taken_[p].score);
        if (score >= 0) scores.push_back(score);
        return (scores.empty() ? 0 : sum(std::move(scores))) - (guests.empty() ? 0 : score_of(guests));
    }

    /// Partitions that lose most by not getting their first choice come first.
    [[nodiscard]] std::vector<std::size_t> by_regret() const
    {
        std::vector<double> regret;
        for (auto const& list : lists_) regret.push_back(list.size() < 2 ? 0 : list[1].score - list[0].score);
        std::vector<std::size_t> order(lists_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return regret[a] > regret[b]; });
        return order;
    }

    [[nodiscard]] bool has_room(int node) const { return guests_[index(node)].size() < room_[index(node)]; }

    [[nodiscard]] Bid cheapest(std::size_t p)
    {
        Bid best;
        double least = 0;
        auto const consider = [&](Bid const& bid) {
            if (!has_room(bid.node)) return;
            auto const more = change(bid.node, bid.score, no_guest);
            if (best.node < 0 || more < least * (1 - worthwhile)) {
                least = more;
                best = bid;
            }
        };
        for (auto const& bid : lists_[p]) consider(bid);
        // All that bid are taken, or only as a further one of a node: look further.
        bool const crowded = best.node < 0 || !guests_[index(best.node)].empty();
        if (crowded && lists_[p].size() == bids_kept)
            for (auto const& bid : offers(election_, p))
                if (bid.node >= 0) consider(bid);
        return best;
    }

    void sit(std::size_t p, Bid const& bid)
    {
        taken_[p] = bid;
        guests_[index(bid.node)].push_back(p);
    }
    void stand(std::size_t p)
    {
        auto& guests = guests_[index(taken_[p].node)];
        guests.erase(std::find(guests.begin(), guests.end(), p));
    }
    void move(std::size_t p, Bid const& bid)
    {
        stand(p);
        sit(p, bid);
    }

    /// A partition to another node, or to another's place while that one finds a new one.
    bool improve()
    {
        bool improved = false;
        for (std::size_t p = 0; p < taken_.size(); ++p) {
            auto const from = taken_[p].node;
            auto const saved = -change(from, -1, p);
            auto const enough = -worthwhile * saved;
            Chain best;
            for (auto const& bid : lists_[p]) {
                if (bid.score >= saved) break;  // whoever makes room for it gains by itself, if at all
                if (bid.node == from) continue;
                if (has_room(bid.node))
                    best.keep({change(bid.node, bid.score, no_guest) - saved, bid, no_guest, {}}, enough);
                for (auto const q : guests_[index(bid.node)]) {
                    auto const instead = change(bid.node, bid.score, q);
                    for (auto const& next : lists_[q]) {
                        if (next.node == from)
                            best.keep({instead + change(from, next.score, p), bid, q, next}, enough);
                        else if (next.node != bid.node && has_room(next.node))
                            best.keep({instead - saved + change(next.node, next.score, no_guest), bid, q, next},
                                      enough);
                    }
                }
            }
            if (best.bid.node < 0) continue;
            stand(p);
            if (best.other != no_guest) move(best.other, best.next);
            sit(p, best.bid);
            improved = true;
        }
        return improved;
    }

    /// No node keeps a second aggregator while another within 5 % has none.
    void spread()
    {
        auto const idle = [&](int node) { return guests_[index(node)].empty() && has_room(node); };
        auto const nodes = static_cast<int>(guests_.size());
        auto const first = [&](int node) {
            while (node < nodes && !idle(node)) ++node;
            return node;
        };
        if (first(0) == nodes) return;
        for (std::size_t p = 0; p < taken_.size(); ++p) {
            if (guests_[index(taken_[p].node)].size() < 2) continue;
            Bid best;
            for (auto const& bid : offers(election_, p))
                if (bid.node >= 0 && idle(bid.node) && (best.node < 0 || bid.score < best.score)) best = bid;
            if (best.node >= 0 && best.score <= 1.05 * taken_[p].score) move(p, best);
        }
    }

    /// Each node's aggregators on its tiers, as long as there is room.
    [[nodiscard]] std::vector<Seat> seats() const
    {
        auto const tiers = election_.machine->tiers.size();
        std::vector<std::vector<std::uint64_t>> left(guests_.size());
        std::vector<Seat> result;
        for (std::size_t p = 0; p < taken_.size(); ++p) {
            auto const& bid = taken_[p];
            auto& room = left[index(bid.node)];
            for (std::size_t tier = room.size(); tier < tiers; ++tier) room.push_back(election_.fit_on(bid.node, tier));
            Seat seat{bid.node, index(bid.tier), bid.score, bid.cost, {}};
            if (room[seat.tier] == 0) seat = elsewhere(p, seat, room);
            --room[seat.tier];
            for (auto const& other : lists_[p])
                if (other.node != bid.node && seat.rivals.size() < rivals_shown) seat.rivals.push_back(other);
            result.push_back(std::move(seat));
        }
        return result;
    }
    [[nodiscard]] Seat elsewhere(std::size_t p, Seat seat, std::vector<std::uint64_t> const& room) const
    {
        auto const& [sources, bytes, rounds] = election_.partitions[p];
        seat.cost.total_s = std::numeric_limits<double>::infinity();
        for (std::size_t tier = 0; tier < room.size(); ++tier) {
            if (room[tier] == 0) continue;
            auto const cost = model_.cost(sources, election_.where[index(seat.node)], tier, rounds);
            if (cost.total_s >= seat.cost.total_s) continue;
            seat.tier = tier;
            seat.cost = cost;
        }
        return seat;
    }

    struct Chain {
        double change = 0;
        Bid bid;            ///< that the partition takes
        std::size_t other;  ///< the partition that makes room for it, or none
        Bid next;           ///< which that one takes
        void keep(Chain const& chain, double enough)
        {
            if (chain.change < std::min(change, enough)) *this = chain;
        }
    };

    static constexpr auto no_guest = static_cast<std::size_t>(-1);
    Election const& election_;
    CostModel model_;
    std::vector<Guests> guests_;     ///< per node
    std::vector<std::size_t> room_;  ///< per node
    std::vector<std::vector<Bid>> lists_;
    std::vector<Bid> taken_;  ///< per partition
};

std::string tiers_and_room(Election const& election)
{
    std::vector<std::string> texts;
    for (std::size_t tier = 0; tier < election.machine->tiers.size(); ++tier) {
        if (election.pinned && *election.pinned != tier) continue;
        std::uint64_t most = 0;
        for (std::size_t node = 0; node < election.where.size(); ++node)
            most = std::max(most, election.free_on(static_cast<int>(node), tier));
        auto const& traits = election.machine->tiers[tier];
        texts.push_back(traits.persistency < election.persistency
                            ? fmt::format("{} does not persist", traits.name)
                            : fmt::format("{} has {}", traits.name, core::format_bytes(most)));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

core::Result<std::vector<Seat>> assign(Election const& election, Bids const& bids)
{
    std::size_t fit = 0;
    for (std::size_t node = 0; node < election.where.size(); ++node)
        fit += index(election.fit_on(static_cast<int>(node)));
    auto const wanted = election.partitions.size();
    if (fit < wanted)
        return core::fail(
            Errc::memory,
            fmt::format("an aggregator takes {}, and {} of {} find room: {} free on a node; lower "
                        "TAPIOCA_BUFFERSIZE, TAPIOCA_BUFFERS or TAPIOCA_NBAGGR",
                        core::format_bytes(election.needed_bytes), fit, wanted, tiers_and_room(election)));
    return Assignment(election, bids).run();
}

std::vector<std::string> notes_on(Election const& election, std::vector<Seat> const& seats)
{
    std::vector<std::string> notes;
    auto const model = election.costs();
    auto const& tiers = election.machine->tiers;
    for (std::size_t p = 0; p < seats.size() && notes.empty(); ++p) {
        auto const& seat = seats[p];
        auto const& [sources, bytes, rounds] = election.partitions[p];
        for (std::size_t tier = 0; tier < tiers.size(); ++tier) {
            auto const free = election.free_on(seat.node, tier);
            if (tier == seat.tier || election.pinned || free == 0 || tiers[tier].persistency < election.persistency)
                continue;
            auto const cost = model.cost(sources, election.where[index(seat.node)], tier, rounds);
            if (cost.total_s < seat.cost.total_s)
                notes.push_back(
                    fmt::format("{} would be faster and has {} free of the {} that an aggregator takes: "
                                "{} instead",
                                tiers[tier].name, core::format_bytes(free), core::format_bytes(election.needed_bytes),
                                tiers[seat.tier].name));
        }
    }
    return notes;
}

double total_score(Election const& election, std::vector<Seat> const& seats)
{
    std::vector<std::vector<double>> nodes(election.where.size());
    for (auto const& seat : seats) nodes[index(seat.node)].push_back(seat.score);
    double total = 0;
    for (auto& scores : nodes) {
        std::sort(scores.begin(), scores.end(), std::greater<>());
        for (std::size_t i = 0; i < scores.size(); ++i) total += scores[i] * surcharge(election.strategy, i);
    }
    return total;
}

}  // namespace tapioca::plan
