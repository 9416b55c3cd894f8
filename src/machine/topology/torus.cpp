#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>

#include "machine/topology/tally.hpp"

namespace tapioca::machine {

namespace {

/// For every place of a ring: the sum of its distances to all that `counts` tells of. Linear: one step along the ring
/// brings it nearer to the half ahead, and away from the rest.
std::vector<double> ring_sums(std::vector<std::int64_t> const& counts)
{
    auto const size = static_cast<std::int64_t>(counts.size());
    std::vector<std::int64_t> before(2 * counts.size() + 1, 0);  // twice round, so that no range wraps
    for (std::size_t i = 0; i < 2 * counts.size(); ++i) before[i + 1] = before[i] + counts[i % counts.size()];
    auto const between = [&](std::int64_t first, std::int64_t last) { return before[last + 1] - before[first]; };

    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < size; ++i) sum += counts[i] * std::min(i, size - i);
    std::vector<double> sums;
    for (std::int64_t at = 0; at < size; ++at) {
        sums.push_back(static_cast<double>(sum));
        auto const nearer = size > 1 ? between(at + 1, at + size / 2) : 0;
        auto const farther = size > 1 ? between(at + (size + 1) / 2 + 1, at + size) : 0;
        sum += farther - nearer;
    }
    return sums;
}

class Torus final : public Topology {
public:
    Torus(std::vector<int> dimensions, Level link)
        : Topology(std::accumulate(dimensions.begin(), dimensions.end(), 1, std::multiplies<>()), {std::move(link)}),
          dimensions_(std::move(dimensions))
    {
    }

    [[nodiscard]] std::string_view kind() const override { return "torus"; }
    [[nodiscard]] std::vector<int> dimensions() const override { return dimensions_; }
    [[nodiscard]] std::vector<int> hops(int from, int to) const override { return {distance(from, to)}; }

    [[nodiscard]] std::vector<int> coordinates(int node) const override
    {
        std::vector<int> result(dimensions_.size());
        for (std::size_t d = dimensions_.size(); d-- > 0; node /= dimensions_[d]) result[d] = node % dimensions_[d];
        return result;
    }

    [[nodiscard]] int distance(int from, int to) const override
    {
        int sum = 0;
        for (std::size_t d = dimensions_.size(); d-- > 0; from /= dimensions_[d], to /= dimensions_[d]) {
            int const apart = std::abs(from % dimensions_[d] - to % dimensions_[d]);
            sum += std::min(apart, dimensions_[d] - apart);
        }
        return sum;
    }

    /// Dimension after dimension: the nearest place is one along a ring, from where it is the nearest of the rest.
    [[nodiscard]] std::vector<int> nearest(std::span<int const> places) const override
    {
        std::vector<int> result(static_cast<std::size_t>(nodes()), std::numeric_limits<int>::max() / 2);
        for (int const place : places) result[place] = 0;
        int stride = 1;
        for (std::size_t d = dimensions_.size(); d-- > 0; stride *= dimensions_[d]) {
            int const size = dimensions_[d];
            for (int first = 0; first < nodes(); ++first) {
                if (first / stride % size != 0) continue;
                auto const at = [&](int i) -> int& { return result[first + i % size * stride]; };
                for (int i = 1; i < 2 * size; ++i) at(i) = std::min(at(i), at(i - 1) + 1);
                for (int i = 2 * size - 1; i > 0; --i) at(i - 1) = std::min(at(i - 1), at(i) + 1);
            }
        }
        return result;
    }

    [[nodiscard]] std::vector<double> costs(std::span<Source const> sources,
                                            std::span<Charge const> charges) const override
    {
        auto const own = per_node(sources, nodes());
        auto const bytes = total(own).bytes;
        std::vector<double> hops_to(own.size(), 0);
        int stride = 1;
        for (std::size_t d = dimensions_.size(); d-- > 0; stride *= dimensions_[d]) {
            std::vector<std::int64_t> counts(static_cast<std::size_t>(dimensions_[d]), 0);
            for (auto const& source : sources) ++counts[source.node / stride % dimensions_[d]];
            auto const sums = ring_sums(counts);
            for (int node = 0; node < nodes(); ++node) hops_to[node] += sums[node / stride % dimensions_[d]];
        }
        std::vector<double> result;
        result.reserve(own.size());
        for (std::size_t node = 0; node < own.size(); ++node)
            result.push_back(hops_to[node] * charges[0].per_hop_s + (bytes - own[node].bytes) * charges[0].per_byte_s);
        return result;
    }

private:
    std::vector<int> dimensions_;
};

}  // namespace

std::shared_ptr<Topology const> make_torus(std::vector<int> dimensions, Level link)
{
    return std::make_shared<Torus>(std::move(dimensions), std::move(link));
}

}  // namespace tapioca::machine
