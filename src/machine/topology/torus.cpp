// torus: every node has two neighbours in every dimension.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "machine/topology/drawing.hpp"
#include "machine/topology/kind.hpp"
#include "machine/topology/tally.hpp"

namespace tapioca::machine {

extern TopologyKind const torus_topology;

namespace {

/// For every place of a ring: the sum of its distances to everything in `counts`. In linear time, because one step
/// along the ring comes nearer to the half ahead and farther from the rest.
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

/// One direction of a flattened torus: some of its dimensions, fastest first, slower ones in wider steps.
struct TorusAxis {
    std::vector<std::size_t> dimensions;
    std::vector<double> steps;  ///< from one place of a dimension to the next
    std::vector<double> sizes;  ///< size of one place
    double length;

    TorusAxis(std::vector<std::size_t> those, std::vector<int> const& extent, double cell)
        : dimensions(std::move(those)), length(cell)
    {
        double step = cell + layout_gap(cell);
        for (auto const d : dimensions) {
            steps.push_back(step);
            sizes.push_back(length);
            length = step * (extent[d] - 1) + length;
            step = length + layout_gap(cell) + 0.5 * cell;
        }
    }
    [[nodiscard]] double place(std::vector<int> const& at) const
    {
        double result = 0;
        for (std::size_t i = 0; i < dimensions.size(); ++i) result += at[dimensions[i]] * steps[i];
        return result;
    }
};

/// The part of a torus to draw: `extent` places of each dimension from `first` on.
struct TorusPart {
    std::vector<int> first, extent;

    TorusPart(Topology const& topology, std::vector<int> const& used) : extent(topology.dimensions())
    {
        first.assign(extent.size(), 0);
        if (!much_larger(topology, used)) return;
        auto last = first;
        first = extent;
        for (auto const node : used) {
            auto const at = topology.coordinates(node);
            for (std::size_t d = 0; d < at.size(); ++d) {
                first[d] = std::min(first[d], at[d]);
                last[d] = std::max(last[d], at[d]);
            }
        }
        for (std::size_t d = 0; d < last.size(); ++d) extent[d] = last[d] - first[d] + 1;
    }
    /// The node's place within the part, or nothing if it is outside.
    [[nodiscard]] std::vector<int> within(std::vector<int> at) const
    {
        for (std::size_t d = 0; d < at.size(); ++d) {
            at[d] -= first[d];
            if (at[d] < 0 || at[d] >= extent[d]) return {};
        }
        return at;
    }
    /// The dimensions of set bits, fastest first, without those that have only one place.
    [[nodiscard]] std::vector<std::size_t> chosen(unsigned bits) const
    {
        std::vector<std::size_t> result;
        for (auto d = extent.size(); d-- > 0;)
            if (extent[d] > 1 && (bits >> d & 1U)) result.push_back(d);
        return result;
    }
    [[nodiscard]] std::string name(std::size_t dimension, int place) const
    {
        auto const letter = static_cast<char>((extent.size() > 3 ? 'A' : 'X') + static_cast<int>(dimension));
        return letter + std::to_string(first[dimension] + place);
    }
};

constexpr double label_across = 15, label_down = 24;

/// Calls use(level, text, centre) for the labels of an axis, in rows by level; levels that are too narrow are left out.
void for_each_label(TorusAxis const& axis, TorusPart const& part, bool across,
                    std::function<void(std::size_t, std::string const&, double)> const& use)
{
    std::size_t row = 0;
    for (std::size_t level = 0; level < axis.steps.size(); ++level) {
        auto const last = part.name(axis.dimensions[level], part.extent[axis.dimensions[level]] - 1);
        if (axis.steps[level] < (across ? layout_width(last) + 2 : 11)) continue;
        std::vector<double> starts{0};
        for (auto outer = level + 1; outer < axis.steps.size(); ++outer) {
            std::vector<double> further;
            for (auto const start : starts)
                for (int i = 0; i < part.extent[axis.dimensions[outer]]; ++i)
                    further.push_back(start + i * axis.steps[outer]);
            starts = std::move(further);
        }
        for (auto const start : starts)
            for (int i = 0; i < part.extent[axis.dimensions[level]]; ++i)
                use(row, part.name(axis.dimensions[level], i), start + i * axis.steps[level] + axis.sizes[level] / 2);
        ++row;
    }
}

class Torus final : public Topology {
public:
    Torus(std::vector<int> dimensions, Level link)
        : Topology(torus_topology, std::accumulate(dimensions.begin(), dimensions.end(), 1, std::multiplies<>()),
                   {std::move(link)}),
          dimensions_(std::move(dimensions))
    {
    }

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

    /// Dimension by dimension: the nearest place is the nearest along a ring, starting from the nearest of the other
    /// dimensions.
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

    [[nodiscard]] std::string to_toml(std::vector<std::string> const& /*hosts*/) const override
    {
        return fmt::format("dimensions = [{}]\n", fmt::join(dimensions_, ", "));
    }
    [[nodiscard]] std::shared_ptr<Topology const> with_levels(std::vector<Level> levels) const override
    {
        return make_torus(dimensions_, levels.at(0));
    }
    /// Some dimensions across and the others down, so that the aspect is about right.
    [[nodiscard]] TopologyDrawing layout(std::vector<int> const& used, double cell) const override
    {
        TorusPart const part(*this, used);
        auto const everything = (1U << part.extent.size()) - 1;
        unsigned across = 0;
        double least = 1e300;
        for (unsigned bits = 0; bits <= everything; ++bits) {
            auto const width = TorusAxis(part.chosen(bits), part.extent, cell).length;
            auto const height = TorusAxis(part.chosen(everything & ~bits), part.extent, cell).length;
            if (auto const off = std::abs(std::log(width / height / layout_aspect)); off < least) {
                least = off;
                across = bits;
            }
        }
        TorusAxis const x(part.chosen(across), part.extent, cell);
        TorusAxis const y(part.chosen(everything & ~across), part.extent, cell);
        double top = 0, left = 0;
        for_each_label(x, part, true,
                       [&](std::size_t row, auto&&...) { top = (static_cast<double>(row) + 1) * label_across; });
        for_each_label(y, part, false,
                       [&](std::size_t row, auto&&...) { left = (static_cast<double>(row) + 1) * label_down; });
        auto const border = 0.3 * cell + layout_gap(cell) / 2;  // room for the tint of blocks
        left += border;
        top += border;
        TopologyDrawing result;
        for_each_label(x, part, true, [&](std::size_t row, std::string const& text, double at) {
            result.texts.push_back({left + at, top - border - 4 - static_cast<double>(row) * label_across, text});
        });
        for_each_label(y, part, false, [&](std::size_t row, std::string const& text, double at) {
            result.texts.push_back({left - border - 12 - static_cast<double>(row) * label_down, top + at + 4, text});
        });
        for (int node = 0; node < nodes(); ++node)
            if (auto const at = part.within(coordinates(node)); !at.empty())
                result.spots.push_back({node, left + x.place(at), top + y.place(at)});
        result.width = left + x.length + border;
        result.height = top + y.length + border;
        return result;
    }

private:
    std::vector<int> dimensions_;
};

SharedTopology read_torus(TomlTable const& topology, Draft& draft)
{
    auto sizes = topology.integers("dimensions", 1, most_nodes);
    if (!sizes || sizes->empty()) topology.refuse("dimensions", "must list the torus's sizes, such as [4, 4, 8]");
    if (sizes->size() > most_levels) topology.refuse("dimensions", fmt::format("has more than {} sizes", most_levels));
    (void)multiply_up(topology, "dimensions", *sizes);
    return make_torus(std::move(*sizes), read_levels(topology, {"link"}, draft)[0]);
}

constexpr std::string_view torus_keys[] = {"dimensions"};

}  // namespace

TopologyKind const torus_topology = {
    .name = "torus",
    .help = "any number of dimensions, all of which wrap around",
    .keys = torus_keys,
    .read = read_torus,
};

std::shared_ptr<Topology const> make_torus(std::vector<int> dimensions, Level link)
{
    return std::make_shared<Torus>(std::move(dimensions), std::move(link));
}

}  // namespace tapioca::machine
