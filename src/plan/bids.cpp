// What every node offers for every partition.
#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

#include "core/index.hpp"
#include "plan/election.hpp"

namespace tapioca::plan {

namespace {

constexpr std::array<std::pair<std::string_view, Strategy>, 5> strategies = {
    {{"SHORTEST_PATH", Strategy::shortest_path},
     {"LONGEST_PATH", Strategy::longest_path},
     {"TOPOLOGY_AWARE", Strategy::topology_aware},
     {"CONTENTION_AWARE", Strategy::contention_aware},
     {"RANK_ORDER", Strategy::rank_order}}};

using core::index;

/// Scores that differ by a percent or so count as equal, so that not all partitions want the same few nodes.
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

/// Several nodes of the job may lie on one of the machine, which is one source.
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

/// Hops that the path strategies count: to the file, or from all producers.
std::vector<double> paths(Election const& election, std::size_t partition)
{
    auto const& machine = *election.machine;
    std::vector<double> hops(machine.gateways.hops.begin(), machine.gateways.hops.end());
    if (!hops.empty()) return hops;
    std::vector<machine::Charge> const one_a_hop(machine.topology->levels().size(), {1, 0});
    return machine.topology->costs(election.sources(partition), one_a_hop);
}

bool by_path(Strategy strategy)
{
    return strategy == Strategy::shortest_path || strategy == Strategy::longest_path;
}

/// Turns costs into bids under the election's strategy, for one partition.
class Bidder {
public:
    Bidder(Election const& election, std::size_t partition) : election_(election), partition_(partition)
    {
        if (!by_path(election.strategy)) return;
        hops_ = paths(election, partition);
        most_ = *std::max_element(hops_.begin(), hops_.end());
    }

    /// The better of `bid` and the node's offer on `tier`.
    void offer(Bid& bid, int node, std::size_t tier, Cost const& cost) const
    {
        if (election_.fit_on(node, tier) == 0) return;
        if (bid.node >= 0 && cost.total_s >= bid.cost.total_s) return;
        bid = {score(node, cost), cost, draw(partition_, node), node, static_cast<std::int32_t>(tier)};
    }

private:
    [[nodiscard]] double score(int node, Cost const& cost) const
    {
        auto const nodes = static_cast<int>(election_.where.size());
        switch (election_.strategy) {
        case Strategy::shortest_path: return 1 + hops_[index(election_.where[index(node)])];
        case Strategy::longest_path: return 1 + most_ - hops_[index(election_.where[index(node)])];
        case Strategy::rank_order: return (node - static_cast<int>(partition_ % index(nodes)) + nodes) % nodes + 1;
        case Strategy::topology_aware:
        case Strategy::contention_aware: break;
        }
        return cost.total_s;
    }

    Election const& election_;
    std::size_t partition_;
    std::vector<double> hops_;
    double most_ = 0;
};

}  // namespace

std::optional<Strategy> strategy_named(std::string_view name)
{
    for (auto const& [known, strategy] : strategies)
        if (known == name) return strategy;
    return std::nullopt;
}

char const* name(Strategy strategy)
{
    return strategies[static_cast<std::size_t>(strategy)].first.data();
}

CostModel Election::costs() const
{
    return {*machine, model, remote_storage};
}

std::vector<machine::Source> Election::sources(std::size_t partition) const
{
    auto sources = partitions[partition].sources;
    if (!sources.empty()) return sources;
    for (auto const& weight : weights)
        if (weight.covers(partition) && weight.bytes_in(partition) > 0)
            sources.push_back({where[index(weight.node)], static_cast<double>(weight.bytes_in(partition))});
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
    return static_cast<int>(std::min<std::uint64_t>(fit, static_cast<std::uint64_t>(seats[index(node)])));
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
        Bidder const bidder(election, p);
        auto const sources = election.sources(p);
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
    Bidder const bidder(election, partition);
    auto const sources = election.sources(partition);
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

bool by_cost(Strategy strategy)
{
    return strategy == Strategy::topology_aware || strategy == Strategy::contention_aware;
}

double surcharge(Strategy strategy, std::size_t number)
{
    auto const further = static_cast<double>(number);
    switch (strategy) {
    case Strategy::topology_aware: break;
    case Strategy::contention_aware: return 1 + further;
    case Strategy::shortest_path:
    case Strategy::longest_path:
    case Strategy::rank_order: return 1 + 1e6 * further;  // a second only when all have one
    }
    double factor = 1;  // not pow(), which may differ from processor to processor
    for (std::size_t i = 0; i < number; ++i) factor *= 1.05;
    return factor;
}

}  // namespace tapioca::plan
