// RangeIndex: which of many ranges of offsets have bytes of a given range. Ranges may overlap, and may be added between
// searches; adding n of them takes O(n log^2 n) in all. For one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tapioca::subfile {

class RangeIndex {
public:
    /// Adds [begin, end), which is not empty.
    void add(std::int64_t begin, std::int64_t end, std::size_t id) { new_.push_back({begin, end, end, id}); }
    /// The ranges that have bytes of [begin, end), in no order.
    [[nodiscard]] std::vector<std::size_t> find(std::int64_t begin, std::int64_t end) const;

private:
    /// A range, and a node of the tree that a layer is: its children are in the middle of what lies to both sides.
    struct Range {
        std::int64_t begin, end;
        std::int64_t furthest_end;  ///< of the part of the layer in whose middle it is
        std::size_t id;
    };
    using SortedRanges = std::vector<Range>;  ///< by their first bytes

    static std::int64_t connect(SortedRanges& layer, std::size_t first, std::size_t last);
    static void search(SortedRanges const& layer, std::size_t first, std::size_t last, Range const& wanted,
                       std::vector<std::size_t>& found);
    void add_layer() const;

    mutable SortedRanges new_;
    mutable std::vector<SortedRanges> layers_;  ///< each is larger than the next
};

}  // namespace tapioca::subfile
