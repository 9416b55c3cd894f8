#include "plan/number.hpp"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "core/units.hpp"
#include "plan/align.hpp"
#include "plan/predict.hpp"
#include "plan/ways.hpp"

namespace tapioca::plan {

namespace {

constexpr int writers_per_server = 2;  // so that a server has the next stripe while one is on its way
constexpr std::uint64_t most_read_round = core::MiB;
constexpr int network_buffers = 8;  // a slow pair of nodes must not stop the others

int at_most(Job const& job)
{
    return std::min(job.ranks, most_partitions);
}

/// Messages carry a node's part of a round: rounds grow with the nodes, so that messages stay large.
std::uint64_t network_round(Job const& job, std::uint64_t round)
{
    if (job.nodes == 1) return round;
    return std::max(round, std::min<std::uint64_t>(16 * core::MiB, job.nodes * 128 * core::KiB));
}

int cores_for_writing(Job const& job)
{
    return job.cores * 3 / 8;
}

/// At least one for each node: one without would leave half of its link unused.
int on_all_nodes(Job const& job, int streams)
{
    auto const per_node = (std::max(streams, job.nodes) + job.nodes - 1) / job.nodes;
    return per_node * job.nodes;
}

/// The largest number up to `limit` of which all servers get the same share: a multiple or a divisor of theirs.
int even(int limit, int servers)
{
    if (limit >= servers) return limit / servers * servers;
    while (servers % limit != 0) --limit;
    return limit;
}

Number by_servers(Job const& job, int per_server, bool asked)
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

/// The number that is predicted to be the fastest; of equals the least.
Number by_prediction(Job const& job)
{
    auto const all = numbers(job, job.storage.write_streams);
    auto const seconds = [&](int count) { return aggregated_write_seconds(job, count); };
    return {*std::min_element(all.begin(), all.end(), [&](int a, int b) { return seconds(a) < seconds(b); }), ""};
}

/// What the target takes, on how many nodes, with which cores.
Number by_model(Job const& job)
{
    auto const& storage = job.storage;
    if (storage.stripe_bytes > 0 && storage.stripe_count > 0)
        return by_servers(job, job.options.aggr_per_ost.value_or(writers_per_server),
                          job.options.aggr_per_ost.has_value());
    if (job.nodes == 1 && !job.options.aggr_per_ost) return by_prediction(job);
    // Writers need cores, and pages can be populated only where all of them will be written.
    bool const one = storage.reserve == machine::Reserve::populate && !job.pattern.dense();
    auto const by_cores = one ? 1 : std::min(storage.write_streams, cores_for_writing(job));
    auto const streams = std::min(by_cores, job.ranks) < 3 ? 1 : by_cores;
    Number number{std::min(on_all_nodes(job, streams), at_most(job)), ""};
    if (storage.remote && storage.write_streams > 1 && storage.write_streams < number.count)
        number = {storage.write_streams,
                  fmt::format("{} aggregators: the file system takes no more at a time", storage.write_streams)};
    // Each further one takes memory, and a message from every node: there must be something to gather.
    auto const shares = std::max<std::uint64_t>(1, (job.pattern.bytes + least_round - 1) / least_round);
    if (job.nodes > 1 && shares < static_cast<std::uint64_t>(number.count))
        number = {static_cast<int>(shares), fmt::format("{} aggregator{}: there is no more than {} of data", shares,
                                                        shares == 1 ? "" : "s", core::format_bytes(job.pattern.bytes))};
    if (job.options.aggr_per_ost) number.why = "aggr_per_ost without effect: the file's servers are not known";
    return number;
}

/// The least power of two with which each aggregator's share fits its memory, as long as the share is more than a
/// block.
Number by_poster(Job const& job, std::uint64_t round)
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

Number as_asked(Job const& job, int asked)
{
    if (asked <= at_most(job)) return {asked, ""};
    return {at_most(job),
            job.ranks <= most_partitions
                ? fmt::format("{} aggregators asked for, {} ranks there are", asked, job.ranks)
                : fmt::format("{} aggregators asked for, {} are the most there can be", asked, most_partitions)};
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

Number writers(Job const& job)
{
    auto const asked = job.options.nbaggr.value_or(nbaggr_auto);
    if (asked == nbaggr_poster) return by_poster(job, full_write_round(job, false));
    return asked == nbaggr_auto ? by_model(job) : as_asked(job, asked);
}

Number readers(Job const& job)
{
    auto const asked = job.options.nbaggr_read.value_or(job.options.nbaggr.value_or(nbaggr_auto));
    if (asked == nbaggr_poster) return by_poster(job, full_read_round(job));
    if (asked != nbaggr_auto) return as_asked(job, asked);
    if (job.nodes > 1) return by_model(job);
    if (job.options.aggr_per_ost && job.storage.stripe_count > 0)
        return by_servers(job, *job.options.aggr_per_ost, true);
    return {std::min(job.storage.read_streams, at_most(job)), ""};
}

}  // namespace tapioca::plan
