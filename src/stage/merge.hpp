// Merge: turns many requests, in the order in which they were made, into one that has every byte once, from the latest
// request.
//
// This is the papers' two-level reordering: requests are sorted by their first byte. Requests whose range meets no
// other range stay whole; only groups whose ranges interleave are broken up into pieces.
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
    /// All data given to add() is at `base` or after it.
    explicit Merge(std::byte const* base) : base_(base) {}

    /// Reserves room for this number of contiguous requests.
    void expect(std::size_t contiguous) { flat_.reserve(contiguous); }
    /// Adds `length` bytes at `offset`. Later requests win over earlier ones.
    void add(std::int64_t offset, std::int64_t length, std::byte const* data);
    /// Adds a structured request; its places in the buffer are relative to `data`.
    void add(pattern::Layout layout, std::byte const* data);
    /// Adds bytes that must not be in the result unless a later request has them.
    void leave_out(pattern::Layout layout);

    Merged finish();

private:
    struct LargeRequest {  ///< a request that is not a single piece
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
    std::vector<std::uint64_t> orders_;  ///< order of flat_, if it is not that of their positions in the buffer
    bool by_place_ = true;
    std::vector<LargeRequest> units_;
    pattern::Layout list_;  ///< list of the result's pieces
};

}  // namespace tapioca::stage
