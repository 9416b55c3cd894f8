#include "plan/weight.hpp"

#include <algorithm>

namespace tapioca::plan {

namespace {

constexpr std::size_t few_weights = std::size_t{1} << 16;

bool alike(std::uint64_t a, std::uint64_t b, bool exactly)
{
    auto const [less, more] = std::minmax(a, b);
    return exactly ? less == more : (less > 0 || more == 0) && more - less <= more / 8;
}

}  // namespace

std::uint64_t Weight::bytes_in(std::size_t partition) const
{
    auto const count = end - begin;
    return bytes / count + (partition - begin < bytes % count ? 1 : 0);
}

std::vector<Weight> weights_of(int node, std::vector<pattern::Scale::Share> const& partitions, std::size_t nodes)
{
    bool const exactly = nodes * partitions.size() <= few_weights;
    std::vector<Weight> weights;
    std::uint64_t first = 0;  // bytes in the first partition of the current weight
    for (std::size_t p = 0; p < partitions.size(); ++p) {
        auto const& [bytes, near_bytes] = partitions[p];
        if (near_bytes == 0) continue;
        if (weights.empty() || weights.back().end != p || !alike(first, bytes, exactly)) {
            weights.push_back({node, p, p, 0, 0});
            first = bytes;
        }
        auto& weight = weights.back();
        weight.end = p + 1;
        weight.bytes += bytes;
        weight.most_bytes = std::max(weight.most_bytes, near_bytes);
    }
    return weights;
}

}  // namespace tapioca::plan
