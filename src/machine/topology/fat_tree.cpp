// fat_tree: a tree of switches.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "machine/platform/figures.hpp"
#include "machine/platform/switches.hpp"
#include "machine/topology/drawing.hpp"
#include "machine/topology/kind.hpp"
#include "machine/topology/tally.hpp"

namespace tapioca::machine {

extern TopologyKind const fat_tree_topology;

namespace {

class FatTree final : public Topology {
public:
    FatTree(std::vector<std::vector<int>> switches, std::vector<Level> levels)
        : Topology(fat_tree_topology, static_cast<int>(switches.at(0).size()), std::move(levels)),
          switches_(std::move(switches))
    {
        // Switches are renumbered from 0 in order of appearance.
        for (auto& level : switches_) {
            std::map<int, int> numbers;
            for (int& number : level) number = numbers.emplace(number, static_cast<int>(numbers.size())).first->second;
            sizes_.push_back(static_cast<int>(numbers.size()));
        }
        number_children();
    }

    /// From the top: the largest number of children of a switch of each level.
    [[nodiscard]] std::vector<int> dimensions() const override { return dimensions_; }

    /// The path down from the top: which child of the top switch, which child of that switch, ..., which node of the
    /// last.
    [[nodiscard]] std::vector<int> coordinates(int node) const override
    {
        std::vector<int> result;
        for (std::size_t level = places_.size(); level-- > 0;)
            result.push_back(places_[level][level == 0 ? node : switches_[level - 1][node]]);
        return result;
    }

    [[nodiscard]] std::vector<int> hops(int from, int to) const override
    {
        std::vector<int> result(switches_.size(), 0);
        std::fill_n(result.begin(), distance(from, to) / 2, 2);
        return result;
    }

    [[nodiscard]] int distance(int from, int to) const override
    {
        if (from == to) return 0;
        std::size_t level = 0;
        while (level + 1 < switches_.size() && switches_[level][from] != switches_[level][to]) ++level;
        return 2 * (static_cast<int>(level) + 1);
    }

    [[nodiscard]] std::vector<int> nearest(std::span<int const> places) const override
    {
        auto const levels = switches_.size();
        std::vector<int> result(static_cast<std::size_t>(nodes()), 2 * static_cast<int>(levels));
        for (std::size_t level = levels; level-- > 0;) {
            std::vector<bool> has(static_cast<std::size_t>(sizes_[level]), false);
            for (int const place : places) has[switches_[level][place]] = true;
            for (int node = 0; node < nodes(); ++node)
                if (has[switches_[level][node]]) result[node] = 2 * (static_cast<int>(level) + 1);
        }
        for (int const place : places) result[place] = 0;
        return result;
    }

    /// Level by level: the sources that meet at a switch of this level, and not below.
    [[nodiscard]] std::vector<double> costs(std::span<Source const> sources,
                                            std::span<Charge const> charges) const override
    {
        auto const own = per_node(sources, nodes());
        std::vector<double> result(own.size(), 0);
        auto below = own;  // per node: what is under its switch of the previous level
        double hops_s = 0, per_byte_s = 0;
        for (std::size_t level = 0; level < switches_.size(); ++level) {
            std::vector<Tally> under(static_cast<std::size_t>(sizes_[level]));
            for (std::size_t node = 0; node < own.size(); ++node) under[switches_[level][node]] += own[node];
            hops_s += 2 * charges[level].per_hop_s;
            per_byte_s = std::max(per_byte_s, charges[level].per_byte_s);
            for (std::size_t node = 0; node < own.size(); ++node) {
                auto const& here = under[switches_[level][node]];
                auto const met = here - below[node];
                result[node] += met.sources * hops_s + met.bytes * per_byte_s;
                below[node] = here;
            }
        }
        return result;
    }

    [[nodiscard]] int switch_of(int node) const override { return switches_[0][node]; }
    [[nodiscard]] int switch_below(std::size_t level, int node) const override
    {
        return level == 0 ? -1 : switches_[level - 1][node];
    }

    [[nodiscard]] std::string to_toml(std::vector<std::string> const& hosts) const override
    {
        std::vector<int> order;
        bool regular = true;
        for (int node = 0; node < nodes(); ++node) {
            order.push_back(node);
            auto const at = coordinates(node);
            int place = 0;
            for (std::size_t d = 0; d < at.size(); ++d) place = place * dimensions_[d] + at[d];
            regular = regular && place == node;
        }
        std::int64_t product = 1;
        for (int const size : dimensions_) product *= size;
        if (regular && product == nodes())
            return fmt::format("arity = [{}]\n", fmt::join(dimensions_.rbegin(), dimensions_.rend(), ", "));
        std::sort(order.begin(), order.end(), [&](int a, int b) { return coordinates(a) < coordinates(b); });
        return fmt::format("switches = {}\n", nested(order, 0, hosts));
    }
    [[nodiscard]] std::shared_ptr<Topology const> with_levels(std::vector<Level> levels) const override
    {
        return make_fat_tree(switches_, std::move(levels));
    }
    [[nodiscard]] TopologyDrawing layout(std::vector<int> const& used, double cell) const override
    {
        auto drawn = all_nodes(*this);
        if (much_larger(*this, used)) {
            std::set<int> leaves;
            for (int const node : used) leaves.insert(switches_[0][node]);
            std::erase_if(drawn, [&](int node) { return !leaves.contains(switches_[0][node]); });
        }
        return below({}, drawn, cell);
    }

private:
    /// The switches and nodes below the switch that `under` share, at `depth` below the top, as nested lists. `under`
    /// is in the order of coordinates.
    [[nodiscard]] std::string nested(std::span<int const> under, std::size_t depth,
                                     std::vector<std::string> const& hosts) const
    {
        bool const leaf = depth + 1 == dimensions_.size();
        std::vector<std::string> children;
        while (!under.empty()) {
            auto const child = coordinates(under[0])[depth];
            std::size_t count = 0;
            while (count < under.size() && coordinates(under[count])[depth] == child) ++count;
            if (!leaf)
                children.push_back(nested(under.first(count), depth + 1, hosts));
            else
                children.push_back(hosts.empty() ? fmt::format("{}", under[0]) : text_value(hosts[under[0]]));
            under = under.subspan(count);
        }
        return fmt::format("[{}]", fmt::join(children, leaf ? ", " : ",\n    "));
    }

    /// Draws nested switches; `path` leads from the top to this one, `under` are the nodes below it.
    [[nodiscard]] TopologyDrawing below(std::vector<int> const& path, std::vector<int> const& under, double cell) const
    {
        auto const label = fmt::format("switch {}", fmt::join(path, "."));
        if (path.size() + 1 == dimensions_.size()) {
            auto const columns = columns_for(dimensions_.back(), 1, 1);
            return framed(cells(under, columns, cell, layout_gap(cell)), path.empty() ? "one switch" : label, 7);
        }
        std::map<int, std::vector<int>> children;
        for (int const node : under) children[coordinates(node)[path.size()]].push_back(node);
        std::vector<TopologyDrawing> parts;
        for (auto const& [place, those] : children) {
            auto further = path;
            further.push_back(place);
            parts.push_back(below(further, those, cell));
        }
        return framed(packed(parts, 8), path.empty() ? "top switch" : label, 10);
    }

    /// places_[l][i]: the position of i, a node (l = 0) or a switch of level l-1, among the children of its switch.
    void number_children()
    {
        for (std::size_t level = 0; level < switches_.size(); ++level) {
            int const children = level == 0 ? nodes() : sizes_[level - 1];
            std::vector<int> place(static_cast<std::size_t>(children), -1);
            std::vector<int> used(static_cast<std::size_t>(sizes_[level]), 0);
            for (int node = 0; node < nodes(); ++node) {
                int const child = level == 0 ? node : switches_[level - 1][node];
                if (place[child] < 0) place[child] = used[switches_[level][node]]++;
            }
            dimensions_.insert(dimensions_.begin(), *std::max_element(used.begin(), used.end()));
            places_.push_back(std::move(place));
        }
    }

    std::vector<std::vector<int>> switches_;  // per level and node
    std::vector<int> sizes_;                  // switches per level
    std::vector<std::vector<int>> places_;
    std::vector<int> dimensions_;
};

std::vector<std::vector<int>> read_arity(TomlTable const& topology)
{
    auto const arity = *topology.integers("arity", 1, most_nodes);
    if (arity.empty() || arity.size() > most_levels)
        topology.refuse("arity", fmt::format("must list 1 to {} numbers, such as [16, 8]", most_levels));
    int const nodes = multiply_up(topology, "arity", arity);
    std::vector<std::vector<int>> switches;
    int under = 1;
    for (int const count : arity) {
        under *= count;
        auto& level = switches.emplace_back();
        for (int node = 0; node < nodes; ++node) level.push_back(node / under);
    }
    return switches;
}

SharedTopology read_fat_tree(TomlTable const& topology, Draft& draft)
{
    if (topology.has("arity") == topology.has("switches"))
        topology.refuse("arity", "or topology.switches must be given, and not both");
    auto switches = topology.has("arity") ? read_arity(topology) : read_switches(topology, draft);
    std::vector<std::string> names;
    for (std::size_t level = 1; level <= switches.size(); ++level) names.push_back(fmt::format("level {}", level));
    auto levels = read_levels(topology, names, draft);
    return make_fat_tree(std::move(switches), std::move(levels));
}

constexpr std::string_view fat_tree_keys[] = {"arity", "switches"};

}  // namespace

TopologyKind const fat_tree_topology = {
    .name = "fat_tree",
    .help = "switches above switches, up to one",
    .keys = fat_tree_keys,
    .read = read_fat_tree,
};

std::shared_ptr<Topology const> make_fat_tree(std::vector<std::vector<int>> switches, std::vector<Level> levels)
{
    return std::make_shared<FatTree>(std::move(switches), std::move(levels));
}

}  // namespace tapioca::machine
