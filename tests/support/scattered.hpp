// ScatteredMemory: a variable's bytes in a random section of a random array: ghost cells, strides, other shapes than
// the variable's. Placed element by element, by other code than the library's.
#pragma once

#include <cstddef>
#include <vector>

#include <tapioca/section.hpp>

#include "support/random_patterns.hpp"

namespace tapioca::test {

class ScatteredMemory {
public:
    ScatteredMemory(Random& random, Declared const& variable, Bytes const& packed);

    [[nodiscard]] Section<std::byte> section() { return tapioca::section(array_, part_); }
    /// What the section has, in the order of its elements.
    [[nodiscard]] Bytes packed() const;
    [[nodiscard]] bool gaps_are_untouched() const;

private:
    void choose_counts(Random& random, Declared const& variable);
    void choose_array(Random& random);

    std::int64_t element_ = 1;
    ArrayPart part_;
    std::vector<std::size_t> places_;  ///< of the section's bytes in the array
    Bytes array_;
};

}  // namespace tapioca::test
