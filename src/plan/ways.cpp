#include "plan/ways.hpp"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "core/units.hpp"
#include "plan/predict_across_nodes.hpp"
#include "plan/predict_on_node.hpp"

namespace tapioca::plan {

std::string Alternative::name() const
{
    if (aggregators == 0) return "direct";
    if (is_left()) return "left to the MPI library";
    auto const number = fmt::format("{} aggregator{}", aggregators, aggregators == 1 ? "" : "s");
    return buffer_bytes == 0 ? number : fmt::format("{}, {} KiB", number, buffer_bytes / core::KiB);
}

Options Alternative::apply(Options options) const
{
    options.direct = aggregators == 0 ? Direct::always : Direct::never;
    if (aggregators > 0) options.nbaggr = options.nbaggr_read = aggregators;
    if (buffer_bytes > 0) options.buffersize = buffer_bytes;
    return options;
}

std::vector<int> numbers(Job const& job, int streams)
{
    auto const most = std::min(job.ranks, most_partitions);
    std::vector<int> result{std::min(streams, most), most};
    for (int number = 1; number <= most; number *= 2) result.push_back(number);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
}

namespace {

/// Smaller buffers give more overlap, larger ones fewer rounds. Which are better is not predicted.
void add_buffer_sizes(Job const& job, Route const& route, std::vector<Alternative>& ways)
{
    constexpr std::uint64_t factor = 4;
    constexpr std::uint64_t least = 4 * core::KiB;
    auto const taken = taken_by(route);
    bool const chosen = std::any_of(ways.begin(), ways.end(), [&](auto const& way) { return way.same_as(taken); });
    if (route.way == Way::direct || job.nodes > 1 || job.options.buffersize || !chosen) return;
    for (auto const bytes : {route.round_bytes * factor, route.round_bytes / factor})
        if (bytes >= least) ways.push_back({taken.aggregators, taken.seconds, bytes});
}

}  // namespace

std::vector<Alternative> alternatives(Job const& job, Route const& route, bool reading)
{
    auto const& options = job.options;
    auto const wish = options.direct.value_or(Direct::automatic);
    auto const asked = reading ? options.nbaggr_read.value_or(options.nbaggr.value_or(AggregatorCount::automatic))
                               : options.nbaggr.value_or(AggregatorCount::automatic);
    std::vector<Alternative> result;
    auto const direct = [&] {
        if (job.nodes > 1) return predict_direct(job, direct_flow(job, {}), reading).total();
        return reading ? direct_read_seconds(job) : direct_write_seconds(job);
    };
    if (wish != Direct::never) result.push_back({0, direct()});
    auto const seconds = [&](int count) {
        return reading ? aggregated_read_seconds(job, count) : aggregated_write_seconds(job, count);
    };
    auto const streams = reading ? job.storage.read_streams : job.storage.write_streams;
    if (wish != Direct::always && asked == AggregatorCount::automatic && job.nodes == 1)
        for (int const count : numbers(job, streams)) result.push_back({count, seconds(count)});
    add_buffer_sizes(job, route, result);
    std::stable_sort(result.begin(), result.end(), [](auto const& a, auto const& b) { return a.seconds < b.seconds; });
    return result;
}

std::string shape_of(Job const& job, bool reading)
{
    auto const& p = job.pattern;
    auto const class_of = [](std::uint64_t value) { return std::bit_width(value); };
    auto const slices = static_cast<std::uint64_t>((p.end - p.begin) / pattern::Summary::span_bytes + 1);
    return fmt::format("{} {} on {}, {} cores, {} ranks, {} nodes, {}, bytes {}, piece {}, slices {} of {}",
                       reading ? "read" : "write", job.storage.name, job.machine ? job.machine->name : "one node",
                       job.cores, job.ranks, job.nodes, p.dense() ? "dense" : "holes", class_of(p.bytes),
                       class_of(p.bytes / std::max<std::uint64_t>(1, p.pieces)), class_of(p.spans), class_of(slices));
}

Alternative taken_by(Route const& route)
{
    if (route.way == Way::direct) return {0, route.direct_s};
    return {route.aggregators, route.aggregated_s};
}

}  // namespace tapioca::plan
