// Pattern's public members and the ready-made patterns.
#include <tapioca/pattern.hpp>

#include <algorithm>
#include <numeric>

#include "pattern/variable.hpp"

namespace tapioca {

namespace pattern {

std::uint64_t Variable::bookkeeping_bytes() const
{
    std::uint64_t bytes = sizeof(Variable) + layouts_.capacity() * sizeof(Layout);
    for (auto const& layout : layouts_) {
        if (auto const* list = std::get_if<List>(&layout)) bytes += list->entries.capacity() * sizeof(List::Entry);
        if (auto const* regular = std::get_if<Regular>(&layout))
            bytes += regular->dimensions.capacity() * sizeof(Regular::Dimension);
    }
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

Subarray block_of(std::span<std::int64_t const> shape, int ranks, int rank, std::int64_t element_size,
                  std::int64_t file_offset)
{
    // Deal the prime factors of `ranks`, largest first, each to the dimension whose blocks are longest.
    std::vector<std::int64_t> blocks(shape.size(), 1);
    std::vector<int> factors;
    for (int rest = ranks, f = 2; rest > 1; rest % f == 0 ? (factors.push_back(f), rest /= f) : ++f) {}
    for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
        std::size_t longest = 0;
        for (std::size_t d = 1; d < shape.size(); ++d)
            if (shape[d] * blocks[longest] > shape[longest] * blocks[d]) longest = d;
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
        auto const offset = layout == Layout::aos ? before * particle_bytes + mine * sizes_before
                                                  : total * sizes_before + before * size;
        result.add({{file_offset + offset, mine * size}});
        sizes_before += size;
    }
    return result;
}

}  // namespace hacc
}  // namespace tapioca
