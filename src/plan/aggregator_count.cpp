#include "plan/aggregator_count.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include <fmt/core.h>

#include "core/units.hpp"
#include "plan/align.hpp"
#include "plan/predict_across_nodes.hpp"
#include "plan/predict_on_node.hpp"
#include "plan/ways.hpp"

namespace tapioca::plan {

namespace {

constexpr int writers_per_server = 2;  // so that a server has the next stripe while one is on its way
constexpr int nodes_per_set = 512;     // the papers' two aggregators per server are for this many nodes
constexpr int paper_per_block = 16;    // the papers' number for a Pset, between 8 and 32
constexpr std::uint64_t most_read_round = core::MiB;
constexpr int network_buffers = 8;  // a slow pair of nodes must not stop the others

int at_most(Job const& job)
{
    return std::min(job.ranks, most_partitions);
}

/// A message carries a node's part of a round. Rounds grow with the number of nodes, so that messages stay large.
std::uint64_t network_round(Job const& job, std::uint64_t round)
{
    if (job.nodes == 1) return round;
    return std::max(round, std::min<std::uint64_t>(16 * core::MiB, job.nodes * 128 * core::KiB));
}

int cores_for_writing(Job const& job)
{
    return job.cores * 3 / 8;
}

/// At least one for each node: a node without an aggregator would leave half of its link unused.
int on_all_nodes(Job const& job, int streams)
{
    auto const per_node = (std::max(streams, job.nodes) + job.nodes - 1) / job.nodes;
    return per_node * job.nodes;
}

/// The largest number up to `limit` that gives all servers the same share: a multiple or a divisor of the number of
/// servers.
int even(int limit, int servers)
{
    if (limit >= servers) return limit / servers * servers;
    while (servers % limit != 0) --limit;
    return limit;
}

ChosenCount by_servers(Job const& job, int per_server, bool asked)
{
    auto const servers = job.storage.stripe_count;
    auto const useful = static_cast<int>(std::min<std::int64_t>(std::int64_t{servers} * per_server, at_most(job)));
    if (asked) return {useful, fmt::format("{} aggregators for {} servers: aggr_per_ost", useful, servers)};
    auto const stripes = job.pattern.bytes / static_cast<std::uint64_t>(unit_of(job.storage)) + 1;
    auto const by_cores = std::int64_t{job.nodes} * std::max(1, cores_for_writing(job));
    auto const limit = std::min(
        {std::int64_t{useful}, by_cores, static_cast<std::int64_t>(std::min<std::uint64_t>(stripes, most_partitions))});
    auto const count = even(static_cast<int>(limit), servers);
    return {count, fmt::format("{} aggregators: {} servers, {} nodes, {} of data in stripes of {}", count, servers,
                               job.nodes, core::format_bytes(job.pattern.bytes),
                               core::format_bytes(static_cast<std::uint64_t>(unit_of(job.storage))))};
}

/// Numbers worth trying on several nodes: powers of two, multiples of nodes and servers, and the number that the
/// storage takes. All servers get the same share and, if there is more than one aggregator per node, so do all nodes.
std::set<int> ladder(Job const& job, bool reading)
{
    auto const unit = unit_of(job.storage);
    bool const striped = job.storage.stripe_bytes > 0 && job.storage.stripe_count > 0;
    auto const units = core::divide_up(std::max<std::int64_t>(1, job.pattern.end - job.pattern.begin), unit);
    auto const shares = core::divide_up(static_cast<std::int64_t>(job.pattern.bytes), least_round);
    auto const by_cores = std::int64_t{job.nodes} * std::max(1, cores_for_writing(job));
    auto const most = std::max<std::int64_t>(1, std::min({std::int64_t{at_most(job)}, units, shares, by_cores}));
    std::set<int> numbers;
    auto const add = [&](std::int64_t number) {
        if (number > job.nodes && !striped) number = core::divide_up(number, job.nodes) * job.nodes;
        number = std::min(number, most);
        numbers.insert(striped ? even(static_cast<int>(number), job.storage.stripe_count) : static_cast<int>(number));
    };
    for (std::int64_t step = 1; step <= 2 * most; step *= 2) {
        add(step);
        add(step * job.nodes);
        if (striped) add(step * job.storage.stripe_count);
    }
    add(static_cast<std::int64_t>(streams_of(job, reading)));
    numbers.insert(static_cast<int>(most));
    return numbers;
}

/// The least number whose predicted time is near the best, since each aggregator takes memory and messages.
ChosenCount by_prediction_across(Job const& job, bool reading)
{
    constexpr double near = 1.05;
    std::vector<std::pair<int, double>> tried;
    double least = 0;
    for (int const number : ladder(job, reading)) {
        double seconds = 0;  // unknown so far
        for (bool const scattered : {true, false})
            seconds += predict_aggregated(job, even_flow(job, number, reading, scattered), reading).total() / 2;
        least = tried.empty() ? seconds : std::min(least, seconds);
        tried.emplace_back(number, seconds);
    }
    auto const best =
        std::find_if(tried.begin(), tried.end(), [&](auto const& one) { return one.second <= near * least; });
    return {best->first, fmt::format("of 1 to {} aggregators, larger numbers are not predicted to be faster by a "
                                     "twentieth",
                                     tried.back().first)};
}

/// The number that is predicted to be the fastest; among equals, the least.
ChosenCount by_prediction(Job const& job)
{
    auto const all = numbers(job, job.storage.write_streams);
    auto const seconds = [&](int count) { return aggregated_write_seconds(job, count); };
    return {*std::min_element(all.begin(), all.end(), [&](int a, int b) { return seconds(a) < seconds(b); }), ""};
}

/// By the target, the number of nodes and their cores.
ChosenCount by_model(Job const& job, bool reading)
{
    auto const& storage = job.storage;
    bool const by_ost = job.options.aggr_per_ost && storage.stripe_count > 0;
    if (job.nodes > 1 && links_known(job) && !by_ost) {
        auto number = by_prediction_across(job, reading);
        if (job.options.aggr_per_ost) number.why = "aggr_per_ost without effect: the file's servers are not known";
        return number;
    }
    if (storage.stripe_bytes > 0 && storage.stripe_count > 0)
        return by_servers(job, job.options.aggr_per_ost.value_or(writers_per_server),
                          job.options.aggr_per_ost.has_value());
    if (job.nodes == 1 && !job.options.aggr_per_ost) return by_prediction(job);
    // Writers need cores, and pages can be populated only if all of them will be written.
    bool const one = storage.reserve == machine::Reserve::populate && !job.pattern.dense();
    auto const by_cores = one ? 1 : std::min(storage.write_streams, cores_for_writing(job));
    auto const streams = std::min(by_cores, job.ranks) < 3 ? 1 : by_cores;
    ChosenCount number{std::min(on_all_nodes(job, streams), at_most(job)), ""};
    if (storage.remote && storage.write_streams > 1 && storage.write_streams < number.count)
        number = {storage.write_streams,
                  fmt::format("{} aggregators: the file system takes no more at a time", storage.write_streams)};
    // Each further aggregator takes memory and a message from every node, so there must be enough data to gather.
    auto const shares = std::max<std::uint64_t>(1, (job.pattern.bytes + least_round - 1) / least_round);
    if (job.nodes > 1 && shares < static_cast<std::uint64_t>(number.count))
        number = {static_cast<int>(shares), fmt::format("{} aggregator{}: there is no more than {} of data", shares,
                                                        shares == 1 ? "" : "s", core::format_bytes(job.pattern.bytes))};
    if (job.options.aggr_per_ost) number.why = "aggr_per_ost without effect: the file's servers are not known";
    return number;
}

/// The least power of two with which each aggregator's share fits into its memory, as long as the share is more than a
/// block.
ChosenCount by_poster(Job const& job, std::uint64_t round)
{
    auto memory = core::multiply(static_cast<std::uint64_t>(buffers(job)), job.options.buffersize.value_or(round));
    if (job.options.memory) memory = std::min(memory, *job.options.memory);
    auto const shares = job.pattern.bytes / memory + (job.pattern.bytes % memory == 0 ? 0 : 1);
    auto const most = std::bit_floor(static_cast<std::uint64_t>(at_most(job)));
    auto count = shares <= 1 ? 1 : shares > most ? most : std::bit_ceil(shares);
    while (count > 1 && job.pattern.bytes / count <= static_cast<std::uint64_t>(job.storage.block_bytes)) count /= 2;
    return {
        static_cast<int>(count),
        fmt::format("{} aggregator{} by the poster's formula: {} of data, {} of memory each{}", count,
                    count == 1 ? "" : "s", core::format_bytes(job.pattern.bytes), core::format_bytes(memory),
                    shares > most ? fmt::format("; it asks for {}, ranks allow no more", std::bit_ceil(shares)) : "")};
}

/// The number of blocks of nodes with their own gateways (Psets) that the job uses; 0: there are no such blocks.
int blocks_of(Job const& job)
{
    if (!job.machine || job.machine->gateways.block == 0) return 0;
    std::set<int> blocks;
    for (int node = 0; node < job.nodes; ++node) {
        auto const i = static_cast<std::size_t>(node);
        blocks.insert((i < job.where.size() ? job.where[i] : node) / job.machine->gateways.block);
    }
    return static_cast<int>(blocks.size());
}

/// The papers' rules: two for each server and 512 nodes, 16 for each Pset.
ChosenCount by_paper(Job const& job, bool reading)
{
    auto const sets = core::divide_up(job.nodes, nodes_per_set);
    auto const per_server = job.options.aggr_per_ost.value_or(writers_per_server);
    auto const servers = job.storage.stripe_bytes > 0 ? job.storage.stripe_count : 0;
    auto const blocks = blocks_of(job);
    if (servers == 0 && blocks == 0) {
        auto number = by_model(job, reading);
        number.why = fmt::format("{} aggregator{}, as auto: the papers' rules need the file's servers, or Psets",
                                 number.count, number.count == 1 ? "" : "s");
        return number;
    }
    auto const wanted = servers > 0 ? sets * per_server * servers : std::int64_t{blocks} * paper_per_block;
    auto const count = static_cast<int>(std::min<std::int64_t>(wanted, at_most(job)));
    auto const rule = servers > 0
                          ? fmt::format("{} for each of {} servers and {} nodes", per_server, servers, nodes_per_set)
                          : fmt::format("{} for each of {} blocks of nodes", paper_per_block, blocks);
    return {count, fmt::format("{} aggregators by the papers' rule: {}", count, rule)};
}

ChosenCount as_asked(Job const& job, int asked)
{
    if (asked <= at_most(job)) return {asked, ""};
    return {at_most(job),
            job.ranks <= most_partitions
                ? fmt::format("{} aggregators asked for, but there are only {} ranks", asked, job.ranks)
                : fmt::format("{} aggregators asked for, but there can be at most {}", asked, most_partitions)};
}

}  // namespace

int buffers(Job const& job)
{
    return job.options.buffers.value_or(job.nodes > 1 ? network_buffers : 2);
}

std::uint64_t full_write_round(Job const& job, bool populates)
{
    if (job.storage.stripe_bytes > 0) return stripe_round(job.storage);
    return network_round(job, populates ? job.storage.parallel_write_round_bytes : job.storage.write_round_bytes);
}

std::uint64_t full_read_round(Job const& job)
{
    return job.storage.stripe_bytes > 0 ? stripe_round(job.storage) : network_round(job, most_read_round);
}

namespace {

ChosenCount number_of(Job const& job, AggregatorCount asked, bool reading)
{
    if (asked == AggregatorCount::poster)
        return by_poster(job, reading ? full_read_round(job) : full_write_round(job, false));
    if (asked == AggregatorCount::paper) return by_paper(job, reading);
    auto const number = asked.number();
    return number ? as_asked(job, *number) : by_model(job, reading);
}

}  // namespace

ChosenCount writers(Job const& job)
{
    return number_of(job, job.options.nbaggr.value_or(AggregatorCount::automatic), false);
}

ChosenCount readers(Job const& job)
{
    auto const asked = job.options.nbaggr_read.value_or(job.options.nbaggr.value_or(AggregatorCount::automatic));
    if (asked != AggregatorCount::automatic || job.nodes > 1) return number_of(job, asked, true);
    if (job.options.aggr_per_ost && job.storage.stripe_count > 0)
        return by_servers(job, *job.options.aggr_per_ost, true);
    return {std::min(job.storage.read_streams, at_most(job)), ""};
}

}  // namespace tapioca::plan
