// Section: a part of an array in memory, such as all of it but its ghost cells. A step writes it from where it lies,
// and reads into it, without a packed copy.
//
//     step.write(u, tapioca::interior(field, {nx + 2, ny + 2, nz + 2}, {1, 1, 1}));
//     step.read(v, tapioca::section(plane, {.shape = {ny, nx}, .start = {0, 0}, .count = {ny, nx / 2}, .stride = {1,
//     2}}));
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

/// A range of values that does not own them, or is no temporary.
template <class R>
concept Values = std::ranges::contiguous_range<R> && std::ranges::borrowed_range<R> && std::ranges::sized_range<R> &&
    Value<std::ranges::range_value_t<R>>;
/// One whose values can be changed.
template <class R>
concept MutableValues = Values<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// Which elements of an array in memory are meant. The array is stored in row-major (C) order, and dimensions come
/// slowest first.
struct ArrayPart {
    std::vector<std::int64_t> shape;     ///< the whole array, in elements
    std::vector<std::int64_t> start;     ///< the first element in each dimension
    std::vector<std::int64_t> count;     ///< number of elements in each dimension
    std::vector<std::int64_t> stride{};  ///< step between them; empty means 1 everywhere
};

/// A part of an array. It does not own the array, which must stay valid as the buffers of a step must. What is wrong (a
/// part that leaves the array, an array of another size than the shape) is thrown by Step::finish() or wait(), on every
/// rank.
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

/// A part of `array`, with strides or without.
template <Values R>
[[nodiscard]] auto section(R&& array, ArrayPart part)
{
    return Section<std::remove_reference_t<std::ranges::range_reference_t<R>>>(std::span(array), std::move(part));
}

/// All of `array` but its ghost cells: in each dimension the first `before` and the last `after` elements.
template <Values R>
[[nodiscard]] auto interior(R&& array, std::vector<std::int64_t> shape, std::vector<std::int64_t> before,
                            std::vector<std::int64_t> const& after)
{
    std::vector<std::int64_t> count(std::min({shape.size(), before.size(), after.size()}));
    for (std::size_t d = 0; d < count.size(); ++d) count[d] = shape[d] - before[d] - after[d];
    return section(array, ArrayPart{std::move(shape), std::move(before), std::move(count)});
}
/// The same with as many at both ends.
template <Values R>
[[nodiscard]] auto interior(R&& array, std::vector<std::int64_t> shape, std::vector<std::int64_t> const& ghosts)
{
    return interior(array, std::move(shape), ghosts, ghosts);
}

}  // namespace tapioca

#pragma GCC visibility pop
