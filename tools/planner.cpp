#include "planner.hpp"

#include <algorithm>

#include "pattern/scale.hpp"

namespace tools {

using namespace tapioca;

Planner::Planner(std::shared_ptr<machine::Machine const> machine, int nodes, int ranks_per_node,
                 machine::Storage storage, workloads::Workload workload)
    : workload_(std::move(workload))
{
    job_.storage = std::move(storage);
    job_.ranks = nodes * ranks_per_node;
    job_.cores = machine->cores > 0 ? machine->cores : ranks_per_node;
    job_.nodes = nodes;
    std::vector<std::uint64_t> free;
    for (auto const& tier : machine->tiers)
        free.push_back(tier.capacity_bytes.value > 0 ? static_cast<std::uint64_t>(tier.capacity_bytes.value)
                                                     : std::uint64_t{1} << 60);  // unknown: no limit
    job_.free_bytes = {free};
    job_.machine = std::move(machine);
    for (int rank = 0; rank < job_.ranks; ++rank) {
        if (rank % ranks_per_node == 0) nodes_.emplace_back();
        nodes_.back().push_back(rank);
        job_.pattern.add(pattern::summarise(tapioca::pattern::variables_of(workload_.part(rank).pattern())));
    }
}

std::vector<plan::Weight> Planner::weigh(std::vector<std::int64_t> const& cuts, std::int64_t unit) const
{
    std::vector<plan::Weight> weights;
    pattern::Scale scale(cuts, unit);
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        scale.clear();
        for (int const rank : nodes_[node]) scale.add(tapioca::pattern::variables_of(workload_.part(rank).pattern()));
        auto const here = plan::weights_of(static_cast<int>(node), scale.weights(), nodes_.size());
        weights.insert(weights.end(), here.begin(), here.end());
    }
    return weights;
}

core::Result<plan::Plan> Planner::plan(Options const& options) const
{
    auto job = job_;
    job.options = options;
    std::vector<std::uint64_t> histogram;
    if (plan::wants_histogram(job)) {
        histogram.resize(plan::histogram_bins, 0);
        for (int rank = 0; rank < job.ranks; ++rank) {
            auto const one = pattern::histogram(tapioca::pattern::variables_of(workload_.part(rank).pattern()),
                                                job.pattern.begin, job.pattern.end, plan::histogram_bins);
            std::transform(one.begin(), one.end(), histogram.begin(), histogram.begin(), std::plus<>());
        }
    }
    auto plan = plan::make(job, histogram);
    if (!plan) return plan;
    auto const unit = plan->write.unit;
    plan::connect(*plan, nodes_, {[&](auto const& cuts) { return weigh(cuts, unit); }, plan::all_bids});
    for (auto const* const route : {&plan->write, &plan->read})
        if (!route->feasible) return tl::unexpected(route->feasible.error());
    return plan;
}

}  // namespace tools
