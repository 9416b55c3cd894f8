#include "engine/site.hpp"

#include <algorithm>

#include "core/index.hpp"
#include "core/units.hpp"

namespace tapioca::engine {

namespace {

using core::index;

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
    auto const each = core::multiply(buffers, round_bytes_);
    auto const partitions = static_cast<std::size_t>(route.aggregators);
    std::size_t areas = 1;
    for (std::size_t p = 0; p < partitions; ++p) areas = std::max(areas, route.area(p) + 1);
    auto const& network = route.network;
    auto const nodes = std::max<std::size_t>(1, network.slot_bytes.size());
    std::vector<std::vector<std::uint64_t>> used(areas, std::vector<std::uint64_t>(nodes, 0));
    std::vector<std::uint64_t> maps(nodes, 0);
    auto const take = [](std::uint64_t& end, std::uint64_t bytes) {  // all there is where it would be more
        auto const at = end;
        end = bytes > UINT64_MAX - end ? UINT64_MAX : end + bytes;
        return at;
    };
    if (route.networked()) slot_step_ = network.slot_bytes[index(node)];
    for (std::size_t p = 0; p < partitions; ++p) {
        auto const home = route.networked() ? index(network.homes[p]) : 0;
        bool const here = home == index(node);
        auto& memory = used[0];
        home_at_.push_back(take(used[route.area(p)][home], each));
        slot_at_.push_back(nowhere);
        map_at_.push_back(here ? maps[home] : nowhere);
        take(maps[home], core::multiply(buffers, map_step_));
        if (!route.networked()) continue;
        landing_at_.push_back(take(memory[home], 2 * landing_bytes(network, p, network.feeders[p].size())));
        for (int const feeder : network.feeders[p]) {
            auto const at = take(memory[index(feeder)], buffers * network.slot_bytes[index(feeder)]);
            if (feeder == node) slot_at_[p] = at;
        }
    }
    auto const most = [](std::vector<std::uint64_t> const& list) {
        return *std::max_element(list.begin(), list.end());
    };
    bytes_ = most(used[0]);
    map_bytes_ = most(maps);
    tiers_.assign(used.begin() + 1, used.end());
}

std::uint64_t Site::landing(std::size_t partition, std::size_t feeder, std::size_t side) const
{
    auto const& network = route_->network;
    auto const feeders = network.feeders[partition].size();
    return landing_at_[partition] + side * landing_bytes(network, partition, feeders) +
           landing_bytes(network, partition, feeder);
}

}  // namespace tapioca::engine
