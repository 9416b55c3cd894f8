// CostModel: the cost of gathering a partition's data on a tier of a node, and of bringing it from there to the file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "machine/machine.hpp"

namespace tapioca::plan {

/// docs/model.md describes the models.
enum class Model {
    pipelined,     ///< the default: gathering and draining overlap, producers share the aggregator's link
    paper_2024,    ///< FGCS 2024: the sum over producers, with tiers
    cluster_2017,  ///< CLUSTER 2017: the sum over producers, topology alone
    poster,        ///< the slowest producer, topology alone
    report_2017,   ///< the report on Blue Gene/Q: as the poster, but a partition's nodes share the path to the file
};
std::optional<Model> model_named(std::string_view name);
char const* name(Model model);
/// The papers elect an aggregator among the nodes that have data of its partition.
inline bool elects_among_producers(Model model)
{
    return model != Model::pipelined;
}

struct Cost {
    double c1_s = 0;  ///< to the aggregator
    double c2_s = 0;  ///< from there to the file; 0 if the path is unknown
    double total_s = 0;
};

class CostModel {
public:
    /// The machine must outlive this object. `remote_storage`: the path to the file system crosses the network and is
    /// not described.
    CostModel(machine::Machine const& machine, Model model, bool remote_storage = false);

    /// The cost of gathering the data of `sources`, which lists each node once, on a tier of node `at` in `rounds`
    /// rounds.
    [[nodiscard]] Cost cost(std::span<machine::Source const> sources, int at, std::size_t tier, double rounds) const;
    /// The same for every node of the machine, with the topology's closed formula if the model allows it.
    [[nodiscard]] std::vector<Cost> costs(std::span<machine::Source const> sources, std::size_t tier,
                                          double rounds) const;

private:
    struct Charges {
        std::vector<machine::Charge> levels;  ///< cost for a remote producer
        double own_s = 0;                     ///< cost for a node's own data, whatever its size
        double own_per_byte_s = 0;
        double drain_per_byte_s = 0;  ///< cost of reading from the tier
    };
    [[nodiscard]] Charges charges(std::size_t tier, double rounds) const;
    /// The properties of a partition that do not depend on the candidate.
    struct Amount {
        double bytes = 0;
        double producers = 0;
        double rounds = 1;
    };
    [[nodiscard]] Cost combine(double gathered_s, double own_bytes, Amount const& amount, int at,
                               Charges const& charges) const;
    [[nodiscard]] double slowest(std::span<machine::Source const> sources, int at,
                                 std::span<machine::Charge const> levels) const;

    machine::Machine const& machine_;
    Model model_;
    bool remote_storage_;
    double memory_bandwidth_;  ///< bandwidth of the memory that holds the producers' data
};

}  // namespace tapioca::plan
