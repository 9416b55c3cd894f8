// What strategies have in common, and how they are found by name.
#include "plan/strategy/strategy.hpp"

#include <algorithm>

#include "plan/election.hpp"

namespace tapioca::plan {

Strategy const* strategy_named(std::string_view name)
{
    auto const all = strategies();
    auto const found = std::find_if(all.begin(), all.end(), [&](auto const& row) { return row.name == name; });
    return found == all.end() ? nullptr : found->strategy;
}

std::string_view name(Strategy const& strategy)
{
    auto const all = strategies();
    auto const found = std::find_if(all.begin(), all.end(), [&](auto const& row) { return row.strategy == &strategy; });
    return found == all.end() ? std::string_view() : found->name;
}

std::vector<double> path_hops(Election const& election, std::size_t partition)
{
    auto const& machine = *election.machine;
    std::vector<double> hops(machine.gateways.hops.begin(), machine.gateways.hops.end());
    if (!hops.empty()) return hops;
    std::vector<machine::Charge> const one_a_hop(machine.topology->levels().size(), {1, 0});
    return machine.topology->costs(election.sources(partition), one_a_hop);
}

Scorer score_by_cost(Election const& /*election*/, std::size_t /*partition*/)
{
    return [](int /*node*/, Cost const& cost) { return cost.total_s; };
}

double one_each(std::size_t number)
{
    return 1 + 1e6 * static_cast<double>(number);
}

}  // namespace tapioca::plan
