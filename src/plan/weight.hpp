// Weight: how many bytes a node has in the partitions of a route. Neighbouring partitions in which it has the same
// number are one weight, so that interleaved data takes one weight per node, and not one per partition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pattern/scale.hpp"

namespace tapioca::plan {

/// A node whose data lies so near that shifting the step may bring it into the partitions has a weight of no bytes.
struct Weight {
    int node = 0;
    std::size_t begin = 0, end = 0;  ///< partitions
    std::uint64_t bytes = 0;         ///< in all of them together; the same in each, except for rounding
    std::uint64_t most_bytes = 0;    ///< the most that one of them may have, wherever the step is shifted to

    [[nodiscard]] bool covers(std::size_t partition) const { return begin <= partition && partition < end; }
    /// @pre covers(partition)
    [[nodiscard]] std::uint64_t bytes_in(std::size_t partition) const;
};

/// The weights of one of `nodes` nodes, from what it has in each partition. If a list with one weight per node and
/// partition would be long, neighbours that differ by at most an eighth count as the same.
std::vector<Weight> weights_of(int node, std::vector<pattern::Scale::Share> const& partitions, std::size_t nodes);

}  // namespace tapioca::plan
