// Scale: how many bytes of patterns lie in each partition of a file.
#pragma once

#include <cstdint>
#include <vector>

#include "pattern/summary.hpp"

namespace tapioca::pattern {

class Scale {
public:
    /// Partition i is [cuts[i], cuts[i+1]). What lies within `margin` of one is near it: shifting the cuts may bring it
    /// in.
    Scale(std::vector<std::int64_t> const& cuts, std::int64_t margin);

    void add(Variables const& variables);
    void clear();

    struct Share {
        std::uint64_t bytes = 0;
        std::uint64_t near_bytes = 0;  ///< in the partition or near it
    };
    [[nodiscard]] std::vector<Share> weights() const;

private:
    std::vector<std::int64_t> edges_;  ///< the cuts, and a margin before and after each
    struct CutRange {
        std::size_t begin, end;
    };
    std::vector<CutRange> inside_;  ///< per partition: its edges
    std::vector<CutRange> near_;    ///< with the margins
    std::vector<std::uint64_t> counts_;
};

}  // namespace tapioca::pattern
