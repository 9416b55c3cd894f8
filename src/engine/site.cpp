#include "engine/site.hpp"

#include <algorithm>

#include "core/units.hpp"

namespace tapioca::engine {

namespace {

std::size_t index(int value)
{
    return static_cast<std::size_t>(value);
}

/// What the feeders of a partition need to land their messages, per side.
std::uint64_t landing_bytes(plan::Network const& network, std::size_t partition, std::size_t feeders)
{
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < feeders; ++i) bytes += network.slot_bytes[index(network.feeders[partition][i])];
    return bytes;
}

}  // namespace

Site::Site(plan::Route const& route, int node)
    : route_(&route), round_bytes_(route.round_bytes), map_step_(route.map_bytes())
{
    if (route.way == plan::Way::direct) return;
    auto const buffers = static_cast<std::uint64_t>(route.buffers);
    auto const area = core::multiply(buffers, round_bytes_);
    if (!route.networked()) {
        for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(route.aggregators); ++i) {
            home_at_.push_back(core::multiply(i, area));
            map_at_.push_back(i * buffers * map_step_);
        }
        bytes_ = core::multiply(static_cast<std::uint64_t>(route.aggregators), area);
        map_bytes_ = core::multiply(static_cast<std::uint64_t>(route.aggregators), buffers * map_step_);
        return;
    }
    auto const& network = route.network;
    auto const nodes = network.slot_bytes.size();
    slot_step_ = network.slot_bytes[index(node)];
    std::vector<std::uint64_t> used(nodes, 0);
    std::vector<std::uint64_t> maps(nodes, 0);
    for (std::size_t p = 0; p < network.homes.size(); ++p) {
        auto const home = index(network.homes[p]);
        bool const here = network.homes[p] == node;
        home_at_.push_back(used[home]);
        slot_at_.push_back(nowhere);
        map_at_.push_back(here ? maps[home] : nowhere);
        used[home] += area + 2 * landing_bytes(network, p, network.feeders[p].size());
        maps[home] += buffers * map_step_;
        for (int const feeder : network.feeders[p]) {
            if (feeder == node) slot_at_[p] = used[index(feeder)];
            used[index(feeder)] += buffers * network.slot_bytes[index(feeder)];
        }
    }
    bytes_ = *std::max_element(used.begin(), used.end());
    map_bytes_ = *std::max_element(maps.begin(), maps.end());
}

std::uint64_t Site::landing(std::size_t partition, std::size_t feeder, std::size_t side) const
{
    auto const& network = route_->network;
    auto const feeders = network.feeders[partition].size();
    return home_at_[partition] + static_cast<std::uint64_t>(route_->buffers) * round_bytes_ +
           side * landing_bytes(network, partition, feeders) + landing_bytes(network, partition, feeder);
}

}  // namespace tapioca::engine
