// TypeNode: the structure inside a Typemap, for code that walks it.
#pragma once

#include <memory>
#include <vector>

#include "pattern/layout.hpp"
#include "pattern/typemap.hpp"

namespace tapioca::pattern {

/// A list of blocks, a loop, or a sequence of such lists and loops. Its first byte in data order is at 0.
struct Typemap::TypeNode {
    using Pointer = std::shared_ptr<TypeNode const>;
    struct Child {
        std::int64_t offset;
        std::int64_t data;  ///< data bytes before it
        Pointer node;
    };
    std::vector<Layout::ListItem> entries;  ///< a list: blocks in data order; `buffer` is the data bytes before
    std::int64_t count = 0;                 ///< a loop if not 0
    std::int64_t step = 0;
    Pointer body;
    std::vector<Child> children;  ///< a sequence if there are any

    std::int64_t bytes = 0;
    std::int64_t begin = 0;   ///< lowest byte
    std::int64_t end = 0;     ///< one past the highest
    std::int64_t tail = 0;    ///< one past the last in data order
    std::int64_t blocks = 0;  ///< contiguous stretches
    bool ascending = true;
    std::uint64_t hash = 0;

    /// Displacement of data byte `position`. @pre there is such a byte
    [[nodiscard]] std::int64_t offset_of(std::int64_t position) const;
    /// The child that contains data byte `position`.
    [[nodiscard]] std::size_t child_of(std::int64_t position) const;
    /// The entry that contains data byte `position`.
    [[nodiscard]] std::size_t entry_of(std::int64_t position) const;
    /// Adds all blocks, for a node that lies at `offset` and whose data begins at `data`. Adjacent blocks become one.
    void expand(std::int64_t offset, std::int64_t data, std::vector<Layout::ListItem>& to) const;
};

/// Appends a block. If it is adjacent to the last one, the two become one.
void append(std::vector<Layout::ListItem>& to, Layout::ListItem const& entry);

}  // namespace tapioca::pattern
