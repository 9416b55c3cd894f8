// Turns subarrays into layouts: checks them, and then folds dimensions that are whole or single into longer pieces.
#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "pattern/variable.hpp"

namespace tapioca::pattern {

core::Status check_subarray(Subarray const& array)
{
    auto const bad = [](std::string what) { return core::fail(Errc::invalid_argument, std::move(what)); };
    auto const dimensions = array.shape.size();
    if (dimensions == 0 || dimensions > 32)
        return bad(fmt::format("has {} dimensions: it must have 1 to 32", dimensions));
    if (array.start.size() != dimensions || array.count.size() != dimensions ||
        (!array.stride.empty() && array.stride.size() != dimensions))
        return bad(fmt::format("has {} dimensions in shape, but {} in start, {} in count and {} in stride", dimensions,
                               array.start.size(), array.count.size(), array.stride.size()));
    if (array.element_size <= 0)
        return bad(fmt::format("has element size {}: it must be positive", array.element_size));
    if (array.file_offset < 0)
        return bad(fmt::format("has file offset {}: it must not be negative", array.file_offset));
    std::int64_t bytes = array.element_size;
    for (std::size_t d = 0; d < dimensions; ++d) {
        auto const stride = array.stride.empty() ? 1 : array.stride[d];
        if (array.shape[d] < 0 || array.start[d] < 0 || array.count[d] < 0 || stride < 1)
            return bad(
                fmt::format("has shape {}, start {}, count {}, stride {} in dimension {}: none may be negative, "
                            "and the stride must be positive",
                            array.shape[d], array.start[d], array.count[d], stride, d));
        std::int64_t last = 0;
        bool const overflow = __builtin_mul_overflow(array.count[d] - 1, stride, &last) ||
                              __builtin_add_overflow(last, array.start[d], &last);
        if (array.count[d] > 0 && (overflow || last >= array.shape[d]))
            return bad(fmt::format("leaves the array in dimension {}: start {}, count {}, stride {} of {} elements", d,
                                   array.start[d], array.count[d], stride, array.shape[d]));
        if (__builtin_mul_overflow(bytes, array.shape[d], &bytes))
            return bad(
                fmt::format("is part of an array of shape [{}] that passes 2^63 bytes", fmt::join(array.shape, ", ")));
    }
    if (__builtin_add_overflow(bytes, array.file_offset, &bytes))
        return bad(fmt::format("at file offset {} passes 2^63 bytes", array.file_offset));
    return {};
}

Variable Variable::from_subarray(std::size_t number, Subarray const& array, std::string_view name)
{
    if (auto const status = check_subarray(array); !status)
        return Variable(core::fail(status.error().code,
                                   fmt::format("{}: subarray {}", pattern::called(number, name), status.error().text)))
            .named(name);
    if (std::find(array.count.begin(), array.count.end(), 0) != array.count.end()) return Variable({}, 0).named(name);

    Layout layout{array.file_offset, 0, {}, {{0, array.element_size, 0}}};
    auto& length = layout.entries[0].length;
    std::int64_t bytes = array.element_size;
    std::int64_t element = array.element_size;  // bytes from one index of dimension d to the next
    for (auto d = array.shape.size(); d-- > 0; element *= array.shape[d]) {
        auto const stride = array.stride.empty() ? 1 : array.stride[d];
        layout.base += array.start[d] * element;
        bool const touching = stride * element == length && layout.dimensions.empty();
        if (touching)
            length *= array.count[d];
        else if (array.count[d] > 1)
            layout.dimensions.insert(layout.dimensions.begin(), {array.count[d], stride * element, bytes});
        bytes *= array.count[d];
    }
    Variable variable({std::move(layout)}, bytes);
    variable.declared_ = std::make_shared<Subarray const>(array);
    return std::move(variable).named(name);
}

}  // namespace tapioca::pattern
