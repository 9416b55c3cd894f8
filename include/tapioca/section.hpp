// Section: a part of an array in memory, such as everything except its ghost cells. A step writes from it and reads
// into it in place, without a packed copy.
//
//     step.write(u, tapioca::interior(field, {nx + 2, ny + 2, nz + 2}, {1, 1, 1}));
//     step.read(v, tapioca::section(plane, {.shape = {ny, nx}, .start = {0, 0}, .count = {ny, nx / 2},
//                                           .stride = {1, 2}}));
#pragma once

#include <tapioca/cxx20.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include <tapioca/pattern.hpp>

#pragma GCC visibility push(default)

namespace tapioca {

/// A contiguous range of values that either does not own them or is not a temporary.
template <class R>
concept Values = std::ranges::contiguous_range<R> && std::ranges::borrowed_range<R> && std::ranges::sized_range<R> &&
    Value<std::ranges::range_value_t<R>>;
/// The same, with values that can be changed.
template <class R>
concept MutableValues = Values<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// Selects elements of an array in memory. The array is stored in row-major (C) order; the slowest dimension comes
/// first.
struct ArrayPart {
    std::vector<std::int64_t> shape;     ///< the whole array, in elements
    std::vector<std::int64_t> start;     ///< the first selected element in each dimension
    std::vector<std::int64_t> count;     ///< number of selected elements in each dimension
    std::vector<std::int64_t> stride{};  ///< distance between them; empty: 1 in every dimension
};

/// A part of an array. It does not own the array, which must stay valid as long as the buffers of a step must. Mistakes
/// (a part that leaves the array, a shape that does not fit the size of the array) are thrown by Step::finish() or
/// wait(), on every rank (for a staged file, on this rank).
template <class T>
class Section {
public:
    Section(std::span<T> array, ArrayPart part) : array_(array), part_(std::move(part)) {}
    /// The whole array.
    [[nodiscard]] std::span<T> array() const noexcept { return array_; }
    [[nodiscard]] ArrayPart const& part() const noexcept { return part_; }

private:
    std::span<T> array_;
    ArrayPart part_;
};

/// A part of `array`, with or without strides.
template <Values R>
[[nodiscard]] auto section(R&& array, ArrayPart part)
{
    return Section<std::remove_reference_t<std::ranges::range_reference_t<R>>>(std::span(array), std::move(part));
}

/// Everything in `array` except its ghost cells, which are, in each dimension, the first `before` and the last `after`
/// elements.
template <Values R>
[[nodiscard]] auto interior(R&& array, std::vector<std::int64_t> shape, std::vector<std::int64_t> before,
                            std::vector<std::int64_t> const& after)
{
    std::vector<std::int64_t> count(after.size());
    for (std::size_t d = 0; d < std::min({shape.size(), before.size(), after.size()}); ++d)
        count[d] = shape[d] - before[d] - after[d];
    return section(array, ArrayPart{std::move(shape), std::move(before), std::move(count)});
}
/// The same with equal numbers of ghost cells at both ends of each dimension.
template <Values R>
[[nodiscard]] auto interior(R&& array, std::vector<std::int64_t> shape, std::vector<std::int64_t> const& ghosts)
{
    return interior(array, std::move(shape), ghosts, ghosts);
}

}  // namespace tapioca

#pragma GCC visibility pop
