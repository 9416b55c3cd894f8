#include "engine/buffer_layout.hpp"

#include <algorithm>

#include "core/index.hpp"
#include "core/units.hpp"

namespace tapioca::engine {

namespace {

using core::index;

}  // namespace

BufferLayout::BufferLayout(plan::Route const& route, int node)
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
    auto const take = [](std::uint64_t& end, std::uint64_t bytes) {  // saturates on overflow
        auto const at = end;
        end = bytes > UINT64_MAX - end ? UINT64_MAX : end + bytes;
        return at;
    };
    auto& memory = used[0];
    auto const add = [&](std::size_t p) {
        auto const home = route.networked() ? index(network.homes[p]) : 0;
        home_at_.push_back(take(used[route.area(p)][home], each));
        slot_at_.push_back(nowhere);
        map_at_.push_back(home == index(node) ? maps[home] : nowhere);
        take(maps[home], core::multiply(buffers, map_step_));
    };
    for (std::size_t p = 0; p < partitions; ++p) add(p);
    if (route.networked()) {
        slot_step_ = network.slot_bytes[index(node)];
        feeders_.resize(partitions);
        network.each_feeder([&](std::size_t p, int feeder, int rank) {
            auto const slot = network.slot_bytes[index(feeder)];
            auto const at = take(memory[index(feeder)], buffers * slot);
            if (feeder == node) slot_at_[p] = at;
            auto& home = memory[index(network.homes[p])];
            auto const first = take(home, slot);
            auto const second = take(home, slot);
            if (is_home(p) || feeder == node) feeders_[p].push_back({feeder, rank, {first, second}});
        });
    }
    auto const most = [](std::vector<std::uint64_t> const& list) {
        return *std::max_element(list.begin(), list.end());
    };
    bytes_ = most(used[0]);
    map_bytes_ = most(maps);
    tiers_.assign(used.begin() + 1, used.end());
}

}  // namespace tapioca::engine
