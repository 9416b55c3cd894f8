// Pattern: what one rank will write or read, variable by variable. Local values, no communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace tapioca {

namespace pattern {
class Variable;
}

/// `length` bytes of the file from `offset` on.
struct Extent {
    std::int64_t offset = 0;
    std::int64_t length = 0;
};

/// This rank's part of an n-d array stored in row-major (C) order from `file_offset` on.
/// Kept as it is, never expanded into a list of extents.
struct Subarray {
    std::vector<std::int64_t> shape;     ///< the global array, in elements, slowest dimension first
    std::vector<std::int64_t> start;     ///< this rank's first element in each dimension
    std::vector<std::int64_t> count;     ///< this rank's number of elements in each dimension
    std::vector<std::int64_t> stride{};  ///< step between them; empty means 1 everywhere
    std::int64_t element_size = 1;       ///< bytes per element
    std::int64_t file_offset = 0;        ///< where the global array begins in the file
};

/// The variables one rank moves in a step. Ranks declare the same number of variables; a rank
/// without data in one declares it empty. Values are checked here, and File::declare() reports the
/// first bad one on every rank.
///
/// A variable's buffer holds its bytes packed, in the order of the extents or of the subarray's
/// elements. Where one rank's pieces overlap in a write, the later piece of a list and the later
/// variable win; where pieces of different ranks overlap, each byte comes from one of them.
class Pattern {
public:
    /// Adds a variable made of extents, in any order, and returns its number. Copies the list.
    std::size_t add(std::span<Extent const> extents);
    std::size_t add(std::initializer_list<Extent> extents)
    {
        return add(std::span<Extent const>(extents.begin(), extents.size()));
    }
    /// Adds a variable made of a subarray and returns its number.
    std::size_t add(Subarray const& array);

    [[nodiscard]] std::size_t variables() const noexcept { return variables_.size(); }
    /// Bytes this rank moves for `var`: the size of its buffer.
    [[nodiscard]] std::uint64_t bytes(std::size_t var) const;
    /// What is kept in memory for this pattern, in bytes.
    [[nodiscard]] std::uint64_t bookkeeping_bytes() const noexcept;

    [[nodiscard]] std::vector<std::shared_ptr<pattern::Variable const>> const& all() const noexcept
    {
        return variables_;
    }

private:
    std::vector<std::shared_ptr<pattern::Variable const>> variables_;
};

/// The part of rank `rank` when an array is cut into blocks for `ranks` ranks, as square as the
/// numbers allow; remainders go to the first blocks. For 1 to 4 dimensions. Local.
Subarray block_of(std::span<std::int64_t const> shape, int ranks, int rank, std::int64_t element_size,
                  std::int64_t file_offset = 0);

/// HACC-IO: nine variables (XX YY ZZ VX VY VZ phi pid mask), 38 bytes a particle.
namespace hacc {

inline constexpr std::int64_t variable_bytes[9] = {4, 4, 4, 4, 4, 4, 4, 8, 2};
inline constexpr std::int64_t particle_bytes = 38;

enum class Layout {
    aos,  ///< rank by rank, each with its nine arrays one after the other
    soa,  ///< variable by variable, each with the arrays of all ranks one after the other
};

/// The pattern of a rank with `mine` particles, `before` on lower ranks, of `total` in all. Local.
Pattern pattern(Layout layout, std::int64_t mine, std::int64_t before, std::int64_t total,
                std::int64_t file_offset = 0);

}  // namespace hacc
}  // namespace tapioca

#pragma GCC visibility pop
