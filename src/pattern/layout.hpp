// Layout: where one variable's bytes lie in the file, in ascending order and without overlap. A subarray takes constant
// memory, a list takes 24 bytes per extent, and a list in loops takes no more than the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tapioca::pattern {

inline constexpr std::int64_t no_offset = std::numeric_limits<std::int64_t>::max();

/// `count` pieces of `length` bytes: `stride` apart in the file starting at `offset`, and `buffer_stride` apart in the
/// buffer starting at `buffer`. The strides of a single piece have no meaning.
struct PieceRun {
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t stride = 0;
    std::int64_t count = 0;
    std::int64_t buffer = 0;
    std::int64_t buffer_stride = 0;

    /// The pieces lie side by side in the buffer.
    [[nodiscard]] bool packed() const { return count == 1 || buffer_stride == length; }
};

/// A tile of entries, repeated by nested loops: an entry's bytes lie at base + sum(index[d] * step[d]) + offset in the
/// file, and likewise in the variable's buffer. The last dimension is the fastest.
struct Layout {
    struct Dimension {
        std::int64_t count;
        std::int64_t step;  ///< bytes
        std::int64_t buffer_step;
    };
    struct ListItem {
        std::int64_t offset;
        std::int64_t length;
        std::int64_t buffer;
    };
    std::int64_t base = 0;
    std::int64_t buffer = 0;
    std::vector<Dimension> dimensions;  ///< ascending offsets: each step covers all faster dimensions and the tile
    std::vector<ListItem> entries;      ///< ascending and disjoint
    bool in_order = true;               ///< the buffer has a tile's pieces in the file's order, without gaps

    /// The number of tiles; 0 if there are no entries.
    [[nodiscard]] std::int64_t tiles() const;
    [[nodiscard]] std::int64_t pieces() const { return tiles() * static_cast<std::int64_t>(entries.size()); }
    /// One past the last byte. @pre there is a piece
    [[nodiscard]] std::int64_t end() const;

    /// A byte: the one after `skip` bytes of an entry of a tile. If `tile` is tiles(), it is one past the last byte.
    struct Spot {
        std::int64_t tile;
        std::size_t entry;
        std::int64_t skip;
    };
    /// The first byte at or after `offset`.
    [[nodiscard]] Spot find(std::int64_t offset) const;
    /// The number of bytes before `offset`. @pre in_order
    [[nodiscard]] std::int64_t bytes_before(std::int64_t offset) const;
    [[nodiscard]] std::uint64_t bookkeeping_bytes() const;
};

/// Walks a layout in ascending order of offsets. Copyable and small, so that one can be kept for each partition.
class LayoutCursor {
public:
    explicit LayoutCursor(Layout const& layout);
    /// Moves to the first byte at or after `offset`.
    void seek(std::int64_t offset);
    /// File offset of the next byte, or no_offset at the end.
    [[nodiscard]] std::int64_t position() const { return position_; }
    /// The next run that ends at or before `limit`; a piece that crosses the limit is cut. False if there is none.
    bool next(std::int64_t limit, PieceRun& run);

private:
    void go_to(Layout::Spot spot);

    Layout const* layout_;
    std::int64_t tiles_;
    Layout::Spot at_{};
    std::int64_t tile_offset_ = 0;  ///< offset of the current tile
    std::int64_t tile_buffer_ = 0;
    std::int64_t position_ = no_offset;
};

/// Calls visit(offset, length, position in the buffer) for every piece of a run, in order.
template <class Visit>
void each_piece(PieceRun const& run, Visit const& visit)
{
    for (std::int64_t i = 0; i < run.count; ++i)
        visit(run.offset + i * run.stride, run.length, run.buffer + i * run.buffer_stride);
}

/// The same for every piece of a layout, or only of its bytes in [begin, end).
template <class Visit>
void each_piece(Layout const& layout, Visit const& visit, std::int64_t begin = 0, std::int64_t end = no_offset)
{
    LayoutCursor cursor(layout);
    if (begin > 0) cursor.seek(begin);
    for (PieceRun run; cursor.next(end, run);) each_piece(run, visit);
}

}  // namespace tapioca::pattern
