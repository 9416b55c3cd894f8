// Patterns for C. All calls are local; bad values are kept and make TAPIOCA_Declare fail on every rank.
#include <algorithm>

#include <fmt/core.h>

#include "api/c_face.hpp"
#include "api/c_fortran.hpp"

namespace tapioca::c {

namespace {

constexpr char const* the_pattern = "the pattern handle";
constexpr char const* pattern_pointer = "the pointer for the pattern handle";

/// Adds the variable that `make` returns. If `problem` is a failure, it adds an empty variable instead, so that the
/// numbers of later variables stay right.
template <class Make>
void add(TAPIOCA_Pattern pattern, char const* call, core::Status const& problem, int* var, Make&& make)
{
    auto& handle = alive(pattern, call, the_pattern);
    auto const number = static_cast<int>(handle.pattern.variables());
    if (problem) {
        handle.pattern.add(make());
    } else {
        core::keep_first(handle.status, core::fail(problem.error().code, fmt::format("{}(variable {}): {}", call,
                                                                                     number, problem.error().text)));
        handle.pattern.add(std::span<Extent const>());
    }
    if (var) *var = number;
}

core::Status check_place(int ranks, int rank)
{
    if (ranks >= 1 && rank >= 0 && rank < ranks) return {};
    return core::fail(Errc::invalid_argument, fmt::format("rank {} of {}: there is no such rank", rank, ranks));
}

}  // namespace

core::Status check_dimensions(int ndims, std::initializer_list<std::int64_t const*> arrays)
{
    if (ndims < 1 || ndims > 32)
        return core::fail(Errc::invalid_argument, fmt::format("{} dimensions: there must be 1 to 32", ndims));
    if (std::any_of(arrays.begin(), arrays.end(), [](auto const* array) { return !array; }))
        return core::fail(Errc::invalid_argument, "an array of numbers for each dimension is null");
    return {};
}

std::vector<std::int64_t> list(int ndims, std::int64_t const* numbers)
{
    return numbers ? std::vector<std::int64_t>(numbers, numbers + ndims) : std::vector<std::int64_t>();
}

}  // namespace tapioca::c

using namespace tapioca;

int TAPIOCA_Pattern_create(TAPIOCA_Pattern* pattern)
{
    return c::guarded([&] {
        auto& out = c::required(pattern, "TAPIOCA_Pattern_create", c::pattern_pointer);
        out = c::Handles<TAPIOCA_Pattern_s>::all().give({});
    });
}

int TAPIOCA_Pattern_add_extents(TAPIOCA_Pattern pattern, int64_t n, int64_t const offset[], int64_t const length[],
                                int* var)
{
    return c::guarded([&] {
        core::Status problem;
        if (n < 0)
            problem = core::fail(Errc::invalid_argument, fmt::format("{} extents", n));
        else if (n > 0 && (!offset || !length))
            problem = core::fail(Errc::invalid_argument, "the offsets or lengths are null");
        std::vector<Extent> extents;
        c::add(pattern, "TAPIOCA_Pattern_add_extents", problem, var, [&] {
            extents.reserve(static_cast<std::size_t>(n));
            for (int64_t i = 0; i < n; ++i) extents.push_back({offset[i], length[i]});
            return std::span<Extent const>(extents);
        });
    });
}

int TAPIOCA_Pattern_add_subarray(TAPIOCA_Pattern pattern, int ndims, int64_t const shape[], int64_t const start[],
                                 int64_t const count[], int64_t const stride[], int64_t element_size,
                                 int64_t file_offset, int* var)
{
    return c::guarded([&] {
        auto const problem = c::check_dimensions(ndims, {shape, start, count});
        c::add(pattern, "TAPIOCA_Pattern_add_subarray", problem, var, [&] {
            return Subarray{c::list(ndims, shape),  c::list(ndims, start), c::list(ndims, count),
                            c::list(ndims, stride), element_size,          file_offset};
        });
    });
}

int TAPIOCA_Pattern_add_block(TAPIOCA_Pattern pattern, int ndims, int64_t const shape[], int ranks, int rank,
                              int64_t element_size, int64_t file_offset, int* var)
{
    return c::guarded([&] {
        auto problem = c::check_dimensions(ndims, {shape});
        core::keep_first(problem, c::check_place(ranks, rank));
        c::add(pattern, "TAPIOCA_Pattern_add_block", problem, var, [&] {
            return block_of({c::list(ndims, shape), {}, ranks, rank, element_size, file_offset});
        });
    });
}

int TAPIOCA_Block_of(int ndims, int64_t const shape[], int ranks, int rank, int64_t start[], int64_t count[])
{
    return c::guarded([&] {
        auto problem = c::check_dimensions(ndims, {shape, start, count});
        core::keep_first(problem, c::check_place(ranks, rank));
        if (!problem) c::refuse(problem.error().code, "TAPIOCA_Block_of", problem.error().text);
        auto const block = block_of({.shape = c::list(ndims, shape), .ranks = ranks, .rank = rank});
        std::copy(block.start.begin(), block.start.end(), start);
        std::copy(block.count.begin(), block.count.end(), count);
    });
}

int TAPIOCA_Pattern_set_name(TAPIOCA_Pattern pattern, int var, char const* name)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Pattern_set_name";
        auto& handle = c::alive(pattern, call, c::the_pattern);
        core::Status problem = c::not_null(name, "the name");
        if (var < 0 || static_cast<std::size_t>(var) >= handle.pattern.variables())
            core::keep_first(problem, core::fail(Errc::invalid_argument,
                                                 fmt::format("there are {} variables", handle.pattern.variables())));
        if (problem) return handle.pattern.set_name(static_cast<std::size_t>(var), name);
        core::keep_first(handle.status, core::fail(problem.error().code, fmt::format("{}(variable {}): {}", call, var,
                                                                                     problem.error().text)));
    });
}

int TAPIOCA_Pattern_variables(TAPIOCA_Pattern pattern, int* variables)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Pattern_variables";
        c::required(variables, call, "the pointer for the number") =
            static_cast<int>(c::alive(pattern, call, c::the_pattern).pattern.variables());
    });
}

int TAPIOCA_Pattern_bytes(TAPIOCA_Pattern pattern, int var, int64_t* bytes)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Pattern_bytes";
        auto const& handle = c::alive(pattern, call, c::the_pattern);
        if (var < 0 || static_cast<std::size_t>(var) >= handle.pattern.variables())
            c::refuse(Errc::invalid_argument, call,
                      fmt::format("variable {}: there are {}", var, handle.pattern.variables()));
        c::required(bytes, call, "the pointer for the bytes") =
            static_cast<int64_t>(handle.pattern.bytes(static_cast<std::size_t>(var)));
    });
}

int TAPIOCA_Pattern_bookkeeping_bytes(TAPIOCA_Pattern pattern, int64_t* bytes)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Pattern_bookkeeping_bytes";
        c::required(bytes, call, "the pointer for the bytes") =
            static_cast<int64_t>(c::alive(pattern, call, c::the_pattern).pattern.bookkeeping_bytes());
    });
}

int TAPIOCA_Pattern_free(TAPIOCA_Pattern* pattern)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Pattern_free";
        c::give_back(c::required(pattern, call, "the pointer to the pattern handle"), call, c::the_pattern);
    });
}
