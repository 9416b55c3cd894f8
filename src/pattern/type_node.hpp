// TypeNode: the inside of a Typemap, for those who walk it.
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
        std::int64_t data;  ///< bytes before it
        Pointer node;
    };
    std::vector<Layout::ListItem> entries;  ///< a list: blocks in data order; `buffer` is the bytes before
    std::int64_t count = 0;                 ///< a loop, where not 0
    std::int64_t step = 0;
    Pointer body;
    std::vector<Child> children;  ///< a sequence, if there are any

    std::int64_t bytes = 0;
    std::int64_t begin = 0;   ///< lowest byte
    std::int64_t end = 0;     ///< one past the highest
    std::int64_t tail = 0;    ///< one past the last in data order
    std::int64_t blocks = 0;  ///< contiguous stretches
    bool ascending = true;
    std::uint64_t hash = 0;

    /// Displacement of data byte `position`, which exists.
    [[nodiscard]] std::int64_t offset_of(std::int64_t position) const;
    /// The child that has data byte `position`.
    [[nodiscard]] std::size_t child_of(std::int64_t position) const;
    /// The entry that has it.
    [[nodiscard]] std::size_t entry_of(std::int64_t position) const;
    /// Adds all blocks, as if the node lay at `offset` and its data at `data`; those that touch become one.
    void expand(std::int64_t offset, std::int64_t data, std::vector<Layout::ListItem>& to) const;
};

/// Appends a block, as part of the last one where they touch.
void append(std::vector<Layout::ListItem>& to, Layout::ListItem const& entry);

}  // namespace tapioca::pattern
