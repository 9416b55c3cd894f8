#include <algorithm>
#include <map>

#include "machine/topology/tally.hpp"

namespace tapioca::machine {

namespace {

class FatTree final : public Topology {
public:
    FatTree(std::vector<std::vector<int>> switches, std::vector<Level> levels)
        : Topology(static_cast<int>(switches.at(0).size()), std::move(levels)), switches_(std::move(switches))
    {
        // Switches become 0 to their number in order of appearance, whatever they were called.
        for (auto& level : switches_) {
            std::map<int, int> numbers;
            for (int& number : level) number = numbers.emplace(number, static_cast<int>(numbers.size())).first->second;
            sizes_.push_back(static_cast<int>(numbers.size()));
        }
        number_children();
    }

    [[nodiscard]] std::string_view kind() const override { return "fat_tree"; }
    /// From the top: the most that hang from a switch of each level.
    [[nodiscard]] std::vector<int> dimensions() const override { return dimensions_; }

    /// The way down from the top: which of the top's switches, which of that one's, ..., which node of the last.
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

    /// Level by level: what meets at a switch of it, and not below.
    [[nodiscard]] std::vector<double> costs(std::span<Source const> sources,
                                            std::span<Charge const> charges) const override
    {
        auto const own = per_node(sources, nodes());
        std::vector<double> result(own.size(), 0);
        auto below = own;  // per node: what is under its switch of the level before
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

private:
    /// places_[l][i]: which of its switch's children is i, a node (l = 0) or a switch of level l-1.
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

}  // namespace

std::shared_ptr<Topology const> make_fat_tree(std::vector<std::vector<int>> switches, std::vector<Level> levels)
{
    return std::make_shared<FatTree>(std::move(switches), std::move(levels));
}

}  // namespace tapioca::machine
