// MemoryShape: how a variable's elements lie in memory if they are not packed, as in a section of an array that leaves
// out its ghost cells. Laying a variable over it gives layouts with which the engine copies in place.
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

/// The shape of a section, and the position of its first element in the array.
struct PlacedShape {
    MemoryShape shape;
    std::int64_t begin = 0;
};
/// Checks that the section lies inside its array and, if `array_bytes` is known, that the array has this size.
core::Result<PlacedShape> place_section(ArrayPart const& part, std::int64_t element_size,
                                        std::optional<std::uint64_t> array_bytes = {});

/// A variable with the same bytes of the file as `variable`, but with its data in `memory`; the buffer begins at the
/// first element of `memory`. Fails if the two differ in their bytes, or in their elements in some dimension.
core::Result<Variable> lay_over(Variable const& variable, MemoryShape const& memory);

/// The places of the elements in memory, in their packed order: the layout's offsets are places in that order.
Layout places_of(MemoryShape const& memory);

}  // namespace tapioca::pattern
