#include "plan/second_level.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/index.hpp"

namespace tapioca::plan {

namespace {

using core::as_double;
using core::index;

struct Grouping {
    std::vector<int> of_node;
    std::vector<int> members;  ///< how many nodes each group has
};

int machine_node(Job const& job, int node)
{
    return job.where.empty() ? node : job.where[index(node)];
}

/// Nodes for which `same(first node of a group, node)` holds are in one group.
template <class Same>
Grouping grouped(Job const& job, Same const& same)
{
    Grouping result;
    std::vector<int> firsts;
    for (int node = 0; node < job.nodes; ++node) {
        auto const place = machine_node(job, node);
        auto const group = std::find_if(firsts.rbegin(), firsts.rend(), [&](int first) { return same(first, place); });
        auto const number = group == firsts.rend() ? firsts.size() : index(static_cast<int>(firsts.rend() - group) - 1);
        if (number == firsts.size()) {
            firsts.push_back(place);
            result.members.push_back(0);
        }
        ++result.members[number];
        result.of_node.push_back(static_cast<int>(number));
    }
    return result;
}

/// Psets, or what is reached without the outer links, for each level of them. Only several groups of several nodes.
std::vector<Grouping> groupings_of(Job const& job)
{
    auto const& machine = *job.machine;
    auto const& topology = *machine.topology;
    std::vector<Grouping> all;
    if (auto const block = machine.gateways.block; block > 0)
        all.push_back(grouped(job, [&](int first, int node) { return first / block == node / block; }));
    for (std::size_t level = 1; level < topology.levels().size(); ++level)
        all.push_back(grouped(job, [&](int first, int node) {
            auto const hops = topology.hops(first, node);
            return std::all_of(hops.begin() + static_cast<std::ptrdiff_t>(level), hops.end(),
                               [](int number) { return number == 0; });
        }));
    std::erase_if(all, [](Grouping const& groups) {
        return groups.members.size() < 2 || *std::max_element(groups.members.begin(), groups.members.end()) < 2;
    });
    return all;
}

/// Seconds of a message between two nodes of the job, by the latencies of the links alone.
double message_seconds(Job const& job, int from, int to)
{
    std::vector<machine::Charge> latencies;
    for (auto const& level : job.machine->topology->levels()) latencies.push_back({level.latency_s, 0});
    return job.machine->topology->cost({machine_node(job, from), 1}, machine_node(job, to), latencies);
}

/// How long the link of the busiest node is taken by what it receives, with one level and with two. Nodes are assumed
/// to have equal parts of the partitions that they feed, and all nodes of a group to gather equally much.
class Links {
public:
    Links(Plan const& plan, Grouping const& grouping) : plan_(plan), grouping_(grouping), route_(plan.write)
    {
        for (auto const& feed : route_.network.feeds)
            for (auto p = feed.begin; p < feed.end; ++p) {
                auto& nodes = feeding_.try_emplace({p, grouping.of_node[index(feed.node)]}).first->second;
                if (feed.node != route_.network.homes[p]) ++nodes;
            }
        find_messages();
        each_ = as_double(route_.network.crossing_bytes) / std::max(1.0, pairs_);
    }

    [[nodiscard]] std::pair<double, double> seconds() const
    {
        auto const rounds = schedule(route_, plan_.job.storage.block_bytes, 0).partitions;
        std::vector<double> one(index(plan_.job.nodes), 0);
        std::vector<double> two(one);
        std::vector<double> gathering(grouping_.members.size(), 0);  // of each node of a group
        auto const bandwidth = topology().levels().front().bandwidth;
        for (auto const& [where, nodes] : feeding_) {
            auto const [p, group] = where;
            auto const home = route_.network.homes[p];
            auto const turns = static_cast<double>(rounds[p].rounds);
            bool const local = group == grouping_.of_node[index(home)];
            auto const bytes_s = nodes * each_ / bandwidth;
            one[index(home)] += bytes_s + turns * nodes * (local ? inside_s_ : across_s_);
            two[index(home)] += bytes_s + turns * (local ? nodes * inside_s_ : std::min(nodes, 1) * across_s_);
            if (local || nodes <= 1) continue;
            gathering[index(group)] +=
                (nodes - 1) * (turns * inside_s_ + each_ / bandwidth) / grouping_.members[index(group)];
        }
        for (std::size_t node = 0; node < two.size(); ++node) two[node] += gathering[index(grouping_.of_node[node])];
        return {*std::max_element(one.begin(), one.end()), *std::max_element(two.begin(), two.end())};
    }

    /// What the bytes take, however few messages they are: into or out of a node, and over links that nodes share.
    [[nodiscard]] double carrying_seconds() const
    {
        auto const& network = route_.network;
        auto const most = as_double(std::max(network.most_in_bytes, network.most_out_bytes));
        std::vector<machine::Delivery> deliveries;
        if (topology().has_shared_links())
            for (auto const& feed : network.feeds)
                for (auto p = feed.begin; p < feed.end; ++p)
                    deliveries.push_back(
                        {machine_node(plan_.job, feed.node), machine_node(plan_.job, network.homes[p]), each_});
        return std::max(most / topology().levels().front().bandwidth, topology().shared_seconds(deliveries));
    }

private:
    [[nodiscard]] machine::Topology const& topology() const { return *plan_.job.machine->topology; }
    void find_messages()
    {
        for (auto const& [where, nodes] : feeding_) pairs_ += nodes;
        auto const& of_node = grouping_.of_node;
        auto const first = of_node.begin();
        auto const neighbour = std::find(first + 1, of_node.end(), of_node[0]);
        auto const other = std::find_if(first, of_node.end(), [&](int group) { return group != of_node[0]; });
        if (neighbour != of_node.end()) inside_s_ = message_seconds(plan_.job, 0, static_cast<int>(neighbour - first));
        across_s_ = message_seconds(plan_.job, 0, static_cast<int>(other - first));
    }

    Plan const& plan_;
    Grouping const& grouping_;
    Route const& route_;
    std::map<std::pair<std::size_t, int>, int> feeding_;  ///< nodes of a group that send to a partition's home
    double pairs_ = 0;                                    ///< of a node and a partition that it sends to
    double each_ = 0;                                     ///< bytes of such a pair
    double inside_s_ = 0;                                 ///< a message within a group
    double across_s_ = 0;                                 ///< a message between groups
};

}  // namespace

std::optional<SecondLevel> second_level(Plan const& plan)
{
    auto const& route = plan.write;
    if (!route.networked() || !plan.job.machine || route.parts.empty()) return std::nullopt;
    if (plan.job.options.target || plan.job.options.subfile) return std::nullopt;
    double others_s = 0;
    double links_s = 0;
    for (auto const& part : route.parts) {
        auto& longest = part.name == "links" ? links_s : others_s;
        longest = std::max(longest, part.seconds);
    }
    std::optional<SecondLevel> best;
    for (auto const& grouping : groupings_of(plan.job)) {
        Links const links(plan, grouping);
        auto const [one, two] = links.seconds();
        auto const two_levels_s = std::max(std::min(links_s, links.carrying_seconds()), links_s + two - one);
        if (best && best->two_levels_s <= two_levels_s) continue;
        best = {static_cast<int>(grouping.members.size()),
                *std::max_element(grouping.members.begin(), grouping.members.end()),
                links_s,
                two_levels_s,
                std::max(others_s, links_s),
                std::max(others_s, two_levels_s)};
    }
    return best;
}

std::string explain_second_level(Plan const& plan)
{
    auto const more = second_level(plan);
    if (!more) return {};
    return fmt::format(
        "a second level, gathering in {} groups of up to {} nodes first, {}:\n"
        "  links {:.3f} ms instead of {:.3f} ms, the step {:.3f} ms instead of {:.3f} ms\n",
        more->groups, more->nodes, more->pays() ? "would pay, but TAPIOCA has none" : "would not make the step faster",
        more->two_levels_s * 1e3, more->links_s * 1e3, more->two_levels_step_s * 1e3, more->step_s * 1e3);
}

}  // namespace tapioca::plan
