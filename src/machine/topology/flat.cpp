#include "machine/topology/tally.hpp"

namespace tapioca::machine {

namespace {

class Flat final : public Topology {
public:
    Flat(int nodes, Level link) : Topology(nodes, {std::move(link)}) {}

    [[nodiscard]] std::string_view kind() const override { return "flat"; }
    [[nodiscard]] std::vector<int> dimensions() const override { return {nodes()}; }
    [[nodiscard]] std::vector<int> coordinates(int node) const override { return {node}; }
    [[nodiscard]] std::vector<int> hops(int from, int to) const override { return {distance(from, to)}; }
    [[nodiscard]] int distance(int from, int to) const override { return from == to ? 0 : 2; }

    [[nodiscard]] std::vector<int> nearest(std::span<int const> places) const override
    {
        std::vector<int> result(static_cast<std::size_t>(nodes()), 2);
        for (int const place : places) result[place] = 0;
        return result;
    }

    [[nodiscard]] std::vector<double> costs(std::span<Source const> sources,
                                            std::span<Charge const> charges) const override
    {
        auto const own = per_node(sources, nodes());
        auto const all = total(own);
        std::vector<double> result;
        result.reserve(own.size());
        for (auto const& tally : own) {
            auto const others = all - tally;
            result.push_back(2 * others.sources * charges[0].per_hop_s + others.bytes * charges[0].per_byte_s);
        }
        return result;
    }
};

}  // namespace

std::shared_ptr<Topology const> make_flat(int nodes, Level link)
{
    return std::make_shared<Flat>(nodes, std::move(link));
}

}  // namespace tapioca::machine
