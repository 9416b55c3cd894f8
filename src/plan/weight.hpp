// Weight: how many bytes a node has in the partitions of a route. Neighbours in which it has the same are one weight,
// so that interleaved data takes one a node, and not one for every partition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pattern/scale.hpp"

namespace tapioca::plan {

/// A node whose data lies so near that shifting the step may bring it into the partitions is named, with no bytes.
struct Weight {
    int node = 0;
    std::size_t begin = 0, end = 0;  ///< partitions
    std::uint64_t bytes = 0;         ///< in all of them together, in each the same but for rounding
    std::uint64_t most_bytes = 0;    ///< that one of them may have, wherever the step is shifted to

    [[nodiscard]] bool covers(std::size_t partition) const { return begin <= partition && partition < end; }
    /// @pre covers(partition)
    [[nodiscard]] std::uint64_t bytes_in(std::size_t partition) const;
};

/// The weights of one of `nodes` nodes, by what it has in each partition. Where a list with one for every node and
/// partition would be long, neighbours count as the same that differ by an eighth.
std::vector<Weight> weights_of(int node, std::vector<pattern::Scale::Share> const& partitions, std::size_t nodes);

}  // namespace tapioca::plan
