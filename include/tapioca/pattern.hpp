// Pattern: what one rank will write or read, variable by variable. All of it is local, without communication.
#pragma once

#include <tapioca/cxx20.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(default)

namespace tapioca {

class Pattern;

namespace pattern {  // inside the library
class Variable;
std::vector<std::shared_ptr<Variable const>> const& variables_of(Pattern const& pattern);
}  // namespace pattern

/// Types whose values can be moved as plain bytes.
template <class T>
concept Value = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_reference_v<T>;

/// A variable of a pattern that was declared with a type. For it, Step::write() and read() accept only ranges of that
/// type.
template <Value T>
class Variable {
public:
    [[nodiscard]] constexpr std::size_t number() const noexcept { return number_; }

private:
    friend class Pattern;
    constexpr explicit Variable(std::size_t number) : number_(number) {}
    std::size_t number_;
};

/// `length` bytes of the file, starting at `offset`.
struct Extent {
    std::int64_t offset = 0;
    std::int64_t length = 0;
};

/// This rank's part of an n-d array that is stored in row-major (C) order, starting at `file_offset`. It is kept in
/// this form and never expanded into a list of extents.
struct Subarray {
    std::vector<std::int64_t> shape;     ///< the global array, in elements, slowest dimension first
    std::vector<std::int64_t> start;     ///< this rank's first element in each dimension
    std::vector<std::int64_t> count;     ///< this rank's number of elements in each dimension
    std::vector<std::int64_t> stride{};  ///< distance between these elements; empty: 1 in every dimension
    std::int64_t element_size = 1;       ///< bytes per element; not needed for a variable with a type
    std::int64_t file_offset = 0;        ///< where the global array begins in the file
};

/// The variables that one rank moves in a step. All ranks declare the same number of variables; a rank that has no data
/// for a variable declares it empty. Values are checked here, and File::declare() reports the first bad one on every
/// rank.
///
/// A variable's buffer holds its bytes packed, in the order of the extents or of the subarray's elements. If pieces of
/// one rank overlap in a write, the later variable wins, and within a list the later piece. If pieces of different
/// ranks overlap, each byte comes from one of them.
class Pattern {
public:
    /// Adds a variable that consists of extents, in any order, and returns its number. The list is copied.
    std::size_t add(std::span<Extent const> extents);
    std::size_t add(std::initializer_list<Extent> extents)
    {
        return add(std::span<Extent const>(extents.begin(), extents.size()));
    }
    /// Adds a variable that consists of a subarray and returns its number.
    std::size_t add(Subarray const& array);

    /// Adds a variable with a name, for messages and reports, and a type, which determines the size of an element. It
    /// is an error if `element_size` was set to a different size.
    template <Value T>
    Variable<T> add(std::string_view name, Subarray const& array)
    {
        return Variable<T>(add_named(name, array, sizeof(T)));
    }
    /// The same for extents. They are given in bytes; together they must hold a whole number of values.
    template <Value T>
    Variable<T> add(std::string_view name, std::span<Extent const> extents)
    {
        return Variable<T>(add_named(name, extents, sizeof(T)));
    }
    template <Value T>
    Variable<T> add(std::string_view name, std::initializer_list<Extent> extents)
    {
        return add<T>(name, std::span<Extent const>(extents.begin(), extents.size()));
    }

    /// Sets or changes the name of variable `var` for messages, reports and explain(). All ranks should use the same
    /// one.
    void set_name(std::size_t var, std::string_view name);

    [[nodiscard]] std::size_t variables() const noexcept { return variables_.size(); }
    /// The number of bytes that this rank moves for `var`, which is the size of its buffer.
    [[nodiscard]] std::uint64_t bytes(std::size_t var) const;
    /// The number of bytes of memory that this pattern takes.
    [[nodiscard]] std::uint64_t bookkeeping_bytes() const noexcept;

private:
    friend std::vector<std::shared_ptr<pattern::Variable const>> const& pattern::variables_of(Pattern const&);
    std::size_t add_named(std::string_view name, Subarray const& array, std::size_t element_size);
    std::size_t add_named(std::string_view name, std::span<Extent const> extents, std::size_t element_size);
    std::vector<std::shared_ptr<pattern::Variable const>> variables_;
};

/// An array that is cut into blocks, one for each rank.
struct Blocks {
    std::vector<std::int64_t> shape;  ///< the global array, in elements, slowest dimension first
    std::vector<int> grid{};          ///< blocks in each dimension; empty: as square as the number of ranks allows
    int ranks = 0;                    ///< number of ranks; needed if there is no grid
    int rank = -1;                    ///< the rank whose block is wanted; ranks go through the grid in row-major order
    std::int64_t element_size = 1;    ///< bytes per element; not needed for a variable with a type
    std::int64_t file_offset = 0;     ///< where the global array begins in the file
};

/// The block of rank `blocks.rank`. If an extent of the array cannot be divided evenly, the first blocks are longer by
/// one element. Mistakes (a rank outside the grid, a grid with more or fewer dimensions than the array) are reported by
/// File::declare(), on every rank. Local.
Subarray block_of(Blocks const& blocks);

}  // namespace tapioca

#pragma GCC visibility pop
