// The bids of every node for every partition.
#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "core/index.hpp"
#include "plan/election.hpp"

namespace tapioca::plan {

namespace {

using core::index;

/// Scores that differ by about a percent count as equal, so that not all partitions choose the same few nodes.
bool before(Bid const& a, Bid const& b)
{
    auto const key = [](Bid const& bid) {
        return std::tuple(bid.node < 0, std::bit_cast<std::uint64_t>(bid.score) >> 46, bid.lot, bid.node);
    };
    return key(a) < key(b);
}

std::uint64_t draw(std::size_t partition, int node)
{
    auto x = (static_cast<std::uint64_t>(partition) << 32) + static_cast<std::uint64_t>(node) + 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/// Several nodes of the job may be on one node of the machine; they are one source.
void unite(std::vector<machine::Source>& sources)
{
    std::sort(sources.begin(), sources.end(), [](auto const& a, auto const& b) { return a.node < b.node; });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < sources.size(); ++i)
        if (sources[i].node == sources[kept].node)
            sources[kept].bytes += sources[i].bytes;
        else
            sources[++kept] = sources[i];
    if (!sources.empty()) sources.resize(kept + 1);
}

/// Added to the score of a node that is not a candidate for the partition: such a node is taken only if no candidate
/// has room.
constexpr double stranger = 1e9;

/// Turns costs into bids according to the election's strategy, for one partition.
class Bidder {
public:
    Bidder(Election const& election, std::size_t partition, std::vector<machine::Source> const& sources)
        : election_(election), partition_(partition), score_(election.strategy->scorer(election, partition))
    {
        if (!elects_among_producers(election.model) || election.strategy->baseline) return;
        for (auto const& source : sources) producers_.push_back(source.node);  // in ascending order
    }

    /// Replaces `bid` by the node's offer on `tier` if that is better.
    void offer(Bid& bid, int node, std::size_t tier, Cost const& cost) const
    {
        if (election_.fit_on(node, tier) == 0) return;
        if (bid.node >= 0 && cost.total_s >= bid.cost.total_s) return;
        bid = {score_(node, cost), cost, draw(partition_, node), node, static_cast<std::int32_t>(tier)};
        if (!producers_.empty() &&
            !std::binary_search(producers_.begin(), producers_.end(), election_.where[index(node)]))
            bid.score += stranger;
    }

private:
    Election const& election_;
    std::size_t partition_;
    Scorer score_;
    std::vector<int> producers_;  ///< nodes of the machine to choose from; empty: all
};

}  // namespace

void Election::weigh(std::vector<Weight> found)
{
    weights = std::move(found);
    std::sort(weights.begin(), weights.end(),
              [](Weight const& a, Weight const& b) { return std::pair(a.begin, a.node) < std::pair(b.begin, b.node); });
    longest_weight_ = 0;
    for (auto const& weight : weights) longest_weight_ = std::max(longest_weight_, weight.end - weight.begin);
}

CostModel Election::costs() const
{
    return {*machine, model, remote_storage};
}

std::vector<machine::Source> Election::sources(std::size_t partition) const
{
    auto sources = partitions[partition].sources;
    if (!sources.empty()) return sources;
    auto const least = partition >= longest_weight_ ? partition + 1 - longest_weight_ : 0;
    auto weight = std::lower_bound(weights.begin(), weights.end(), least,
                                   [](Weight const& one, std::size_t begin) { return one.begin < begin; });
    for (; weight != weights.end() && weight->begin <= partition; ++weight)
        if (weight->covers(partition) && weight->bytes_in(partition) > 0)
            sources.push_back({where[index(weight->node)], static_cast<double>(weight->bytes_in(partition))});
    unite(sources);
    return sources;
}

std::uint64_t Election::free_on(int node, std::size_t tier) const
{
    return free_bytes.size() == 1 ? free_bytes[0][tier] : free_bytes[index(node)][tier];
}

std::uint64_t Election::fit_on(int node, std::size_t t) const
{
    if ((pinned && *pinned != t) || machine->tiers[t].persistency < persistency) return 0;
    return free_on(node, t) / std::max<std::uint64_t>(1, needed_bytes);
}

int Election::fit_on(int node) const
{
    std::uint64_t fit = 0;
    for (std::size_t t = 0; t < machine->tiers.size(); ++t) fit += fit_on(node, t);
    return static_cast<int>(std::min<std::uint64_t>(fit, static_cast<std::uint64_t>(aggregator_places[index(node)])));
}

std::size_t bids_kept(Election const& election)
{
    return std::min<std::size_t>(16, election.where.size());
}

Bids no_bids(Election const& election)
{
    return Bids(election.partitions.size() * bids_kept(election));
}

Bids bids_of(Election const& election, int node)
{
    auto bids = no_bids(election);
    auto const kept = bids_kept(election);
    auto const model = election.costs();
    for (std::size_t p = 0; p < election.partitions.size(); ++p) {
        auto const sources = election.sources(p);
        Bidder const bidder(election, p, sources);
        for (std::size_t tier = 0; tier < election.machine->tiers.size(); ++tier)
            if (election.fit_on(node, tier) > 0)
                bidder.offer(bids[p * kept], node, tier,
                             model.cost(sources, election.where[index(node)], tier, election.partitions[p].rounds));
    }
    return bids;
}

std::vector<Bid> offers(Election const& election, std::size_t partition)
{
    auto const model = election.costs();
    auto const sources = election.sources(partition);
    Bidder const bidder(election, partition, sources);
    auto const rounds = election.partitions[partition].rounds;
    std::vector<Bid> result(election.where.size());
    for (std::size_t tier = 0; tier < election.machine->tiers.size(); ++tier) {
        if (election.pinned && *election.pinned != tier) continue;
        auto const costs = model.costs(sources, tier, rounds);
        for (std::size_t node = 0; node < result.size(); ++node)
            bidder.offer(result[node], static_cast<int>(node), tier, costs[index(election.where[node])]);
    }
    return result;
}

Bids all_bids(Election const& election)
{
    auto bids = no_bids(election);
    auto const kept = bids_kept(election);
    for (std::size_t p = 0; p < election.partitions.size(); ++p) {
        auto all = offers(election, p);
        std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(), before);
        std::copy_n(all.begin(), kept, bids.begin() + static_cast<std::ptrdiff_t>(p * kept));
    }
    return bids;
}

void merge(std::span<Bid> kept, std::span<Bid const> others)
{
    std::vector<Bid> both(kept.size() + others.size());
    std::merge(kept.begin(), kept.end(), others.begin(), others.end(), both.begin(), before);
    std::copy_n(both.begin(), kept.size(), kept.begin());
}

}  // namespace tapioca::plan
