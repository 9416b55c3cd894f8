// Layout: where one variable's bytes lie in the file, in ascending order and without overlap.
// Either regular (a subarray: constant size) or a list (24 bytes an extent).
#pragma once

#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

namespace tapioca::pattern {

inline constexpr std::int64_t no_offset = std::numeric_limits<std::int64_t>::max();

/// `count` pieces of `length` bytes, `stride` apart in the file, packed in the buffer from `buffer` on.
struct Run {
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t stride = 0;
    std::int64_t count = 0;
    std::int64_t buffer = 0;
};

/// Pieces of `length` bytes at base + sum(index[d] * step[d]), the last dimension fastest.
struct Regular {
    struct Dimension {
        std::int64_t count;
        std::int64_t step;  ///< bytes
    };
    std::int64_t base = 0;
    std::int64_t length = 0;
    std::vector<Dimension> dimensions;  ///< ascending offsets: each step covers all faster dimensions

    [[nodiscard]] std::int64_t pieces() const;
    [[nodiscard]] std::int64_t offset_of(std::int64_t piece) const;
};

/// Sorted, disjoint extents; `buffer` is where the bytes lie in the variable's buffer.
struct List {
    struct Entry {
        std::int64_t offset;
        std::int64_t length;
        std::int64_t buffer;
    };
    std::vector<Entry> entries;
    bool in_order = false;  ///< the buffer has the pieces in the file's order, without gaps

    [[nodiscard]] std::int64_t pieces() const { return static_cast<std::int64_t>(entries.size()); }
    [[nodiscard]] std::int64_t offset_of(std::int64_t piece) const
    {
        return entries[static_cast<std::size_t>(piece)].offset;
    }
};

using Layout = std::variant<Regular, List>;

/// Walks a layout in ascending file order. Copyable and small, so that one can be kept per partition.
class Cursor {
public:
    explicit Cursor(Layout const& layout);
    /// Moves to the first byte at or after `offset`.
    void seek(std::int64_t offset);
    /// File offset of the next byte, or no_offset at the end.
    [[nodiscard]] std::int64_t position() const { return position_; }
    /// The next run that ends at or before `limit`, a piece that straddles it cut. False if there is none.
    bool next(std::int64_t limit, Run& run);

private:
    bool next(Regular const& regular, std::int64_t limit, Run& run);
    bool next(List const& list, std::int64_t limit, Run& run);
    void advance_to(std::int64_t piece, std::int64_t skip);

    Layout const* layout_;
    std::int64_t pieces_;
    std::int64_t piece_ = 0;
    std::int64_t skip_ = 0;  ///< bytes of the current piece already taken
    std::int64_t position_ = no_offset;
};

}  // namespace tapioca::pattern
