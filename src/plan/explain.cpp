// Describes a plan in words.
#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/index.hpp"
#include "core/units.hpp"
#include "plan/plan.hpp"

namespace tapioca::plan {

namespace {

/// "0, 4, 8" or, if there are many, "0, 1, 2, ... 15".
template <class T>
std::string short_list(std::vector<T> const& values)
{
    if (values.size() <= 16) return fmt::format("{}", fmt::join(values, ", "));
    std::vector<T> const head(values.begin(), values.begin() + 12);
    return fmt::format("{}, ... {}", fmt::join(head, ", "), values.back());
}

std::string describe(NetworkRoute const& network)
{
    return fmt::format("        {} of the data cross nodes by {}, at most {} into one and {} out of one\n",
                       core::format_bytes(network.crossing_bytes),
                       network.transport == Transport::rma ? "put and get" : "messages",
                       core::format_bytes(network.most_in_bytes), core::format_bytes(network.most_out_bytes));
}

/// "theta (theta.toml): dragonfly of 9 x 16 x 6 x 4, 3456 nodes"
std::string describe(machine::Machine const& machine)
{
    auto const dimensions = machine.topology->dimensions();
    auto const shape =
        dimensions.size() > 1 ? fmt::format(" of {},", fmt::join(dimensions, " x ")) : std::string(" of");
    return fmt::format("{} ({}): {}{} {} node{}, the path to the file {}", machine.name, machine.origin,
                       machine.topology->kind(), shape, machine.topology->nodes(),
                       machine.topology->nodes() == 1 ? "" : "s", machine.gateways.hops.empty() ? "unknown" : "known");
}

/// "node 5, ssd"
std::string place(Job const& job, int node, std::size_t tier)
{
    auto const& name = job.machine->tiers[tier].name;
    return job.nodes > 1 ? fmt::format("node {}, {}", node, name) : name;
}

std::string describe_places(Job const& job, Route const& route)
{
    if (route.aggregator_places.empty()) return "";
    double c1 = 0;
    double c2 = 0;
    double most = 0;
    for (auto const& aggregator_place : route.aggregator_places) {
        c1 = std::max(c1, aggregator_place.cost.c1_s);
        c2 = std::max(c2, aggregator_place.cost.c2_s);
        most = std::max(most, aggregator_place.cost.total_s);
    }
    return fmt::format(
        "        placed by {} with model {} on {}: C1 up to {:.3f} ms, C2 up to {:.3f} ms, cost up to "
        "{:.3f} ms\n",
        name(strategy_of(job)), name(model_of(job)), job.machine->name, c1 * 1e3, c2 * 1e3, most * 1e3);
}

/// The parts of a prediction for several nodes.
std::string describe_parts(Job const& job, Route const& route)
{
    if (route.parts.empty()) return "";
    std::string text = "        made of:";
    for (auto const& part : route.parts) text += fmt::format(" {} {:.3f} ms;", part.name, part.seconds * 1e3);
    text.back() = '\n';
    auto const& passage = route.passage;
    auto const bytes = [](double value) { return core::format_bytes(static_cast<std::uint64_t>(value)); };
    if (passage.used > 0 && !job.machine->gateways.nodes.empty())
        text += fmt::format("        {} gateway{} to the file system: at most {} through one{}\n", passage.used,
                            passage.used == 1 ? "" : "s", bytes(passage.most_bytes),
                            job.machine->gateways.block > 0
                                ? fmt::format(", {} through those of one block", bytes(passage.most_block_bytes))
                                : "");
    return text;
}

/// `like`: a route whose partitions and places have already been described.
std::string describe(char const* verb, Job const& job, Route const& route, Route const* like)
{
    std::string text;
    if (!route.feasible) return fmt::format("  {:<6}refused: {}\n", verb, route.feasible.error().text);
    if (route.way == Way::direct) {
        text += fmt::format("  {:<6}direct: every rank {}s its own pieces\n", verb, verb);
    } else {
        auto const plural = route.aggregators == 1 ? "" : "s";
        text +=
            fmt::format("  {:<6}{} aggregator{} on rank{} {}, {} buffer{} of {} each in {}\n", verb, route.aggregators,
                        plural, plural, short_list(route.ranks), route.buffers, route.buffers == 1 ? "" : "s",
                        core::format_bytes(route.round_bytes), fmt::format("{}", fmt::join(route.tiers(job), " and ")));
        auto const rounds = schedule(route, job.storage.block_bytes, 0);
        bool const told =
            like && like->way == Way::aggregated && like->cuts == route.cuts && like->ranks == route.ranks;
        if (told) text += "        partitions and places as above\n";
        for (std::size_t i = 0; !told && i < rounds.partitions.size() && i < 16; ++i) {
            auto const& p = rounds.partitions[i];
            auto const where = i < route.aggregator_places.size() && job.machine
                                   ? ", " + place(job, route.aggregator_places[i].node, route.aggregator_places[i].tier)
                                   : std::string();
            text += fmt::format("        partition {}: bytes {} to {}, {} round{}{}\n", i, p.begin, p.end, p.rounds,
                                p.rounds == 1 ? "" : "s", where);
        }
        if (!told && rounds.partitions.size() > 16)
            text += fmt::format("        and {} more\n", rounds.partitions.size() - 16);
        if (!told) text += describe_places(job, route);
        if (route.networked() && !told) text += describe(route.network);
        if (!route.dense)
            text += fmt::format("        the pattern may have holes: a map of 1 bit per {} keeps them untouched\n",
                                core::format_bytes(route.granule));
    }
    text += fmt::format("        {}:", route.why());
    for (auto const& candidate : route.candidates())
        text += fmt::format(" {} {:.3f} ms;", candidate.name, candidate.seconds * 1e3);
    text.back() = '\n';
    text += describe_parts(job, route);
    for (auto const& note : route.notes) text += fmt::format("        note: {}\n", note);
    return text;
}

}  // namespace

std::vector<std::string> Route::tiers(Job const& job) const
{
    if (aggregator_places.empty() || !job.machine) return {machine::ordinary_memory().name};
    std::vector<std::pair<int, std::size_t>> count;
    for (std::size_t tier = 0; tier < job.machine->tiers.size(); ++tier)
        count.emplace_back(-std::count_if(aggregator_places.begin(), aggregator_places.end(),
                                          [&](auto const& s) { return s.tier == tier; }),
                           tier);
    std::sort(count.begin(), count.end());
    std::vector<std::string> names;
    for (auto const& [negative, tier] : count)
        if (negative < 0) names.push_back(job.machine->tiers[tier].name);
    return names;
}

std::vector<Candidate> Route::candidates() const
{
    std::vector<Candidate> list = {
        {fmt::format("{} aggregator{}", considered, considered == 1 ? "" : "s"), aggregated_s}, {"direct", direct_s}};
    if (way == Way::direct) std::swap(list[0], list[1]);
    return list;
}

std::string Route::why() const
{
    switch (reason) {
    case Reason::asked: return fmt::format("direct={} asked for", way == Way::direct ? "always" : "never");
    case Reason::small_pieces:
        return "direct access is passed over, since pieces are smaller than the file's blocks or stripes";
    case Reason::fastest: break;
    }
    return "predicted to be the fastest";
}

std::string explain_places(Plan const& plan)
{
    std::string text;
    auto const& job = plan.job;
    for (auto const& [verb, route] : {std::pair("write", &plan.write), std::pair("read", &plan.read)}) {
        if (route->way == Way::direct || route->aggregator_places.empty()) continue;
        if (route == &plan.read && plan.write.way == Way::aggregated && route->cuts == plan.write.cuts) {
            text += "read: the same places\n";
            continue;
        }
        text += fmt::format("{}: {:>9}  {:>6}  {:<8}  {:>10}  {:>10}  {:>10}  {}\n", verb, "partition", "node", "tier",
                            "C1 ms", "C2 ms", "cost ms", "next best: node, tier, cost ms");
        for (std::size_t p = 0; p < route->aggregator_places.size(); ++p) {
            auto const& aggregator_place = route->aggregator_places[p];
            text += fmt::format("{:>16}  {:>6}  {:<8}  {:>10.3f}  {:>10.3f}  {:>10.3f}  ", p, aggregator_place.node,
                                job.machine->tiers[aggregator_place.tier].name, aggregator_place.cost.c1_s * 1e3,
                                aggregator_place.cost.c2_s * 1e3, aggregator_place.cost.total_s * 1e3);
            for (auto const& bid : aggregator_place.rivals)
                text += fmt::format("{} {} {:.3f}; ", bid.node, job.machine->tiers[core::index(bid.tier)].name,
                                    bid.cost.total_s * 1e3);
            while (text.back() == ' ' || text.back() == ';') text.pop_back();
            text += '\n';
        }
    }
    return text;
}

std::string explain(Plan const& plan, std::vector<std::string> const& settings)
{
    auto const& job = plan.job;
    auto const& pattern = job.pattern;
    auto const where = job.nodes == 1 ? std::string("of one node") : fmt::format("of each of {} nodes", job.nodes);
    auto text = fmt::format("plan for {} rank{} on {} core{} {}, file system {} with {}-byte blocks\n", job.ranks,
                            job.ranks == 1 ? "" : "s", job.cores, job.cores == 1 ? "" : "s", where, job.storage.name,
                            job.storage.block_bytes);
    text += fmt::format("  data  {} in {} piece{} on {} of the ranks, bytes {} to {}{}\n",
                        core::format_bytes(pattern.bytes), pattern.pieces, pattern.pieces == 1 ? "" : "s",
                        pattern.ranks_with_data, pattern.bytes == 0 ? 0 : pattern.begin, pattern.end,
                        pattern.dense() ? ", without holes or overlap" : "");
    if (!job.variables.empty()) text += fmt::format("  of    {}\n", short_list(job.variables));
    if (job.machine && job.nodes > 1) text += fmt::format("  on    {}\n", describe(*job.machine));
    text += describe("write", job, plan.write, nullptr);
    text += describe("read", job, plan.read, &plan.write);
    text += fmt::format("  set   {}\n",
                        settings.empty() ? "nothing: all defaults" : fmt::format("{}", fmt::join(settings, ", ")));
    return text;
}

}  // namespace tapioca::plan
