// The public members of Pattern, and blocks of arrays.
#include <tapioca/pattern.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/core.h>

#include "pattern/variable.hpp"

namespace tapioca {

namespace pattern {

std::uint64_t Variable::bookkeeping_bytes() const
{
    std::uint64_t bytes = sizeof(Variable) + (layouts_.capacity() - layouts_.size()) * sizeof(Layout);
    for (auto const& layout : layouts_) bytes += layout.bookkeeping_bytes();
    return bytes;
}

std::string called(std::size_t number, std::string_view name)
{
    return name.empty() ? fmt::format("variable {}", number) : fmt::format("variable {} '{}'", number, name);
}

}  // namespace pattern

std::vector<std::shared_ptr<pattern::Variable const>> const& pattern::variables_of(Pattern const& pattern)
{
    return pattern.variables_;
}

std::size_t Pattern::add(std::span<Extent const> extents)
{
    return add_named("", extents, 1);
}

std::size_t Pattern::add(Subarray const& array)
{
    return add_named("", array, 1);
}

std::size_t Pattern::add_named(std::string_view name, std::span<Extent const> extents, std::size_t element_size)
{
    auto const number = variables_.size();
    auto variable = pattern::Variable::from_extents(number, extents, name);
    if (variable.status() && variable.bytes() % element_size != 0)
        variable = pattern::Variable::failed(
            core::fail(Errc::invalid_argument, fmt::format("{}: {} bytes are not a whole number of values of {} bytes",
                                                           variable.called(number), variable.bytes(), element_size)));
    variables_.push_back(std::make_shared<pattern::Variable const>(std::move(variable)));
    return number;
}

std::size_t Pattern::add_named(std::string_view name, Subarray const& array, std::size_t element_size)
{
    auto const number = variables_.size();
    auto sized = array;
    if (sized.element_size == 1) sized.element_size = static_cast<std::int64_t>(element_size);
    auto variable = pattern::Variable::from_subarray(number, sized, name);
    if (variable.status() && element_size > 1 && sized.element_size != static_cast<std::int64_t>(element_size))
        variable = pattern::Variable::failed(core::fail(
            Errc::invalid_argument, fmt::format("{}: the array has elements of {} bytes, but its type has {}",
                                                variable.called(number), sized.element_size, element_size)));
    variables_.push_back(std::make_shared<pattern::Variable const>(std::move(variable)));
    return number;
}

void Pattern::set_name(std::size_t var, std::string_view name)
{
    if (var >= variables_.size()) return;
    auto variable = *variables_[var];
    variables_[var] = std::make_shared<pattern::Variable const>(std::move(variable).named(name));
}

std::uint64_t Pattern::bytes(std::size_t var) const
{
    return var < variables_.size() ? variables_[var]->bytes() : 0;
}

std::uint64_t Pattern::bookkeeping_bytes() const noexcept
{
    return std::accumulate(variables_.begin(), variables_.end(), std::uint64_t{0},
                           [](auto sum, auto const& variable) { return sum + variable->bookkeeping_bytes(); });
}

namespace {

/// The prime factors of a number, in ascending order.
std::vector<int> prime_factors(int number)
{
    std::vector<int> factors;
    for (int factor = 2; number > 1; ++factor)
        for (; number % factor == 0; number /= factor) factors.push_back(factor);
    return factors;
}

/// The product, or a negative number, which declare() refuses, if the product passes 2^63.
std::int64_t times(std::int64_t a, std::int64_t b)
{
    std::int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::min() : product;
}

}  // namespace

namespace {

/// The number of blocks in each dimension. The prime factors of `ranks`, largest first, each go to the dimension whose
/// blocks are longest at that point.
std::vector<int> square_grid(std::span<std::int64_t const> shape, int ranks)
{
    std::vector<int> blocks(shape.size(), 1);
    auto const length = [&](std::size_t d) { return static_cast<double>(shape[d]) / static_cast<double>(blocks[d]); };
    auto const factors = prime_factors(ranks);
    for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
        std::size_t longest = 0;
        for (std::size_t d = 1; d < shape.size(); ++d)
            if (length(d) > length(longest)) longest = d;
        blocks[longest] *= *factor;
    }
    return blocks;
}

}  // namespace

Subarray block_of(Blocks const& blocks)
{
    auto const& shape = blocks.shape;
    bool const chosen = blocks.grid.empty();
    Subarray array{shape, {}, {}, {}, blocks.element_size, blocks.file_offset};
    if (shape.empty() || (chosen && blocks.ranks < 1)) return array;  // declare() reports it
    auto const grid = chosen ? square_grid(shape, blocks.ranks) : blocks.grid;
    auto const ranks = std::accumulate(grid.begin(), grid.end(), std::int64_t{1}, times);
    bool const cut = std::all_of(grid.begin(), grid.end(), [](int count) { return count > 0; });
    if (!cut || grid.size() != shape.size() || blocks.rank < 0 || blocks.rank >= ranks ||
        (blocks.ranks > 0 && blocks.ranks != ranks))
        return array;
    array.start.resize(shape.size());
    array.count.resize(shape.size());
    std::int64_t place = blocks.rank;
    for (auto d = shape.size(); d-- > 0; place /= grid[d]) {
        auto const index = place % grid[d];
        auto const base = shape[d] / grid[d];
        auto const remainder = shape[d] % grid[d];
        array.start[d] = index * base + std::min(index, remainder);
        array.count[d] = base + (index < remainder ? 1 : 0);
    }
    return array;
}

}  // namespace tapioca
