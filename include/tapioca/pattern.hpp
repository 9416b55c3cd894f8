// Pattern: what one rank will write or read, variable by variable. Local values, no communication.
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

/// Values that can be moved as they are: their bytes are all of them.
template <class T>
concept Value = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_reference_v<T>;

/// A variable of a pattern that was declared with a type: Step::write() and read() take ranges of that type for it.
template <Value T>
class Variable {
public:
    [[nodiscard]] constexpr std::size_t number() const noexcept { return number_; }

private:
    friend class Pattern;
    constexpr explicit Variable(std::size_t number) : number_(number) {}
    std::size_t number_;
};

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
    std::int64_t element_size = 1;       ///< bytes per element; a variable with a type knows it by itself
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

    /// Adds a variable with a name, for messages and reports, and a type, which gives the size of an element. An
    /// element size that was set to another is an error.
    template <Value T>
    Variable<T> add(std::string_view name, Subarray const& array)
    {
        return Variable<T>(add_named(name, array, sizeof(T)));
    }
    /// The same of extents, which are in bytes, and hold whole values all together.
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

    /// Gives variable `var` a name, or another one, for messages, reports and explain(). Ranks should give the same.
    void set_name(std::size_t var, std::string_view name);

    [[nodiscard]] std::size_t variables() const noexcept { return variables_.size(); }
    /// Bytes this rank moves for `var`: the size of its buffer.
    [[nodiscard]] std::uint64_t bytes(std::size_t var) const;
    /// What is kept in memory for this pattern, in bytes.
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
    int ranks = 0;                    ///< where no grid is given
    int rank = -1;                  ///< whose block is wanted; ranks go through the grid as elements through the array
    std::int64_t element_size = 1;  ///< bytes per element; a variable with a type knows it by itself
    std::int64_t file_offset = 0;   ///< where the global array begins in the file
};

/// This rank's block of an array; remainders go to the first blocks. What is wrong (a rank outside the grid, a grid of
/// other dimensions than the array) is reported by File::declare(), on every rank. Local.
Subarray block_of(Blocks const& blocks);

}  // namespace tapioca

#pragma GCC visibility pop
