#include "plan/predict_across_nodes.hpp"

#include <algorithm>
#include <numeric>

#include "core/index.hpp"
#include "core/units.hpp"
#include "plan/aggregator_count.hpp"
#include "plan/align.hpp"
#include "plan/predict_on_node.hpp"

namespace tapioca::plan {

namespace {

using core::as_double;
using core::index;

constexpr double start_writing_s = 60e-6;  // waking the I/O thread, the first round's filling
constexpr double start_reading_s = 20e-6;

/// A call to a file system that other machines serve, including a lock, but without the path to it. Assumed.
constexpr double remote_call_s = 200e-6;

/// If the links are unknown, large pieces that cross them are charged at the rate of slow links. Large pieces lose
/// little by going straight to the file, but very much by crossing slow links.
constexpr double cautious_bandwidth = 125e6;
constexpr double cautious_messages_s = 200e-6;  // messages of a gathered step, there and back
constexpr std::uint64_t large_piece = 256 * core::KiB;
constexpr std::uint64_t large_local_piece = 16 * core::KiB;  // for hosts on one machine, which share its file system

int machine_node(Job const& job, std::size_t node)
{
    return node < job.where.size() ? job.where[node] : static_cast<int>(node);
}

/// Whether data that crosses unknown links is charged as if they were slow.
bool is_cautious(Job const& job)
{
    auto const large = job.storage.remote ? large_piece : large_local_piece;
    return !links_known(job) && job.pattern.bytes >= job.pattern.pieces * large;
}

double link_bandwidth(Job const& job)
{
    if (is_cautious(job)) return cautious_bandwidth;
    return job.machine ? job.machine->topology->levels().front().bandwidth : cautious_bandwidth;
}

machine::Passage passage_of(Job const& job, Flow const& flow, double factor)
{
    if (!job.machine || job.machine->gateways.hops.empty()) return {};
    std::vector<double> bytes(index(job.machine->topology->nodes()), 0);
    for (std::size_t node = 0; node < flow.node_bytes.size(); ++node)
        bytes[index(machine_node(job, node))] += flow.node_bytes[node] * factor;
    return machine::passage(*job.machine, bytes, job.storage.stripe_count);
}

/// Seconds of a message from another node, averaged over some nodes that send to one of them.
double message_seconds(Job const& job)
{
    if (!job.machine) return 0;
    auto const& topology = *job.machine->topology;
    std::vector<machine::Charge> latencies;
    for (auto const& level : topology.levels()) latencies.push_back({level.latency_s, 0});
    constexpr int samples = 16;
    auto const to = machine_node(job, index(job.nodes / 2));
    double sum = 0;
    for (int i = 0; i < samples; ++i)
        sum += topology.cost({machine_node(job, index(job.nodes) * index(i) / samples), 1}, to, latencies);
    return sum / samples;
}

/// The number of processes of the busiest node that access the file, if they are spread evenly.
double accessing_on_node(Flow const& flow)
{
    return static_cast<double>(core::divide_up(flow.accessing, std::max(1, flow.nodes_used())));
}

/// The number of blocks or stripes that the step touches.
std::int64_t units_of(Job const& job)
{
    auto const unit = unit_of(job.storage);
    return std::max<std::int64_t>(1, core::divide_up(job.pattern.end, unit) - job.pattern.begin / unit);
}

/// One stripe more if partitions of this many stripes would begin on the same servers (plan/align.hpp).
std::int64_t staggered(Job const& job, std::int64_t stripes)
{
    bool const striped = job.storage.stripe_bytes == unit_of(job.storage) && job.storage.stripe_count > 1;
    return striped && std::gcd(stripes, std::int64_t{job.storage.stripe_count}) > 1 ? 1 : 0;
}

/// Bytes of a round, according to how buffers are chosen.
double round_of(Job const& job, int aggregators, bool reading)
{
    auto const full = reading ? full_read_round(job) : full_write_round(job, false);
    auto const least = job.storage.stripe_bytes > 0 ? full : std::min(least_round, full);
    auto const quarter = job.pattern.bytes / (4 * static_cast<std::uint64_t>(aggregators));
    return as_double(job.options.buffersize.value_or(std::clamp(quarter, least, full)));
}

/// The time for `factor` times the step's bytes with all streams that write at a time, or for the busiest node's bytes
/// with its own streams.
double storage_write_seconds(Job const& job, Flow const& flow, double factor, bool gathered)
{
    auto const& s = job.storage;
    auto const bytes = as_double(job.pattern.bytes) * factor;
    auto const on_node = accessing_on_node(flow);
    if (s.each_node) return flow.most_bytes() * factor / (on_node <= 1 ? s.write_bw : s.contended_write_bw);
    if (flow.accessing <= 1) return bytes / s.write_bw;
    if (gathered && populates(job, flow.accessing))
        return bytes / (s.parallel_write_bw * std::min(1.0, static_cast<double>(flow.accessing) / s.write_streams));
    if (!s.remote) return bytes / s.contended_write_bw;
    auto const stream_bw = s.contended_write_bw / s.write_streams;
    auto const together_s = bytes / (stream_bw * std::min<double>(flow.accessing, streams_of(job, false)));
    return std::max(together_s, flow.most_bytes() * factor / (stream_bw * on_node));
}

/// All ranks together read `volume` bytes; the busiest node's part is limited by its cores.
double storage_read_seconds(Job const& job, Flow const& flow, double volume)
{
    auto const& s = job.storage;
    auto const factor = volume / std::max(1.0, as_double(job.pattern.bytes));
    auto const on_node = std::min<double>(accessing_on_node(flow), std::min(s.read_streams, std::max(1, job.cores)));
    auto const node_s = flow.most_bytes() * factor / std::min(most_shared_read_bw, s.read_bw * on_node);
    if (s.each_node) return node_s;
    return std::max(node_s, volume / (s.read_bw * std::min<double>(flow.accessing, streams_of(job, true))));
}

/// One call of direct access; for a remote file system, including the path from the farthest node.
double direct_call(Job const& job)
{
    if (!job.storage.remote) return job.storage.call_s;
    double way_s = 0;
    if (job.machine && !job.machine->gateways.hops.empty())
        for (std::size_t node = 0; node < index(job.nodes); ++node)
            way_s = std::max(way_s, job.machine->gateways.link.latency_s *
                                        job.machine->gateways.hops[index(machine_node(job, node))]);
    return std::max(job.storage.call_s, remote_call_s) + way_s;
}

/// The time for the calls of ranks that access the file themselves. A file system of one machine writes a file under
/// one lock.
double direct_calls(Job const& job, bool reading)
{
    auto const& s = job.storage;
    auto const load = load_of(job);
    auto const rank = as_double(load.most_pieces) * direct_call(job);
    if (reading) return rank * crowding(job, load);
    bool const alone = job.pattern.ranks_with_data <= 1;
    auto const pieces = s.remote ? load.pieces : job.pattern.pieces;
    return std::max(s.remote ? rank : 0.0, as_double(pieces) * (alone ? s.call_s : s.contended_call_s));
}

}  // namespace

bool links_known(Job const& job)
{
    return job.machine && !job.machine->links_assumed;
}

double Flow::most_bytes() const
{
    return node_bytes.empty() ? 0 : *std::max_element(node_bytes.begin(), node_bytes.end());
}

int Flow::nodes_used() const
{
    return static_cast<int>(
        std::count_if(node_bytes.begin(), node_bytes.end(), [](double bytes) { return bytes > 0; }));
}

Flow even_flow(Job const& job, int aggregators, bool reading, bool scattered)
{
    Flow flow;
    flow.node_bytes.assign(index(job.nodes), 0);
    flow.accessing = aggregators;
    // In whole blocks or stripes; some aggregators have one more than others.
    auto const units = units_of(job);
    auto const each = as_double(job.pattern.bytes) / static_cast<double>(units);
    auto const most = std::min(units, core::divide_up(units, aggregators) + staggered(job, units / aggregators));
    for (std::int64_t i = 0; i < aggregators; ++i)
        flow.node_bytes[static_cast<std::size_t>(i * job.nodes / aggregators)] +=
            each * static_cast<double>(i == 0 ? most : units / aggregators + (i < units % aggregators ? 1 : 0));
    auto const share = each * static_cast<double>(most);
    auto const rounds = std::max(1.0, share / round_of(job, aggregators, reading));
    auto const on_node = static_cast<double>(core::divide_up(aggregators, job.nodes));
    auto const sources = std::max(1.0, static_cast<double>(job.nodes) / aggregators);  // of neighbouring data
    auto const senders = std::min<double>(job.nodes - 1, as_double(job.pattern.pieces) / aggregators + 1);
    auto const message_s = rounds * message_seconds(job);
    flow.links_s = scattered ? on_node * (share / link_bandwidth(job) + senders * message_s)
                             : share * (1 - 1 / sources) / link_bandwidth(job) +
                                   std::min(2.0, on_node) * std::max(1.0, sources - 1) * message_s;
    return flow;
}

namespace {

/// The time that links shared by switches take for the data of all nodes; 0 if the number of links is unknown.
double shared_links_seconds(Job const& job, Route const& route, std::vector<Weight> const& weights)
{
    if (!job.machine || !job.machine->topology->has_shared_links()) return 0;
    std::vector<machine::Delivery> deliveries;
    for (auto const& weight : weights)
        for (auto p = weight.begin; p < weight.end; ++p)
            deliveries.push_back({machine_node(job, index(weight.node)),
                                  machine_node(job, index(route.aggregator_places[p].node)),
                                  as_double(weight.bytes_in(p))});
    return job.machine->topology->shared_seconds(deliveries);
}

}  // namespace

Flow placed_flow(Job const& job, Route const& route, std::vector<Weight> const& weights)
{
    Flow flow;
    flow.node_bytes.assign(index(job.nodes), 0);
    flow.accessing = static_cast<int>(route.aggregator_places.size());
    for (auto const& weight : weights)
        for (auto p = weight.begin; p < weight.end; ++p)
            flow.node_bytes[index(route.aggregator_places[p].node)] += as_double(weight.bytes_in(p));
    auto const& network = route.network;
    flow.links_s = std::max(as_double(std::max(network.most_in_bytes, network.most_out_bytes)) / link_bandwidth(job),
                            shared_links_seconds(job, route, weights));
    if (model_of(job) != Model::pipelined) return flow;  // the papers' costs rank places but are not times
    std::vector<double> busy(index(job.nodes), 0);
    for (auto const& aggregator_place : route.aggregator_places)
        busy[index(aggregator_place.node)] += aggregator_place.cost.total_s;
    flow.links_s = std::max(flow.links_s, *std::max_element(busy.begin(), busy.end()));
    return flow;
}

Flow direct_flow(Job const& job, std::vector<Weight> const& weights)
{
    Flow flow;
    flow.node_bytes.assign(index(job.nodes), 0);
    flow.accessing = static_cast<int>(std::max<std::uint64_t>(1, job.pattern.ranks_with_data));
    for (auto const& weight : weights) flow.node_bytes[index(weight.node)] += as_double(weight.bytes);
    if (!weights.empty()) return flow;
    auto const most = as_double(job.pattern.most_bytes) * static_cast<double>(core::divide_up(job.ranks, job.nodes));
    auto left = as_double(job.pattern.bytes);
    for (auto& bytes : flow.node_bytes) {
        bytes = std::min(left, most);
        left -= bytes;
    }
    return flow;
}

double Prediction::total() const
{
    return ranks_s + std::max({copies_s, links_s, gateways_s, storage_s});
}

std::vector<Candidate> Prediction::parts() const
{
    return {{"ranks", ranks_s + copies_s}, {"links", links_s}, {"gateways", gateways_s}, {"file system", storage_s}};
}

Prediction predict_aggregated(Job const& job, Flow const& flow, bool reading)
{
    auto const load = load_of(job);
    Prediction result;
    auto const copies = copy_seconds(job, load);
    result.ranks_s = reading ? start_reading_s + copies : start_writing_s;
    result.copies_s = reading ? 0 : copies;
    auto const volume = reading ? read_volume(job, flow.accessing) : as_double(job.pattern.bytes);
    auto const factor = volume / std::max(1.0, as_double(job.pattern.bytes));
    result.links_s = flow.links_s;
    if (is_cautious(job)) result.links_s += cautious_messages_s;
    if (job.storage.remote) result.links_s = std::max(result.links_s, flow.most_bytes() * factor / link_bandwidth(job));
    result.passage = passage_of(job, flow, factor);
    result.gateways_s = result.passage.seconds;
    result.storage_s = reading ? storage_read_seconds(job, flow, volume) : storage_write_seconds(job, flow, 1, true);
    return result;
}

Prediction predict_direct(Job const& job, Flow const& flow, bool reading)
{
    auto const& s = job.storage;
    auto const bytes = std::max(1.0, as_double(job.pattern.bytes));
    auto const factor = 1 + partial_bytes(job, reading) / bytes;
    Prediction result;
    result.ranks_s = direct_calls(job, reading);
    if (s.remote) result.links_s = flow.most_bytes() * factor / link_bandwidth(job);
    result.passage = passage_of(job, flow, factor);
    result.gateways_s = result.passage.seconds;
    if (!reading) {
        result.storage_s = storage_write_seconds(job, flow, factor, false);
        return result;
    }
    auto const load = load_of(job);
    result.storage_s = as_double(load.most_bytes) * factor / s.read_bw * crowding(job, load);
    auto const together_bw = s.read_bw * std::min<double>(flow.accessing, streams_of(job, true));
    if (!s.each_node) result.storage_s = std::max(result.storage_s, bytes * factor / together_bw);
    return result;
}

double partial_bytes(Job const& job, bool reading)
{
    auto const& s = job.storage;
    if ((!s.remote && s.stripe_bytes == 0) || job.pattern.ranks_with_data <= 1) return 0;
    auto const unit = static_cast<std::uint64_t>(reading ? s.block_bytes : std::max(s.block_bytes, s.stripe_bytes));
    if (job.pattern.granule() % unit == 0) return 0;
    // Where one piece ends and another begins, they share a block. A reader moves all of that block. A writer takes the
    // block's lock from the other writer, which stores the block first, and then reads it.
    return as_double(job.pattern.pieces) * as_double(unit) * (reading ? 1 : 2);
}

double streams_of(Job const& job, bool reading)
{
    auto const& s = job.storage;
    auto const streams = reading ? s.read_streams : s.write_streams;
    auto const shares = s.share_nodes > 0 ? static_cast<double>(job.nodes) / s.share_nodes : 1;
    return std::max(1.0, shares) * streams;
}

}  // namespace tapioca::plan
