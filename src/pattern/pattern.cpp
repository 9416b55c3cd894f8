// Pattern's public members and the ready-made patterns.
#include <tapioca/pattern.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

#include "pattern/variable.hpp"

namespace tapioca {

namespace pattern {

std::uint64_t Variable::bookkeeping_bytes() const
{
    std::uint64_t bytes = sizeof(Variable) + (layouts_.capacity() - layouts_.size()) * sizeof(Layout);
    for (auto const& layout : layouts_) bytes += layout.bookkeeping_bytes();
    return bytes;
}

}  // namespace pattern

std::size_t Pattern::add(std::span<Extent const> extents)
{
    variables_.push_back(
        std::make_shared<pattern::Variable const>(pattern::Variable::from_extents(variables_.size(), extents)));
    return variables_.size() - 1;
}

std::size_t Pattern::add(Subarray const& array)
{
    variables_.push_back(
        std::make_shared<pattern::Variable const>(pattern::Variable::from_subarray(variables_.size(), array)));
    return variables_.size() - 1;
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

/// Ascending.
std::vector<int> prime_factors(int number)
{
    std::vector<int> factors;
    for (int factor = 2; number > 1; ++factor)
        for (; number % factor == 0; number /= factor) factors.push_back(factor);
    return factors;
}

/// A negative number, which declare() refuses, where the product passes 2^63.
std::int64_t times(std::int64_t a, std::int64_t b)
{
    std::int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::min() : product;
}

}  // namespace

Subarray block_of(std::span<std::int64_t const> shape, int ranks, int rank, std::int64_t element_size,
                  std::int64_t file_offset)
{
    if (shape.empty() || ranks < 1 || rank < 0 || rank >= ranks)  // for declare() to complain about
        return {{shape.begin(), shape.end()}, {}, {}, {}, element_size, file_offset};
    // Deal the prime factors of `ranks`, largest first, each to the dimension whose blocks are longest.
    std::vector<std::int64_t> blocks(shape.size(), 1);
    auto const length = [&](std::size_t d) { return static_cast<double>(shape[d]) / static_cast<double>(blocks[d]); };
    auto const factors = prime_factors(ranks);
    for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
        std::size_t longest = 0;
        for (std::size_t d = 1; d < shape.size(); ++d)
            if (length(d) > length(longest)) longest = d;
        blocks[longest] *= *factor;
    }

    Subarray array;
    array.shape.assign(shape.begin(), shape.end());
    array.start.resize(shape.size());
    array.count.resize(shape.size());
    array.element_size = element_size;
    array.file_offset = file_offset;
    std::int64_t place = rank;
    for (auto d = shape.size(); d-- > 0; place /= blocks[d]) {
        auto const index = place % blocks[d];
        auto const base = shape[d] / blocks[d];
        auto const remainder = shape[d] % blocks[d];
        array.start[d] = index * base + std::min(index, remainder);
        array.count[d] = base + (index < remainder ? 1 : 0);
    }
    return array;
}

namespace hacc {

Pattern pattern(Layout layout, std::int64_t mine, std::int64_t before, std::int64_t total, std::int64_t file_offset)
{
    Pattern result;
    std::int64_t sizes_before = 0;  // of the variables before this one, per particle
    for (auto const size : variable_bytes) {
        auto const before_this = layout == Layout::aos ? times(before, particle_bytes) : times(total, sizes_before);
        auto const inside = layout == Layout::aos ? times(mine, sizes_before) : times(before, size);
        std::int64_t offset = 0;
        bool const overflow = before_this < 0 || inside < 0 || __builtin_add_overflow(before_this, inside, &offset) ||
                              __builtin_add_overflow(offset, file_offset, &offset);
        result.add({{overflow ? -1 : offset, times(mine, size)}});
        sizes_before += size;
    }
    return result;
}

}  // namespace hacc
}  // namespace tapioca
