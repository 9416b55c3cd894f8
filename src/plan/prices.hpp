// Prices: what the aggregators of a node cost together.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "plan/election.hpp"

namespace tapioca::plan {

/// A partition on a node, with the score of its bid for the best of the node's tiers.
struct Guest {
    std::size_t partition;
    double score;
};

/// The cost of a node's aggregators together. The most expensive one pays the least surcharge, and has the first choice
/// of tiers. The election must outlive this object.
class Prices {
public:
    explicit Prices(Election const& election);

    /// The number of aggregators that the node may take.
    [[nodiscard]] std::size_t room(int node) const { return room_[core::index(node)]; }

    struct PricedPlace {
        std::size_t partition, tier;
        double score;
        Cost cost;
    };
    /// True if a tier may be full before all aggregators that the node may take have a place.
    [[nodiscard]] bool tight(int node) const { return tight_[core::index(node)]; }
    /// The place of each guest. `tier` and `cost` are valid only if the node is tight().
    [[nodiscard]] std::vector<PricedPlace> places(int node, std::vector<Guest> guests) const;
    [[nodiscard]] double total(int node, std::vector<Guest> const& guests) const;

private:
    std::vector<Cost> const& costs_of(std::size_t partition, int node) const;

    Election const& election_;
    CostModel model_;
    std::vector<std::size_t> room_;
    std::vector<bool> tight_;
    mutable std::map<std::pair<std::size_t, int>, std::vector<Cost>> costs_;
    mutable std::vector<double> scores_;   // used within one call; a member because searches call often
    mutable std::vector<double> factors_;  // surcharges
};

}  // namespace tapioca::plan
