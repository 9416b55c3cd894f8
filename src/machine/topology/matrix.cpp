#include "machine/topology/tally.hpp"

namespace tapioca::machine {

namespace {

class Matrix final : public Topology {
public:
    Matrix(std::vector<std::vector<int>> distances, Level link)
        : Topology(static_cast<int>(distances.size()), {std::move(link)}), distances_(std::move(distances))
    {
    }

    [[nodiscard]] std::string_view kind() const override { return "matrix"; }
    [[nodiscard]] std::vector<int> dimensions() const override { return {nodes()}; }
    [[nodiscard]] std::vector<int> coordinates(int node) const override { return {node}; }
    [[nodiscard]] std::vector<int> hops(int from, int to) const override { return {distances_[from][to]}; }
    [[nodiscard]] int distance(int from, int to) const override { return distances_[from][to]; }

    [[nodiscard]] std::vector<double> costs(std::span<Source const> sources,
                                            std::span<Charge const> charges) const override
    {
        auto const own = per_node(sources, nodes());
        std::vector<double> result(own.size(), 0);
        for (std::size_t from = 0; from < own.size(); ++from) {
            if (own[from].sources == 0) continue;
            for (std::size_t to = 0; to < own.size(); ++to)
                if (to != from)
                    result[to] += own[from].sources * distances_[from][to] * charges[0].per_hop_s +
                                  own[from].bytes * charges[0].per_byte_s;
        }
        return result;
    }

private:
    std::vector<std::vector<int>> distances_;
};

}  // namespace

std::shared_ptr<Topology const> make_matrix(std::vector<std::vector<int>> distances, Level link)
{
    return std::make_shared<Matrix>(std::move(distances), std::move(link));
}

}  // namespace tapioca::machine
