// Scale: counts how many bytes of patterns lie in each partition of a file.
#pragma once

#include <cstdint>
#include <vector>

#include "pattern/summary.hpp"

namespace tapioca::pattern {

class Scale {
public:
    /// Partition i is [cuts[i], cuts[i+1]). Bytes within `margin` of a partition are near it: shifting the cuts may
    /// bring them in.
    Scale(std::vector<std::int64_t> const& cuts, std::int64_t margin);

    void add(Variables const& variables);
    void clear();

    struct Share {
        std::uint64_t bytes = 0;
        std::uint64_t near_bytes = 0;  ///< bytes in the partition or near it
    };
    [[nodiscard]] std::vector<Share> weights() const;

private:
    std::vector<std::int64_t> edges_;  ///< the cuts, and a margin before and after each
    struct CutRange {
        std::size_t begin, end;
    };
    std::vector<CutRange> inside_;  ///< for each partition: its edges
    std::vector<CutRange> near_;    ///< the same, with the margins
    std::vector<std::uint64_t> counts_;
};

}  // namespace tapioca::pattern
