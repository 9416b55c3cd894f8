// Turns the best bids into places: each partition goes where it is cheapest, followed by moves and short chains of
// moves as long as they reduce the total cost.
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/index.hpp"
#include "core/units.hpp"
#include "plan/gateway_relief.hpp"
#include "plan/prices.hpp"

namespace tapioca::plan {

namespace {

constexpr double worthwhile = 1e-9;  // relative; smaller differences are rounding errors
constexpr int most_passes = 16;
constexpr std::size_t rivals_shown = 3;

using core::index;

/// The mean of the partitions' best bids.
double mean_score(Election const& election, Bids const& bids)
{
    double sum = 0;
    for (std::size_t p = 0; p < election.partitions.size(); ++p) sum += bids[p * bids_kept(election)].score;
    return sum / static_cast<double>(std::max<std::size_t>(1, election.partitions.size()));
}

class Assignment {
public:
    Assignment(Election const& election, Bids const& bids)
        : election_(election),
          kept_(bids_kept(election)),
          prices_(election),
          relief_(election, mean_score(election, bids)),
          guests_(election.where.size()),
          totals_(election.where.size(), 0)
    {
        for (std::size_t p = 0; p < election.partitions.size(); ++p) {
            std::vector<Bid> list;
            for (std::size_t i = 0; i < kept_; ++i)
                if (auto const& bid = bids[p * kept_ + i]; bid.node >= 0) list.push_back(bid);
            // From here on, scores are compared, up to rounding; among equals, the first node wins.
            auto const key = [](Bid const& bid) {
                return std::pair(std::bit_cast<std::uint64_t>(bid.score) >> 24, bid.node);
            };
            std::sort(list.begin(), list.end(), [&](auto const& a, auto const& b) { return key(a) < key(b); });
            lists_.push_back(std::move(list));
            taken_.push_back(Bid());
        }
    }

    std::vector<AggregatorPlace> run()
    {
        for (auto const p : by_regret()) sit(p, cheapest(p));
        for (int pass = 0; pass < most_passes && improve(); ++pass) {}
        spread();
        return aggregator_places();
    }

private:
    using Guests = std::vector<Guest>;

    /// The additional cost of `node` with `guest` (if any) in place of the partition `without`.
    [[nodiscard]] double change(int node, std::optional<Guest> guest, std::size_t without) const
    {
        after_.clear();
        for (auto const& other : guests_[index(node)])
            if (other.partition != without) after_.push_back(other);
        if (guest) after_.push_back(*guest);
        return prices_.total(node, after_) - totals_[index(node)];
    }

    /// The partitions that lose most by not getting their first choice come first.
    [[nodiscard]] std::vector<std::size_t> by_regret() const
    {
        std::vector<double> regret;
        for (auto const& list : lists_) regret.push_back(list.size() < 2 ? 0 : list[1].score - list[0].score);
        std::vector<std::size_t> order(lists_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return regret[a] > regret[b]; });
        return order;
    }

    [[nodiscard]] bool has_room(int node) const { return guests_[index(node)].size() < prices_.room(node); }

    [[nodiscard]] Bid cheapest(std::size_t p) const
    {
        Bid best;
        double least = 0;
        auto const consider = [&](Bid const& bid) {
            if (bid.node < 0 || !has_room(bid.node)) return;
            auto const more = change(bid.node, Guest{p, bid.score}, nobody) + relief_.more(bid.node);
            if (best.node < 0 || more < least * (1 - worthwhile)) {
                least = more;
                best = bid;
            }
        };
        for (auto const& bid : lists_[p]) consider(bid);
        // All nodes that bid are taken, or could take the partition only as a further one: look at other nodes.
        bool const crowded = best.node < 0 || !guests_[index(best.node)].empty() || relief_.more(best.node) > 0;
        if (crowded && lists_[p].size() == kept_ && kept_ < guests_.size())
            for (auto const& bid : offers(election_, p)) consider(bid);
        return best;
    }

    void sit(std::size_t p, Bid const& bid)
    {
        taken_[p] = bid;
        guests_[index(bid.node)].push_back({p, bid.score});
        relief_.count(bid.node, 1);
        add_up(bid.node);
    }
    void stand(std::size_t p)
    {
        std::erase_if(guests_[index(taken_[p].node)], [&](auto const& guest) { return guest.partition == p; });
        relief_.count(taken_[p].node, -1);
        add_up(taken_[p].node);
    }
    void add_up(int node) { totals_[index(node)] = prices_.total(node, guests_[index(node)]); }
    void move(std::size_t p, Bid const& bid)
    {
        stand(p);
        sit(p, bid);
    }

    /// Moves a partition to another node, or to the place of another partition, which then moves to a new place.
    bool improve()
    {
        bool improved = false;
        for (std::size_t p = 0; p < taken_.size(); ++p) {
            auto const from = taken_[p].node;
            auto const saved = -change(from, std::nullopt, p);
            auto const enough = -worthwhile * saved;
            Chain best;
            for (auto const& bid : lists_[p]) {
                if (bid.score >= saved) break;  // a partition that makes room gains by moving itself, if at all
                if (bid.node == from) continue;
                Guest const guest{p, bid.score};
                auto const passing = relief_.move(from, bid.node);
                if (has_room(bid.node))
                    best.keep({change(bid.node, guest, nobody) - saved + passing, bid, nobody, {}}, enough);
                for (auto const& [q, score] : guests_[index(bid.node)]) {
                    auto const instead = change(bid.node, guest, q);
                    for (auto const& next : lists_[q]) {
                        Guest const moved{q, next.score};
                        if (next.node == from)
                            best.keep({instead + change(from, moved, p), bid, q, next}, enough);
                        else if (next.node != bid.node && has_room(next.node))
                            best.keep(
                                {instead - saved + change(next.node, moved, nobody) + relief_.move(from, next.node),
                                 bid, q, next},
                                enough);
                    }
                }
            }
            if (best.bid.node < 0) continue;
            stand(p);
            if (best.other != nobody) move(best.other, best.next);
            sit(p, best.bid);
            improved = true;
        }
        return improved;
    }

    /// No node keeps a second aggregator while another node within 5 % of the cost has none.
    void spread()
    {
        auto const nodes = static_cast<int>(guests_.size());
        auto const idle = [&](int node) { return guests_[index(node)].empty() && has_room(node); };
        int left = 0;
        for (int node = 0; node < nodes; ++node) left += idle(node);
        for (int node = 0; node < nodes; ++node)
            for (auto const& place : prices_.places(node, guests_[index(node)])) {
                if (left == 0 || guests_[index(node)].size() < 2) break;
                Bid best;
                for (auto const& bid : offers(election_, place.partition))
                    if (bid.node >= 0 && idle(bid.node) && (best.node < 0 || bid.score < best.score) &&
                        relief_.move(node, bid.node) <= 0)
                        best = bid;
                if (best.node < 0 || best.score > 1.05 * place.score) continue;
                move(place.partition, best);
                --left;
            }
    }

    [[nodiscard]] std::vector<AggregatorPlace> aggregator_places() const
    {
        std::vector<AggregatorPlace> result(taken_.size());
        for (int node = 0; node < static_cast<int>(guests_.size()); ++node)
            for (auto const& place : prices_.places(node, guests_[index(node)])) {
                auto const& bid = taken_[place.partition];
                auto& aggregator_place = result[place.partition];
                aggregator_place = prices_.tight(node)
                                       ? AggregatorPlace{node, place.tier, place.score, place.cost, {}}
                                       : AggregatorPlace{node, index(bid.tier), bid.score, bid.cost, {}};
                for (auto const& other : lists_[place.partition])
                    if (other.node != node && aggregator_place.rivals.size() < rivals_shown)
                        aggregator_place.rivals.push_back(other);
            }
        return result;
    }

    static constexpr auto nobody = static_cast<std::size_t>(-1);

    struct Chain {
        double change = 0;
        Bid bid;                     ///< the bid that the partition takes
        std::size_t other = nobody;  ///< the partition that makes room for it
        Bid next;                    ///< the bid that the other partition takes
        void keep(Chain const& chain, double enough)
        {
            if (chain.change < std::min(change, enough)) *this = chain;
        }
    };

    Election const& election_;
    std::size_t kept_;
    Prices prices_;
    Relief relief_;
    std::vector<Guests> guests_;  ///< per node
    std::vector<double> totals_;  ///< cost of the guests, per node
    mutable Guests after_;        // used within one call
    std::vector<std::vector<Bid>> lists_;
    std::vector<Bid> taken_;  ///< per partition
};

/// True if some tier has the required persistency, whether or not it has room.
bool persistent(Election const& election)
{
    for (std::size_t tier = 0; tier < election.machine->tiers.size(); ++tier)
        if ((!election.pinned || *election.pinned == tier) &&
            election.machine->tiers[tier].persistency >= election.persistency)
            return true;
    return false;
}

std::string tiers_and_room(Election const& election)
{
    std::vector<std::string> texts;
    for (std::size_t tier = 0; tier < election.machine->tiers.size(); ++tier) {
        auto const& traits = election.machine->tiers[tier];
        if ((election.pinned && *election.pinned != tier) || traits.persistency < election.persistency) continue;
        std::uint64_t most = 0;
        for (std::size_t node = 0; node < election.where.size(); ++node)
            most = std::max(most, election.free_on(static_cast<int>(node), tier));
        texts.push_back(fmt::format("{} has {}", traits.name, core::format_bytes(most)));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

core::Result<std::vector<AggregatorPlace>> assign(Election const& election, Bids const& bids)
{
    std::size_t fit = 0;
    for (std::size_t node = 0; node < election.where.size(); ++node)
        fit += index(election.fit_on(static_cast<int>(node)));
    auto const wanted = election.partitions.size();
    if (!persistent(election)) {
        auto const who = election.pinned ? fmt::format("the tier {} does not persist",
                                                       election.machine->tiers[*election.pinned].name)
                                         : std::string("no tier here persists");
        return core::fail(Errc::setting,
                          fmt::format("{} as long as TAPIOCA_PERSISTENCY={} asks for: ask for less, or describe a tier "
                                      "that does in the platform file",
                                      who, core::name(election.persistency)));
    }
    if (fit < wanted)
        return core::fail(
            Errc::memory,
            fmt::format("an aggregator takes {}, and only {} of {} find room: {} free on a node; lower "
                        "TAPIOCA_BUFFERSIZE, TAPIOCA_BUFFERS or TAPIOCA_NBAGGR",
                        core::format_bytes(election.needed_bytes), fit, wanted, tiers_and_room(election)));
    return Assignment(election, bids).run();
}

std::vector<std::string> notes_on(Election const& election, std::vector<AggregatorPlace> const& aggregator_places)
{
    auto const model = election.costs();
    auto const& tiers = election.machine->tiers;
    for (std::size_t p = 0; p < aggregator_places.size(); ++p) {
        auto const& aggregator_place = aggregator_places[p];
        if (tiers.size() == 1 || election.pinned) break;
        auto const sources = election.sources(p);
        auto const rounds = election.partitions[p].rounds;
        for (std::size_t tier = 0; tier < tiers.size(); ++tier) {
            auto const free = election.free_on(aggregator_place.node, tier);
            if (tier == aggregator_place.tier || election.pinned || free == 0 ||
                tiers[tier].persistency < election.persistency)
                continue;
            if (model.cost(sources, election.where[index(aggregator_place.node)], tier, rounds).total_s >=
                aggregator_place.cost.total_s)
                continue;
            auto const fit = election.fit_on(aggregator_place.node, tier);
            return {fmt::format("{} would be faster, but {}: {} instead", tiers[tier].name,
                                fit == 0
                                    ? fmt::format("has {} free of the {} that an aggregator takes",
                                                  core::format_bytes(free), core::format_bytes(election.needed_bytes))
                                    : fmt::format("has room for {} only", fit),
                                tiers[aggregator_place.tier].name)};
        }
    }
    return {};
}

double total_score(Election const& election, std::vector<AggregatorPlace> const& aggregator_places)
{
    std::vector<std::vector<double>> nodes(election.where.size());
    for (auto const& aggregator_place : aggregator_places)
        nodes[index(aggregator_place.node)].push_back(aggregator_place.score);
    double total = 0;
    for (auto& scores : nodes) {
        std::sort(scores.begin(), scores.end(), std::greater<>());
        for (std::size_t i = 0; i < scores.size(); ++i) total += scores[i] * election.strategy->surcharge(i);
    }
    return total;
}

}  // namespace tapioca::plan
