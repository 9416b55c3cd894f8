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

/// The score of a node's bid for one partition, as a function of the node of the job and its cost there; the least
/// wins. Made once for each partition. Keeps a reference to the election.
using Scorer = std::function<double(int node, Cost const& cost)>;

/// Pure functions, so that every rank computes the same scores.
struct Strategy {
    std::string_view minimises;  ///< text for users, as in docs/model.md
    std::string_view further;    ///< as in docs/model.md: when a node gets a second, third, ... aggregator
    bool baseline;               ///< what other libraries do; comparisons begin with it
    bool by_cost;                ///< the score is the cost
    Scorer (*scorer)(Election const& election, std::size_t partition);
    /// The factor on the score of a node's `number`-th aggregator, counted from 0.
    double (*surcharge)(std::size_t number);
    bool spares_gateways = false;  ///< a gateway gets more aggregators than another only if the cost is much lower
};

struct NamedStrategy {
    std::string_view name;
    Strategy const* strategy;
};
/// In the order of core/strategies.inc.
std::span<NamedStrategy const> strategies();
/// Null if there is no strategy of this name.
Strategy const* strategy_named(std::string_view name);
std::string_view name(Strategy const& strategy);

// What several strategies have in common.

/// The number of hops on the path of every node of the machine: to the file or, if that path is unknown, from all
/// producers.
std::vector<double> path_hops(Election const& election, std::size_t partition);
/// A scorer whose score is the cost.
Scorer score_by_cost(Election const& election, std::size_t partition);
/// A node gets a second aggregator only when all have one.
double one_each(std::size_t number);

}  // namespace tapioca::plan
