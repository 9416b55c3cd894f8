// What all topologies have in common.
#include "machine/topology/topology.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "machine/topology/kind.hpp"
#include "machine/topology/tally.hpp"

namespace tapioca::machine {

std::string_view Topology::kind() const
{
    return kind_->name;
}

double Topology::cost(Source const& source, int to, std::span<Charge const> charges) const
{
    if (source.node == to) return 0;
    double hops_s = 0, per_byte_s = 0;
    auto const crossed = hops(source.node, to);
    for (std::size_t level = 0; level < crossed.size(); ++level)
        if (crossed[level] > 0) {
            hops_s += crossed[level] * charges[level].per_hop_s;
            per_byte_s = std::max(per_byte_s, charges[level].per_byte_s);
        }
    return hops_s + source.bytes * per_byte_s;
}

std::vector<int> Topology::nearest(std::span<int const> places) const
{
    std::vector<int> result(static_cast<std::size_t>(nodes()), std::numeric_limits<int>::max());
    for (int node = 0; node < nodes(); ++node)
        for (int const place : places) result[node] = std::min(result[node], distance(node, place));
    return result;
}

bool Topology::has_shared_links() const
{
    return std::any_of(levels_.begin(), levels_.end(), [](Level const& level) { return level.links > 0; });
}

double Topology::shared_seconds(std::span<Delivery const> deliveries) const
{
    double most_s = 0;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
        if (levels_[level].links == 0) continue;
        std::map<int, std::array<double, 2>> passing;  // out of and into each switch: links carry both at once
        for (auto const& [from, to, bytes] : deliveries) {
            auto const out = switch_below(level, from);
            auto const in = switch_below(level, to);
            if (out == in) continue;
            passing[out][0] += bytes;
            passing[in][1] += bytes;
        }
        auto const bandwidth = levels_[level].bandwidth * levels_[level].links;
        for (auto const& [at, bytes] : passing) most_s = std::max(most_s, std::max(bytes[0], bytes[1]) / bandwidth);
    }
    return most_s;
}

std::vector<Tally> per_node(std::span<Source const> sources, int nodes)
{
    std::vector<Tally> result(static_cast<std::size_t>(nodes));
    for (auto const& source : sources) result[source.node] += {1, source.bytes};
    return result;
}

Tally total(std::vector<Tally> const& tallies)
{
    Tally sum;
    for (auto const& tally : tallies) sum += tally;
    return sum;
}

}  // namespace tapioca::machine
