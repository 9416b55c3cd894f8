// Strategy: how aggregators are placed. To add one, write one .cpp here and one row of core/strategies.inc.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "plan/cost.hpp"

namespace tapioca::plan {

struct Election;

/// What a node's bid for one partition scores, by the node of the job and its cost there; the least wins. Made once for
/// a partition. It keeps a reference to the election.
using Scorer = std::function<double(int node, Cost const& cost)>;

/// Pure functions: every rank comes to the same scores.
struct Strategy {
    std::string_view minimises;  ///< for people, as docs/model.md has it
    std::string_view further;    ///< likewise: when a node gets a second, third, ... aggregator
    bool baseline;               ///< what others do: comparisons begin with it
    bool by_cost;                ///< the score is the cost
    Scorer (*scorer)(Election const& election, std::size_t partition);
    /// The factor on the score of a node's `number`-th aggregator, from 0.
    double (*surcharge)(std::size_t number);
    bool spares_gateways = false;  ///< one gateway gets more aggregators than another only for a much lower cost
};

struct NamedStrategy {
    std::string_view name;
    Strategy const* strategy;
};
/// In the order of core/strategies.inc.
std::span<NamedStrategy const> strategies();
/// Null if there is none of this name.
Strategy const* strategy_named(std::string_view name);
std::string_view name(Strategy const& strategy);

// What several strategies have in common.

/// Hops of every node of the machine that a path has: to the file or, where that way is unknown, from all producers.
std::vector<double> path_hops(Election const& election, std::size_t partition);
/// The cost is the score.
Scorer score_by_cost(Election const& election, std::size_t partition);
/// A node gets a second aggregator only when all have one.
double one_each(std::size_t number);

}  // namespace tapioca::plan
