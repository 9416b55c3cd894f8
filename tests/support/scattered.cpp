// See scattered.hpp.
#include "support/scattered.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tapioca::test {

namespace {

constexpr std::byte gap{0xC3};

}  // namespace

ScatteredMemory::ScatteredMemory(Random& random, Declared const& variable, Bytes const& packed)
{
    choose_counts(random, variable);
    choose_array(random);
    for (auto const& [offset, length] : expand({part_.shape, part_.start, part_.count, part_.stride, 1, 0}))
        places_.push_back(static_cast<std::size_t>(offset));
    auto const size = std::accumulate(part_.shape.begin(), part_.shape.end(), std::int64_t{1}, std::multiplies<>());
    array_.assign(static_cast<std::size_t>(size), gap);
    for (std::size_t i = 0; i < places_.size(); ++i) array_[places_[i]] = packed[i];
}

Bytes ScatteredMemory::packed() const
{
    Bytes bytes;
    bytes.reserve(places_.size());
    for (auto const place : places_) bytes.push_back(array_[place]);
    return bytes;
}

bool ScatteredMemory::gaps_are_untouched() const
{
    auto others = array_;
    for (auto const place : places_) others[place] = gap;
    return std::all_of(others.begin(), others.end(), [](std::byte b) { return b == gap; });
}

void ScatteredMemory::choose_counts(Random& random, Declared const& variable)
{
    if (variable.array && random.chance(60)) {
        part_.count = variable.array->count;
        element_ = variable.array->element_size;
        return;
    }
    auto left = variable.bytes();
    element_ = 1;
    bool const flat = variable.array && variable.array->element_size == 1;  // whose counts would have to be the same
    for (auto dimensions = flat ? 1 : random.pick(1, 4); dimensions > 1 && left > 1; --dimensions) {
        std::vector<std::int64_t> divisors;
        for (std::int64_t d = 1; d * d <= left; ++d)
            if (left % d == 0) divisors.insert(divisors.end(), {d, left / d});
        part_.count.push_back(random.one_of(divisors));
        left /= part_.count.back();
    }
    part_.count.push_back(left);
}

void ScatteredMemory::choose_array(Random& random)
{
    auto const dimensions = part_.count.size();
    auto const strided = static_cast<std::size_t>(random.pick(0, static_cast<std::int64_t>(dimensions)));
    for (std::size_t d = 0; d < dimensions; ++d) {
        auto const stride = d == strided ? random.pick(2, 3) : 1;
        auto const before = random.pick(0, 2);
        auto const covered = part_.count[d] == 0 ? 0 : (part_.count[d] - 1) * stride + 1;
        part_.start.push_back(before);
        part_.stride.push_back(stride);
        part_.shape.push_back(before + covered + random.pick(0, 2));
    }
    if (element_ == 1) return;
    part_.shape.push_back(element_);
    part_.start.push_back(0);
    part_.count.push_back(element_);
    part_.stride.push_back(1);
}

}  // namespace tapioca::test
