// Merge: many requests, in the order in which they were made, to one that has every byte once, the latest.
//
// The papers' two-level reordering: requests are sorted by their first byte; those whose range meets no other's move
// whole, only groups whose ranges interleave are broken up into pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pattern/layout.hpp"
#include "pattern/variable.hpp"

namespace tapioca::stage {

/// Pieces of the file, each from the latest request that wrote it. Places in buffers are relative to `base`.
struct Merged {
    std::vector<pattern::Layout> layouts;  ///< disjoint, each ascending
    std::int64_t bytes = 0;
    std::vector<Extent> left_out;  ///< ascending and disjoint
};

class Merge {
public:
    /// All data given to add() lies at `base` or behind it.
    explicit Merge(std::byte const* base) : base_(base) {}

    /// Room for so many contiguous requests.
    void expect(std::size_t contiguous) { flat_.reserve(contiguous); }
    /// `length` bytes at `offset`. Later requests win over earlier ones.
    void add(std::int64_t offset, std::int64_t length, std::byte const* data);
    /// A request with structure; its places in the buffer are relative to `data`.
    void add(pattern::Layout layout, std::byte const* data);
    /// Bytes that are not to be in the result, if no later request has them.
    void leave_out(pattern::Layout layout);

    Merged finish();

private:
    struct LargeRequest {  ///< a request that is more than a piece
        pattern::Layout layout;
        std::uint64_t order;
        bool left_out;
    };
    struct MergedPiece {
        std::int64_t offset;
        std::int64_t length;
        std::int64_t buffer;
        std::uint64_t order;
        bool left_out;
    };
    void give_up_order_by_place();
    void sort();
    bool finish_disjoint(Merged& merged);
    void break_up(LargeRequest const& unit, std::vector<MergedPiece>& pieces) const;
    void resolve(std::vector<MergedPiece>& pieces, Merged& merged);
    void emit(Merged& merged, std::int64_t offset, std::int64_t length, std::int64_t buffer);

    std::byte const* base_;
    std::uint64_t added_ = 0;
    std::vector<pattern::Layout::ListItem> flat_;
    std::vector<std::uint64_t> orders_;  ///< of flat_, where it is not the order of their places in the buffer
    bool by_place_ = true;
    std::vector<LargeRequest> units_;
    pattern::Layout list_;  ///< of the result
};

}  // namespace tapioca::stage
