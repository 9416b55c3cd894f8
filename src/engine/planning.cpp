#include "engine/planning.hpp"

#include <fmt/core.h>

#include "engine/overlap.hpp"
#include "pattern/scale.hpp"
#include "pattern/summary.hpp"

namespace tapioca::engine {

namespace {

void merge_bids(void* in, void* in_out, int* count, MPI_Datatype* type)
{
    int bytes = 0;  // bytes of one partition's bids
    MPI_Type_size(*type, &bytes);
    auto const each = static_cast<std::size_t>(bytes) / sizeof(plan::Bid);
    for (std::size_t i = 0; i < static_cast<std::size_t>(*count); ++i)
        plan::merge({static_cast<plan::Bid*>(in_out) + i * each, each},
                    {static_cast<plan::Bid const*>(in) + i * each, each});
}

/// How many bytes each node has in each partition. Collective.
std::vector<plan::Weight> weigh(comm::Team const& team, pattern::Variables const& variables,
                                std::vector<std::int64_t> const& cuts, std::int64_t unit)
{
    pattern::Scale scale(cuts, unit);  // shifting a step moves the cuts by less than one unit
    scale.add(variables);
    auto shares = scale.weights();
    std::vector<std::uint64_t> counts;
    for (auto const& share : shares) counts.insert(counts.end(), {share.bytes, share.near_bytes});
    counts = team.sum_on_node(std::move(counts));
    for (std::size_t p = 0; p < shares.size(); ++p) shares[p] = {counts[2 * p], counts[2 * p + 1]};
    std::vector<std::uint64_t> mine;
    for (auto const& weight : plan::weights_of(team.my_node(), shares, team.nodes().size()))
        mine.insert(mine.end(), {weight.begin, weight.end, weight.bytes, weight.most_bytes});
    std::vector<plan::Weight> weights;
    auto const nodes = team.gather_nodes(mine);
    for (std::size_t node = 0; node < nodes.size(); ++node)
        for (std::size_t i = 0; i < nodes[node].size(); i += 4)
            weights.push_back(
                {static_cast<int>(node), nodes[node][i], nodes[node][i + 1], nodes[node][i + 2], nodes[node][i + 3]});
    return weights;
}

/// The best bids of all nodes; the first rank of each node bids for the node. Collective.
plan::Bids poll(comm::Team const& team, plan::Election const& election)
{
    if (team.nodes().size() == 1) return plan::bids_of(election, 0);
    auto bids = team.node_rank() == 0 ? plan::bids_of(election, team.my_node()) : plan::no_bids(election);
    team.reduce_nodes(bids.data(), plan::bids_kept(election) * sizeof bids[0],
                      static_cast<int>(election.partitions.size()), merge_bids);
    return bids;
}

}  // namespace

core::Result<plan::Plan> make_plan(Scene const& scene, pattern::Variables const& variables)
{
    auto& session = scene.session;
    auto const& team = session.team();
    core::Status local;
    for (auto const& variable : variables) core::keep_first(local, variable->status());
    auto const total = session.agreement().sum(pattern::summarise(variables), local);
    if (!total) return tl::unexpected(total.error());
    plan::Job job{*total,
                  scene.storage,
                  scene.options,
                  team.size(),
                  session.cores(),
                  static_cast<int>(team.nodes().size()),
                  scene.around.machine,
                  scene.around.where,
                  scene.around.free_bytes,
                  session.fixed_bytes(),
                  pattern::names_of(variables)};

    if (job.pattern.fewest_variables != job.pattern.most_variables)
        return tl::unexpected(
            core::Failure{Errc::mismatch, 0, team.first_different(variables.size()),
                          fmt::format("ranks declare from {} to {} variables, and must declare the same number",
                                      job.pattern.fewest_variables, job.pattern.most_variables)});
    if (scene.refuse_overlap && scene.writes)
        if (auto apart = find_overlap(team, variables, job.pattern); !apart) return tl::unexpected(apart.error());

    std::vector<std::uint64_t> histogram;
    if (plan::wants_histogram(job) && scene.writes) {
        histogram = pattern::histogram(variables, job.pattern.begin, job.pattern.end, plan::histogram_bins);
        if (auto const summed = session.agreement().sum(histogram); !summed) return tl::unexpected(summed.error());
    }
    auto plan = plan::make(job, histogram);
    if (!plan) return plan;
    plan::Census const census{[&](auto const& cuts) { return weigh(team, variables, cuts, plan->write.unit); },
                              [&](auto const& election) { return poll(team, election); }};
    plan::connect(*plan, team.nodes(), census);
    auto const& feasible = scene.writes ? plan->write.feasible : plan->read.feasible;
    if (!feasible) return tl::unexpected(feasible.error());
    return plan;
}

}  // namespace tapioca::engine
