// Turns arrays of Fortran into SuppliedMemory.
#include "api/c_fortran.hpp"

#include <limits>

#include <fmt/core.h>

namespace tapioca::c {

namespace {

pattern::MemoryShape shape_of(tapioca_fortran_array const& array)
{
    pattern::MemoryShape shape{array.element_size, {}};
    for (int d = array.rank; d-- > 0;) shape.dimensions.push_back({array.extent[d], array.step[d]});
    return shape;
}

}  // namespace

std::int64_t bytes_of(std::int64_t count, std::int64_t type_size)
{
    std::int64_t bytes = 0;
    bool const sane = count > 0 && type_size > 0 && !__builtin_mul_overflow(count, type_size, &bytes);
    return sane ? bytes : 0;
}

SuppliedMemory memory_of(tapioca_fortran_array const& array, std::int64_t bytes)
{
    auto const bad = [](std::string text) { return core::fail(Errc::invalid_argument, std::move(text)); };
    bool const known = array.available != std::numeric_limits<std::int64_t>::max();
    SuppliedMemory memory{static_cast<std::byte*>(array.address), bytes};
    if (bytes < 0) memory.bytes = known ? array.available : 0;
    if (bytes < 0 && !known) memory.problem = bad("the array's size is not known here: pass `bytes`");
    if (array.contiguous) {
        if (bytes > array.available) memory.problem = bad(fmt::format("the array has only {} bytes", array.available));
        return memory;
    }
    memory.shape = shape_of(array);
    if (bytes >= 0 && bytes != array.available)
        memory.problem = bad(fmt::format(
            "the array is not contiguous, and can only be moved as a whole: it has {} bytes", array.available));
    return memory;
}

}  // namespace tapioca::c
