// Machines for tests of planning.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "machine/machine.hpp"

namespace tapioca::test {

inline machine::TierTraits tier(std::string const& name, std::string const& kind, double latency_s, double bandwidth,
                                double capacity_bytes, Persistency persistency = Persistency::none)
{
    return {name, kind, {}, {latency_s}, {bandwidth}, {bandwidth}, {capacity_bytes}, persistency};
}

/// Hosts behind one switch, with ordinary memory.
inline std::shared_ptr<machine::Machine const> flat_machine(int nodes)
{
    machine::Machine machine;
    machine.name = "flat";
    machine.topology = machine::make_flat(nodes, {"link", 50e-6, 125e6});
    machine.tiers = {tier("dram", "dram", 100e-9, 10e9, 64e9)};
    return std::make_shared<machine::Machine const>(std::move(machine));
}

/// Any topology of up to `most` nodes, sometimes with gateways.
inline machine::Machine random_machine(std::mt19937_64& random, int most)
{
    auto const pick = [&](int least, int limit) { return std::uniform_int_distribution<int>(least, limit)(random); };
    machine::Level const near{"near", 1e-6, pick(1, 10) * 1e9};
    machine::Level const far{"far", 2e-6, near.bandwidth / pick(1, 8)};
    machine::Machine machine;
    switch (pick(0, 3)) {
    case 0: machine.topology = machine::make_flat(pick(2, most), near); break;
    case 1: {
        std::vector<int> dimensions{pick(2, 4)};
        int nodes = dimensions[0];
        for (int d = 0; d < 4; ++d)
            if (auto const size = pick(1, 4); nodes * size <= most) {
                dimensions.push_back(size);
                nodes *= size;
            }
        machine.topology = machine::make_torus(dimensions, near);
        break;
    }
    case 2: {
        machine::DragonflyShape shape{pick(1, 4), pick(1, 2), pick(1, 2), pick(1, 4)};
        if (shape.groups * shape.rows * shape.columns * shape.nodes_per_router > most) shape = {2, 2, 2, 2};
        if (shape.groups * shape.rows * shape.columns * shape.nodes_per_router < 2) shape.groups = 2;
        machine.topology = machine::make_dragonfly(shape, near, near, far);
        break;
    }
    default: {
        int const leaf = pick(1, 8);
        int const nodes = pick(2, most);
        std::vector<std::vector<int>> switches(2);
        for (int node = 0; node < nodes; ++node) {
            switches[0].push_back(node / leaf);
            switches[1].push_back(0);
        }
        machine.topology = machine::make_fat_tree(switches, {near, far});
    }
    }
    machine.tiers = {tier("dram", "dram", 100e-9, 50e9, 64e9)};
    if (pick(0, 1) == 1) {
        machine.gateways.link = {"storage", 5e-6, 1e9};
        for (int node = 0; node < machine.topology->nodes(); ++node)
            machine.gateways.hops.push_back(machine.topology->distance(node, 0) + 1);
    }
    return machine;
}

}  // namespace tapioca::test
