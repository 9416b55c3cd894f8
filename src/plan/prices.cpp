#include "plan/prices.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tapioca::plan {

namespace {

using core::index;

}  // namespace

Prices::Prices(Election const& election) : election_(election), model_(election.costs())
{
    for (int node = 0; node < static_cast<int>(election.where.size()); ++node) {
        auto const room = std::min(index(election.fit_on(node)), election.partitions.size());
        bool tight = false;
        for (std::size_t tier = 0; tier < election.machine->tiers.size(); ++tier)
            tight = tight || (election.fit_on(node, tier) > 0 && election.fit_on(node, tier) < room);
        room_.push_back(room);
        tight_.push_back(tight);
    }
}

std::vector<Prices::PricedPlace> Prices::places(int node, std::vector<Guest> guests) const
{
    std::sort(guests.begin(), guests.end(), [](auto const& a, auto const& b) {
        return std::pair(-a.score, a.partition) < std::pair(-b.score, b.partition);
    });
    std::vector<PricedPlace> result;
    result.reserve(guests.size());
    for (auto const& guest : guests) result.push_back({guest.partition, 0, guest.score, {}});
    if (!tight(node)) return result;
    std::vector<std::uint64_t> left;
    for (std::size_t tier = 0; tier < election_.machine->tiers.size(); ++tier)
        left.push_back(election_.fit_on(node, tier));
    for (auto& place : result) {
        auto const& costs = costs_of(place.partition, node);
        place.tier = left.size();
        for (std::size_t tier = 0; tier < left.size(); ++tier)
            if (left[tier] > 0 && (place.tier == left.size() || costs[tier].total_s < place.cost.total_s)) {
                place.tier = tier;
                place.cost = costs[tier];
            }
        --left[place.tier];  // there is a free place: aggregators are admitted only if there is room
        if (election_.strategy->by_cost) place.score = place.cost.total_s;
    }
    return result;
}

double Prices::total(int node, std::vector<Guest> const& guests) const
{
    if (guests.empty()) return 0;
    if (guests.size() == 1) return guests[0].score;  // has the best tier
    scores_.clear();
    if (tight(node)) {
        for (auto const& place : places(node, guests)) scores_.push_back(place.score);
    } else {
        for (auto const& guest : guests) scores_.push_back(guest.score);
        std::sort(scores_.begin(), scores_.end(), std::greater<>());
    }
    while (factors_.size() < scores_.size()) factors_.push_back(election_.strategy->surcharge(factors_.size()));
    return std::inner_product(scores_.begin(), scores_.end(), factors_.begin(), 0.0);
}

std::vector<Cost> const& Prices::costs_of(std::size_t partition, int node) const
{
    auto& costs = costs_[{partition, node}];
    if (!costs.empty()) return costs;
    auto const sources = election_.sources(partition);
    for (std::size_t tier = 0; tier < election_.machine->tiers.size(); ++tier)
        costs.push_back(
            model_.cost(sources, election_.where[index(node)], tier, election_.partitions[partition].rounds));
    return costs;
}

}  // namespace tapioca::plan
