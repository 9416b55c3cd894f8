// Relief: makes aggregators cost more behind gateways that would have more than their share of them.
#pragma once

#include <vector>

#include "core/index.hpp"
#include "plan/election.hpp"

namespace tapioca::plan {

/// Counts the aggregators behind each gateway. If gateways are unknown, or the strategy ignores them, there is no extra
/// cost. The election must outlive this object.
class Relief {
public:
    /// `unit`: the cost, in terms of scores, of an aggregator beyond a gateway's share.
    Relief(Election const& election, double unit) : election_(election), unit_(unit)
    {
        auto const& through = election.machine->gateways.through;
        if (!election.strategy->spares_gateways || through.empty()) return;
        count_.assign(election.machine->gateways.nodes.size(), 0);
        std::vector<bool> used(count_.size(), false);
        std::size_t gateways = 0;
        for (int const node : election.where) {
            auto const gateway = core::index(through[core::index(node)]);
            gateways += used[gateway] ? 0 : 1;
            used[gateway] = true;
        }
        share_ = static_cast<int>((election.partitions.size() + gateways - 1) / gateways);
    }

    /// The extra cost of one aggregator more, or one fewer, at `node`.
    [[nodiscard]] double more(int node) const { return over(node, 1); }
    [[nodiscard]] double less(int node) const { return -over(node, 0); }
    /// The extra cost of moving one.
    [[nodiscard]] double move(int from, int to) const
    {
        return count_.empty() || gateway(from) == gateway(to) ? 0 : more(to) + less(from);
    }
    void count(int node, int change)
    {
        if (!count_.empty()) count_[gateway(node)] += change;
    }

private:
    [[nodiscard]] std::size_t gateway(int node) const
    {
        return core::index(election_.machine->gateways.through[core::index(election_.where[core::index(node)])]);
    }
    [[nodiscard]] double over(int node, int change) const
    {
        return !count_.empty() && count_[gateway(node)] + change > share_ ? unit_ : 0;
    }

    Election const& election_;
    double unit_;
    int share_ = 0;
    std::vector<int> count_;  ///< per gateway
};

}  // namespace tapioca::plan
