#include "plan/cost.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace tapioca::plan {

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();
constexpr std::array<std::pair<std::string_view, Model>, 5> models = {{{"default", Model::pipelined},
                                                                       {"paper-2024", Model::paper_2024},
                                                                       {"cluster-2017", Model::cluster_2017},
                                                                       {"poster", Model::poster},
                                                                       {"report-2017", Model::report_2017}}};

/// True if C1 is that of the slowest producer, and not the sum over producers.
bool slowest_counts(Model model)
{
    return model == Model::poster || model == Model::report_2017;
}

double bytes_at(std::span<machine::Source const> sources, int node)
{
    double bytes = 0;
    for (auto const& source : sources)
        if (source.node == node) bytes += source.bytes;
    return bytes;
}

double producers_of(std::span<machine::Source const> sources)
{
    return static_cast<double>(
        std::count_if(sources.begin(), sources.end(), [](auto const& source) { return source.bytes > 0; }));
}

double bytes_of(std::span<machine::Source const> sources)
{
    double bytes = 0;
    for (auto const& source : sources) bytes += source.bytes;
    return bytes;
}

}  // namespace

std::optional<Model> model_named(std::string_view name)
{
    for (auto const& [known, model] : models)
        if (known == name) return model;
    return std::nullopt;
}

char const* name(Model model)
{
    return models[static_cast<std::size_t>(model)].first.data();
}

CostModel::CostModel(machine::Machine const& machine, Model model, bool remote_storage)
    : machine_(machine), model_(model), remote_storage_(remote_storage), memory_bandwidth_(unlimited)
{
    for (auto const& tier : machine.tiers)
        if (machine::is_ordinary(tier)) memory_bandwidth_ = tier.read_bandwidth.value;
}

CostModel::Charges CostModel::charges(std::size_t tier, double rounds) const
{
    auto const& traits = machine_.tiers[tier];
    auto const latency_s = traits.latency_s.value;
    auto const into_tier = std::min(traits.write_bandwidth.value, memory_bandwidth_);
    Charges result;
    for (auto const& level : machine_.topology->levels()) switch (model_) {
        case Model::paper_2024:
            result.levels.push_back({std::max(level.latency_s, latency_s), 1 / std::min(level.bandwidth, into_tier)});
            break;
        case Model::cluster_2017:
        case Model::poster:
        case Model::report_2017: result.levels.push_back({level.latency_s, 1 / level.bandwidth}); break;
        case Model::pipelined:
            // Each producer sends a message per round; data that arrives is then copied into the tier.
            result.levels.push_back({level.latency_s * rounds, 1 / level.bandwidth + 1 / into_tier});
            break;
        }
    if (model_ != Model::pipelined && model_ != Model::paper_2024) return result;  // these models have no tiers
    result.own_s = latency_s * (model_ == Model::pipelined ? rounds : 1);
    result.own_per_byte_s = 1 / into_tier;
    if (model_ == Model::pipelined) result.drain_per_byte_s = 1 / traits.read_bandwidth.value;
    return result;
}

Cost CostModel::combine(double gathered_s, double own_bytes, Amount const& amount, int at, Charges const& charges) const
{
    auto const [bytes, producers, rounds] = amount;
    auto const share = model_ == Model::report_2017 ? std::max(1.0, producers) : 1.0;
    Cost cost;
    cost.c1_s = gathered_s + own_bytes * charges.own_per_byte_s;
    bool const pipelined = model_ == Model::pipelined;
    if (pipelined ? bytes > 0 : own_bytes > 0) cost.c1_s += charges.own_s;
    cost.c2_s = bytes * charges.drain_per_byte_s;
    auto const& gateways = machine_.gateways;
    if (!gateways.hops.empty()) {
        auto const hops = gateways.hops[static_cast<std::size_t>(at)];
        cost.c2_s = std::max(cost.c2_s, bytes / (share * gateways.link.bandwidth)) +
                    gateways.link.latency_s * hops * (pipelined ? rounds : 1);
    }
    if (pipelined && gateways.hops.empty() && remote_storage_)
        cost.c2_s = std::max(cost.c2_s, bytes / machine_.topology->levels().front().bandwidth);
    // One round is gathered before draining begins, or the last round is drained after gathering ends; otherwise the
    // two overlap.
    cost.total_s = pipelined ? std::max(cost.c1_s, cost.c2_s) + std::min(cost.c1_s, cost.c2_s) / std::max(1.0, rounds)
                             : cost.c1_s + cost.c2_s;
    return cost;
}

double CostModel::slowest(std::span<machine::Source const> sources, int at,
                          std::span<machine::Charge const> levels) const
{
    double most = 0;
    for (auto const& source : sources) most = std::max(most, machine_.topology->cost(source, at, levels));
    return most;
}

Cost CostModel::cost(std::span<machine::Source const> sources, int at, std::size_t tier, double rounds) const
{
    auto const price = charges(tier, rounds);
    double gathered_s = 0;
    if (slowest_counts(model_))
        gathered_s = slowest(sources, at, price.levels);
    else
        for (auto const& source : sources) gathered_s += machine_.topology->cost(source, at, price.levels);
    return combine(gathered_s, bytes_at(sources, at), {bytes_of(sources), producers_of(sources), rounds}, at, price);
}

std::vector<Cost> CostModel::costs(std::span<machine::Source const> sources, std::size_t tier, double rounds) const
{
    auto const price = charges(tier, rounds);
    auto const nodes = machine_.topology->nodes();
    std::vector<double> gathered_s;
    if (slowest_counts(model_))
        for (int at = 0; at < nodes; ++at) gathered_s.push_back(slowest(sources, at, price.levels));
    else
        gathered_s = machine_.topology->costs(sources, price.levels);
    std::vector<double> own(static_cast<std::size_t>(nodes), 0);
    for (auto const& source : sources) own[static_cast<std::size_t>(source.node)] += source.bytes;
    Amount const amount{bytes_of(sources), producers_of(sources), rounds};
    std::vector<Cost> result;
    result.reserve(own.size());
    for (int at = 0; at < nodes; ++at) {
        auto const node = static_cast<std::size_t>(at);
        result.push_back(combine(gathered_s[node], own[node], amount, at, price));
    }
    return result;
}

}  // namespace tapioca::plan
