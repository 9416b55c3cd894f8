// Levels: the places through which the data of a write goes, each draining into the next one beside the program.
#include <algorithm>
#include <string_view>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/units.hpp"
#include "plan/plan.hpp"

namespace tapioca::plan {

namespace {

/// Bytes per second of so many writers of the file system, of one file each or of parts of one.
double file_system_bandwidth(Job const& job, int writers)
{
    auto const& s = job.storage;
    auto const streams = std::max(s.write_streams, 1);
    if (s.each_node) return (writers <= job.nodes ? s.write_bw : s.contended_write_bw) * std::min(writers, job.nodes);
    if (writers <= 1) return s.write_bw;
    if (!s.remote) return std::max(s.contended_write_bw, s.parallel_write_bw);
    return s.contended_write_bw / streams * std::min(writers, streams);
}

/// The memory or device in which the buffers lie: the slowest of those that the route uses.
double buffer_bandwidth(Job const& job, Route const& route)
{
    double slowest = 0;
    std::vector<int> nodes;
    for (auto const& place : route.aggregator_places) {
        auto const tier = machine::with_assumptions(job.machine->tiers[place.tier]);
        if (slowest == 0 || tier.write_bandwidth.value < slowest) slowest = tier.write_bandwidth.value;
        nodes.push_back(place.node);
    }
    std::sort(nodes.begin(), nodes.end());
    auto const used = std::unique(nodes.begin(), nodes.end()) - nodes.begin();
    if (slowest == 0) slowest = machine::with_assumptions(machine::ordinary_memory()).write_bandwidth.value;
    return slowest * static_cast<double>(std::max<std::ptrdiff_t>(used, 1));
}

/// A part of the prediction for several nodes; 0 if there is none.
double part(Route const& route, std::string_view name)
{
    auto const found =
        std::find_if(route.parts.begin(), route.parts.end(), [&](Candidate const& one) { return one.name == name; });
    return found == route.parts.end() ? 0 : found->seconds;
}

}  // namespace

std::vector<RouteLevel> levels(Plan const& plan)
{
    auto const& job = plan.job;
    auto const& route = plan.write;
    auto const bytes = static_cast<double>(job.pattern.bytes);
    std::vector<RouteLevel> all;
    bool const gathered = route.way == Way::aggregated;
    if (gathered)
        all.push_back({"buffers",
                       fmt::format("{} of {} in {}", route.aggregators * route.buffers,
                                   core::format_bytes(route.round_bytes), fmt::join(route.tiers(job), " and ")),
                       std::max(bytes / buffer_bandwidth(job, route), part(route, "ranks") + part(route, "links"))});
    auto writers = gathered ? route.aggregators : job.ranks;
    auto const& target = job.options.target;
    bool drains = true;
    if (target) {
        std::vector<machine::TierTraits> const known =
            job.machine ? job.machine->tiers : std::vector<machine::TierTraits>{machine::ordinary_memory()};
        auto const tier = machine::choose_tier(*target, known).map(machine::with_assumptions);
        auto const bandwidth = tier ? tier->write_bandwidth.value : 0;
        all.push_back({"tier", fmt::format("{} on {} node{}", *target, job.nodes, job.nodes == 1 ? "" : "s"),
                       bandwidth > 0 ? bytes / (bandwidth * job.nodes) : 0});
        writers = job.nodes;
        drains = job.options.target_drain.value_or(TargetDrain::never) != TargetDrain::never;
    }
    if (drains)
        all.push_back({"file system",
                       fmt::format("{}, {} writer{}", job.storage.name, writers, writers == 1 ? "" : "s"),
                       std::max(bytes / file_system_bandwidth(job, writers), part(route, "gateways"))});
    return all;
}

std::string explain_levels(Plan const& plan)
{
    auto const all = levels(plan);
    auto const binding = std::max_element(
        all.begin(), all.end(), [](RouteLevel const& a, RouteLevel const& b) { return a.seconds < b.seconds; });
    auto text =
        fmt::format("levels of a write, and how long {} take in each:\n", core::format_bytes(plan.job.pattern.bytes));
    for (auto level = all.begin(); level != all.end(); ++level)
        text += fmt::format("  {:<12}  {:<40}  {:>10.3f} ms{}\n", level->name, level->where, level->seconds * 1e3,
                            level == binding && all.size() > 1 ? "   binds" : "");
    if (all.empty() || all.back().name != "file system") text += "  file system   later, by `tapioca target drain`\n";
    return text;
}

}  // namespace tapioca::plan
