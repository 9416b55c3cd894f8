// Tally: the number of sources in some part of a machine, and their bytes, from which sums of costs are computed.
#pragma once

#include <span>
#include <vector>

#include "machine/topology/topology.hpp"

namespace tapioca::machine {

struct Tally {
    double sources = 0, bytes = 0;

    Tally& operator+=(Tally const& other)
    {
        sources += other.sources;
        bytes += other.bytes;
        return *this;
    }
    friend Tally operator-(Tally const& a, Tally const& b) { return {a.sources - b.sources, a.bytes - b.bytes}; }
};

std::vector<Tally> per_node(std::span<Source const> sources, int nodes);
Tally total(std::vector<Tally> const& tallies);

}  // namespace tapioca::machine
