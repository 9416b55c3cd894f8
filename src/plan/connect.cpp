// Places the aggregators on several nodes, and decides who sends to whom.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/index.hpp"
#include "core/units.hpp"
#include "plan/memory.hpp"
#include "plan/predict_across_nodes.hpp"

namespace tapioca::plan {

namespace {

using core::index;

/// Spreads the aggregators of a node evenly over its ranks.
std::vector<int> choose_ranks(std::vector<int> const& homes, Nodes const& nodes)
{
    std::vector<int> count(nodes.size(), 0);
    for (int const home : homes) ++count[index(home)];
    std::vector<int> next(nodes.size(), 0);
    std::vector<int> ranks;
    for (int const home : homes) {
        auto const& on_node = nodes[index(home)];
        auto const place = static_cast<std::size_t>(next[index(home)]++) * on_node.size() / index(count[index(home)]);
        ranks.push_back(on_node[place]);
    }
    return ranks;
}

/// Ranks that do not aggregate send, if there are any; several ranks share the work of their node.
void choose_senders(Route& route, Nodes const& nodes)
{
    std::set<int> const aggregators(route.ranks.begin(), route.ranks.end());
    for (auto const& ranks : nodes) {
        auto& senders = route.network.senders.emplace_back();
        std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(senders),
                     [&](int rank) { return !aggregators.contains(rank); });
        if (senders.empty()) senders = ranks;
    }
}

void choose_feeds(NetworkRoute& network, std::vector<Weight> const& weights)
{
    for (auto const& weight : weights) network.feeds.push_back({weight.node, weight.begin, weight.end});
    std::sort(network.feeds.begin(), network.feeds.end(),
              [](auto const& a, auto const& b) { return std::pair(a.node, a.begin) < std::pair(b.node, b.begin); });
    // Neighbouring weights with different amounts of data become one feed.
    std::size_t kept = 0;
    for (auto const& feed : network.feeds) {
        bool const follows =
            kept > 0 && network.feeds[kept - 1].node == feed.node && network.feeds[kept - 1].end == feed.begin;
        if (follows)
            network.feeds[kept - 1].end = feed.end;
        else
            network.feeds[kept++] = feed;
    }
    network.feeds.erase(network.feeds.begin() + static_cast<std::ptrdiff_t>(kept), network.feeds.end());
    network.feeds.shrink_to_fit();
}

void count_crossing(NetworkRoute& network, std::vector<Weight> const& weights, std::size_t nodes)
{
    std::vector<std::uint64_t> in(nodes, 0);
    std::vector<std::uint64_t> out(nodes, 0);
    for (auto const& weight : weights)
        for (auto p = weight.begin; p < weight.end; ++p) {
            auto const home = network.homes[p];
            if (home == weight.node) continue;
            network.crossing_bytes += weight.bytes_in(p);
            in[index(home)] += weight.bytes_in(p);
            out[index(weight.node)] += weight.bytes_in(p);
        }
    network.most_in_bytes = *std::max_element(in.begin(), in.end());
    network.most_out_bytes = *std::max_element(out.begin(), out.end());
}

/// The tier that a setting names: "ssd", or "ssd:/dir" for a tier with that place.
std::optional<std::size_t> tier_named(machine::Machine const& machine, std::string const& wish)
{
    for (std::size_t tier = 0; tier < machine.tiers.size(); ++tier) {
        auto const& traits = machine.tiers[tier];
        if (wish == traits.name || wish == traits.name + ":" + traits.place) return tier;
    }
    return std::nullopt;
}

std::vector<std::string> names_of(std::vector<machine::TierTraits> const& tiers)
{
    std::vector<std::string> names;
    for (auto const& tier : tiers) names.push_back(tier.name);
    return names;
}

/// Once the places are known, the load of nodes, links and gateways is known, too. Then direct access may turn out to
/// be faster.
void choose_way(Job const& job, Route& route, std::vector<Weight> const& weights, bool reading)
{
    auto const aggregated = predict_aggregated(job, placed_flow(job, route, weights), reading);
    auto const direct = predict_direct(job, direct_flow(job, weights), reading);
    route.aggregated_s = aggregated.total();
    route.direct_s = direct.total();
    bool const open = job.options.direct.value_or(Direct::automatic) == Direct::automatic;
    bool const straight = open && route.direct_s < route.aggregated_s;
    if (straight) route.go_direct();
    auto const& taken = straight ? direct : aggregated;
    route.parts = taken.parts();
    route.passage = taken.passage;
}

core::Status cross(Job const& job, Route& route, Nodes const& nodes, std::vector<Weight> const& weights, bool reading,
                   Taken const& other)
{
    auto& network = route.network;
    auto const partitions = route.cuts.size() - 1;
    network.transport = job.options.transport.value_or("p2p") == "rma" ? Transport::rma : Transport::p2p;
    for (auto const& aggregator_place : route.aggregator_places) network.homes.push_back(aggregator_place.node);
    route.ranks = choose_ranks(network.homes, nodes);
    choose_feeds(network, weights);
    choose_senders(route, nodes);
    count_crossing(network, weights, nodes.size());

    choose_way(job, route, weights, reading);
    if (route.way == Way::direct) return {};

    // With put and get, all ranks go through all rounds together, even through those without data.
    auto const rounds = schedule(route, job.storage.block_bytes, 0);
    std::int64_t most_rounds = 0;
    for (auto const& partition : rounds.partitions) most_rounds = std::max(most_rounds, partition.rounds);
    auto const needed = job.pattern.bytes / route.round_bytes / static_cast<std::uint64_t>(partitions);
    if (network.transport == Transport::rma && static_cast<std::uint64_t>(most_rounds) > 64 + 4 * needed) {
        network.transport = Transport::p2p;
        route.notes.push_back("most rounds have no data: p2p instead of rma");
    }

    return fit(job, route, nodes, weights, reading, other);
}

}  // namespace

Strategy const& strategy_of(Job const& job)
{
    auto const* const strategy = strategy_named(job.options.strategy.value_or(std::string(core::default_strategy)));
    if (strategy == nullptr) throw std::invalid_argument("a strategy that the settings do not know");
    return *strategy;
}

Model model_of(Job const& job)
{
    return model_named(job.options.model.value_or("default")).value();
}

bool wants_election(Job const& job, Route const& route)
{
    if (route.way == Way::direct) return false;
    bool const tiers =
        job.machine && (job.machine->tiers.size() > 1 || job.options.aggrtier || job.options.persistency);
    return job.nodes > 1 || tiers;
}

core::Result<Election> election_of(Job const& job, Route const& route, Nodes const& nodes,
                                   std::vector<Weight> const& weights)
{
    Election election;
    election.machine = job.machine.get();
    election.where = job.where;
    for (auto node = static_cast<int>(election.where.size()); node < job.nodes; ++node) election.where.push_back(node);
    election.free_bytes = job.free_bytes;
    if (job.options.aggrtier) {
        election.pinned = tier_named(*job.machine, *job.options.aggrtier);
        if (!election.pinned)
            return core::fail(Errc::setting, fmt::format("no node has the tier {}: there are {}", *job.options.aggrtier,
                                                         fmt::join(names_of(job.machine->tiers), ", ")));
    }
    election.remote_storage = job.storage.remote;
    if (auto const& wish = job.options.persistency) election.persistency = *wish;
    election.model = model_of(job);
    election.strategy = &strategy_of(job);
    for (auto const& ranks : nodes) election.aggregator_places.push_back(static_cast<int>(ranks.size()));

    auto const each = route.memory_per_aggregator();
    if (job.nodes > 1) {
        election.partitions.resize(route.cuts.size() - 1);
        election.weigh(weights);
        for (auto const& weight : weights)
            for (auto p = weight.begin; p < weight.end; ++p)
                election.partitions[p].bytes += static_cast<double>(weight.bytes_in(p));
        election.needed_bytes = each;
    } else {
        // The readers of a node share one ring of buffers; its writers have a partition each.
        auto const partitions = route.cuts.size() - 1;
        auto const per_partition = static_cast<std::uint64_t>(route.aggregators) / partitions;
        election.partitions.resize(partitions);
        for (auto& partition : election.partitions)
            partition.sources = {{election.where[0], static_cast<double>(job.pattern.bytes / partitions)}};
        election.needed_bytes = core::multiply(each, per_partition);
    }
    double most = 0;
    for (auto& partition : election.partitions) {
        for (auto const& source : partition.sources) partition.bytes += source.bytes;  // all bytes are on the only node
        partition.rounds = std::max(1.0, partition.bytes / static_cast<double>(route.round_bytes));
        most = std::max(most, partition.bytes);
    }
    if (election.persistency != Persistency::none)
        election.needed_bytes = std::max(election.needed_bytes, static_cast<std::uint64_t>(most));
    return election;
}

namespace {

core::Status elect(Job const& job, Route& route, Nodes const& nodes, std::vector<Weight> const& weights,
                   Census const& census)
{
    auto const election = election_of(job, route, nodes, weights);
    if (!election) return tl::unexpected(election.error());
    auto aggregator_places = assign(*election, census.poll(*election));
    if (!aggregator_places) return tl::unexpected(aggregator_places.error());
    route.aggregator_places = std::move(*aggregator_places);
    auto const notes = notes_on(*election, route.aggregator_places);
    route.notes.insert(route.notes.end(), notes.begin(), notes.end());
    return {};
}

}  // namespace

namespace {

/// On one node, once the tiers are known, their costs are known, too. Then direct access may turn out to be faster.
void reconsider(Job const& job, Route& route)
{
    if (model_of(job) != Model::pipelined) return;  // the papers' costs rank places but are not times
    double busy = 0;
    for (auto const& aggregator_place : route.aggregator_places) busy += aggregator_place.cost.total_s;
    route.aggregated_s = std::max(route.aggregated_s, busy);
    bool const open = job.options.direct.value_or(Direct::automatic) == Direct::automatic;
    if (!open || route.direct_s >= route.aggregated_s) return;
    if (route.direct_allowed)
        route.go_direct();
    else
        route.reason = Reason::small_pieces;
}

}  // namespace

void connect(Plan& plan, Nodes const& nodes, Census const& census)
{
    auto const& job = plan.job;
    std::vector<Weight> weights;
    std::vector<std::int64_t> weighed;
    std::vector<AggregatorPlace> aggregator_places;
    std::uint64_t room = 0;  // room that each of them has
    for (auto* const route : {&plan.write, &plan.read}) {
        if (!wants_election(job, *route)) continue;
        if (job.nodes > 1 && route->buffers < 2 && job.options.transport.value_or("") == "rma") {
            route->buffers = 2;
            route->notes.push_back("rma takes two buffers at least");
        }
        bool const same_cuts = job.nodes > 1 && weighed == route->cuts;
        if (job.nodes > 1 && !same_cuts) weights = census.weigh(route->cuts);
        weighed = route->cuts;
        // If there is room, the ranks that wrote a part also read it, because it is in their caches.
        if (same_cuts && !aggregator_places.empty() && route->memory_per_aggregator() <= room)
            route->aggregator_places = aggregator_places;
        else
            route->feasible = elect(job, *route, nodes, weights, census);
        if (route->feasible) {
            aggregator_places = route->aggregator_places;
            room = route->memory_per_aggregator();
            for (auto const& aggregator_place : route->aggregator_places)
                route->areas.push_back(
                    machine::is_ordinary(job.machine->tiers[aggregator_place.tier]) ? 0 : aggregator_place.tier + 1);
            bool const reading = route == &plan.read;
            auto const other = reading && plan.write.networked() ? plan::taken(job, plan.write, nodes, false) : Taken();
            if (job.nodes > 1)
                route->feasible = cross(job, *route, nodes, weights, reading, other);
            else
                reconsider(job, *route);
        }
        if (!route->feasible) route->go_direct();
    }
}

void refuse_rma(Plan& plan, std::string const& why)
{
    for (auto* const route : {&plan.write, &plan.read})
        if (route->networked() && route->network.transport == Transport::rma) {
            route->network.transport = Transport::p2p;
            route->notes.push_back("p2p instead of rma: " + why);
        }
}

}  // namespace tapioca::plan
