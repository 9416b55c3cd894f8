// MemoryShape: how a variable's elements lie in memory where they are not packed: a section of an array, such as all of
// it but its ghost cells. Laying a variable over it gives layouts that the engine copies from and to in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tapioca/section.hpp>

#include "core/result.hpp"
#include "pattern/variable.hpp"

namespace tapioca::pattern {

/// Nested loops over elements; the last dimension is the fastest. Steps may be negative.
struct MemoryShape {
    struct Dimension {
        std::int64_t count;
        std::int64_t step;  ///< bytes
        bool operator==(Dimension const&) const = default;
    };
    std::int64_t element_size = 1;
    std::vector<Dimension> dimensions;

    [[nodiscard]] std::int64_t bytes() const;
    /// All elements lie side by side, in their order.
    [[nodiscard]] bool packed() const;
    bool operator==(MemoryShape const&) const = default;
};

/// A section's shape, and where its first element lies in the array.
struct PlacedShape {
    MemoryShape shape;
    std::int64_t begin = 0;
};
/// Checks that the section lies inside its array, and that this has `array_bytes` bytes, if that is known.
core::Result<PlacedShape> place_section(ArrayPart const& part, std::int64_t element_size,
                                        std::optional<std::uint64_t> array_bytes = {});

/// The same bytes of the file as `variable`'s, but taken from `memory`, whose first element is the buffer's beginning.
/// Fails if the two have other numbers of bytes, or of elements in some dimension.
core::Result<Variable> lay_over(Variable const& variable, MemoryShape const& memory);

/// Where the elements lie, in their packed order: offsets are places in that order, and the buffer is the memory.
Layout places_of(MemoryShape const& memory);

}  // namespace tapioca::pattern
