#include "plan/plan.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "core/index.hpp"
#include "core/units.hpp"
#include "plan/aggregator_count.hpp"
#include "plan/align.hpp"
#include "plan/memory.hpp"
#include "plan/predict_across_nodes.hpp"
#include "plan/predict_on_node.hpp"

namespace tapioca::plan {

namespace {

constexpr std::uint64_t most_network_round = 512 * core::MiB;  // MPI counts bytes with an int

using core::as_double;

/// A direct access smaller than a block moves the whole block; it is better if one reader does this for all.
bool pieces_fill_blocks(Job const& job)
{
    return job.pattern.bytes >= job.pattern.pieces * static_cast<std::uint64_t>(job.storage.block_bytes);
}

/// Several writers in one stripe compete for its lock.
bool pieces_fill_stripes(Job const& job)
{
    return job.pattern.bytes >= job.pattern.pieces * static_cast<std::uint64_t>(job.storage.stripe_bytes);
}

std::vector<int> spread(int aggregators, int ranks)
{
    std::vector<int> result;
    result.reserve(static_cast<std::size_t>(aggregators));
    for (int i = 0; i < aggregators; ++i)
        result.push_back(static_cast<int>(static_cast<std::int64_t>(i) * ranks / aggregators));
    return result;
}

/// The `i`-th cut between partitions of whole blocks or stripes; their sizes differ by at most one of these.
std::int64_t even_cut(Job const& job, std::int64_t i, std::int64_t partitions)
{
    auto const unit = unit_of(job.storage);
    auto const first = job.pattern.begin / unit;
    auto const units = core::divide_up(job.pattern.end, unit) - first;
    return (first + units / partitions * i + units % partitions * i / partitions) * unit;
}

/// Cuts at which the histogram has i/n of all bytes, on boundaries of blocks or stripes, staggered over the servers.
std::vector<std::int64_t> balanced_cuts(Job const& job, int partitions, std::vector<std::uint64_t> histogram)
{
    bool const even = histogram.empty();
    if (even) histogram = {job.pattern.bytes};
    auto const begin = job.pattern.begin;
    auto const end = job.pattern.end;
    auto const unit = unit_of(job.storage);
    std::vector<std::int64_t> cuts{begin};
    auto const bins = static_cast<std::int64_t>(histogram.size());
    auto const width = std::max<std::int64_t>(1, core::divide_up(end - begin, bins));
    std::size_t bin = 0;
    std::uint64_t before = 0;  // bytes in the bins before `bin`
    for (int i = 1; i < partitions; ++i) {
        auto const wanted =
            static_cast<std::uint64_t>(as_double(job.pattern.bytes) * i / static_cast<double>(partitions));
        while (bin < histogram.size() && before + histogram[bin] < wanted) before += histogram[bin++];
        auto const inside =
            bin < histogram.size() && histogram[bin] > 0 ? as_double(wanted - before) / as_double(histogram[bin]) : 0.0;
        auto const at = begin + static_cast<std::int64_t>(bin) * width +
                        static_cast<std::int64_t>(inside * static_cast<double>(width));
        auto const near = job.nodes > 1 && at <= end - unit / 2 ? at + unit / 2 : at;  // the nearest boundary
        auto const cut = job.nodes > 1 && even ? even_cut(job, i, partitions) : core::align_down(near, unit);
        cuts.push_back(std::clamp(cut, cuts.back(), end));
    }
    cuts.push_back(end);
    constexpr int rows_across = 16;  // aggregators of several nodes should finish at the same time
    return stagger(std::move(cuts), unit, job.storage.stripe_bytes == unit ? job.storage.stripe_count : 0,
                   job.nodes > 1 ? rows_across : 1);
}

std::uint64_t block(Job const& job)
{
    return static_cast<std::uint64_t>(job.storage.block_bytes);
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/// Chooses buffers by the options or the amount of data: a few rounds each, so that filling and draining overlap. In a
/// striped file, rounds are stripes.
void choose_buffers(Job const& job, Route& route, std::uint64_t full_round)
{
    route.unit = unit_of(job.storage);
    route.buffers = buffers(job);
    auto const rounds = 4 * static_cast<std::uint64_t>(route.aggregators);
    bool const striped = job.storage.stripe_bytes > 0;
    auto const least = striped ? full_round : std::min(least_round, full_round);
    route.round_bytes = job.options.buffersize.value_or(std::clamp(job.pattern.bytes / rounds, least, full_round));
    route.round_bytes = round_up(route.round_bytes, block(job));
    // The most that a partition may have, wherever the step is shifted to.
    auto const all = round_up(
        static_cast<std::uint64_t>(job.pattern.end - job.pattern.begin) + static_cast<std::uint64_t>(route.unit),
        std::max(block(job), static_cast<std::uint64_t>(route.unit)));
    if (job.options.buffersize && route.round_bytes > all) {
        route.notes.push_back(fmt::format("buffers cut from {} to {}: there is no more data",
                                          core::format_bytes(route.round_bytes), core::format_bytes(all)));
        route.round_bytes = all;
    }
    if (job.nodes > 1 && route.round_bytes > most_network_round) {
        route.notes.push_back("between nodes a buffer has at most 512 MiB");
        route.round_bytes = most_network_round;
    }
    auto const stripe = static_cast<std::uint64_t>(job.storage.stripe_bytes);
    if (striped && route.round_bytes % stripe != 0 && stripe % route.round_bytes != 0)
        route.notes.push_back(fmt::format("buffers of {} are no multiple or even part of the stripes of {}",
                                          core::format_bytes(route.round_bytes), core::format_bytes(stripe)));
}

/// At most as many buffers as there are rounds, plus one that shifting the step may add.
void bound_buffers(Job const& job, Route& route)
{
    if (job.options.buffers || route.way == Way::direct) return;
    std::int64_t most = 1;
    for (auto const& partition : schedule(route, job.storage.block_bytes, 0).partitions)
        most = std::max(most, partition.rounds);
    route.buffers = static_cast<int>(std::min<std::int64_t>(route.buffers, most + 1));
}

/// If memory is short, buffers whose size was not asked for leave a quarter of it to others.
void keep_room(Job const& job, Route& route)
{
    if (job.options.buffersize || job.options.buffers || job.options.aggrtier || route.way == Way::direct) return;
    auto const room = room_of(job);
    auto const wanted = route.round_bytes;
    auto const on_node = static_cast<std::uint64_t>((route.aggregators + job.nodes - 1) / job.nodes);
    auto const unit = static_cast<std::uint64_t>(route.unit);
    while (core::multiply(route.memory_per_aggregator(), on_node) > room && route.round_bytes > block(job))
        route.round_bytes = round_up(route.round_bytes / 2, route.round_bytes > unit ? unit : block(job));
    if (route.round_bytes != wanted)
        route.notes.push_back(fmt::format("buffers cut from {} to {}: no more memory is free",
                                          core::format_bytes(wanted), core::format_bytes(route.round_bytes)));
}

/// Shrinks the buffers until they and the bookkeeping fit under the cap.
core::Status keep_cap(Job const& job, Route& route, bool reading)
{
    if (!job.options.memory) return {};
    auto const cap = *job.options.memory;
    auto const wanted = route.round_bytes;
    auto const bookkeeping = [&] { return private_bytes(job, route, reading); };
    auto const total = [&] {
        return bookkeeping() + std::min(route.memory_per_aggregator(), UINT64_MAX - bookkeeping());
    };
    auto const unit = static_cast<std::uint64_t>(route.unit);
    while (total() > cap && route.way == Way::aggregated) {
        if (route.round_bytes > block(job))
            route.round_bytes = round_up(route.round_bytes / 2, route.round_bytes > unit ? unit : block(job));
        else if (route.buffers > 1)
            --route.buffers;
        else
            break;
    }
    if (total() > cap)
        return core::fail(
            Errc::memory,
            fmt::format("{} needs {} (bookkeeping {}, {} x {} buffers), but TAPIOCA_MEMORY allows {}: "
                        "raise it",
                        reading ? "reading" : "writing", core::format_bytes(total()), core::format_bytes(bookkeeping()),
                        route.buffers, core::format_bytes(route.round_bytes), core::format_bytes(cap)));
    if (route.round_bytes != wanted)
        route.notes.push_back(fmt::format("buffers cut from {} to {} to keep within TAPIOCA_MEMORY ({})",
                                          core::format_bytes(wanted), core::format_bytes(route.round_bytes),
                                          core::format_bytes(cap)));
    return {};
}

/// Takes the cheaper candidate unless TAPIOCA_DIRECT decides.
void choose_way(Job const& job, Route& route, double aggregated, double direct, bool direct_allowed)
{
    auto const wish = job.options.direct.value_or(Direct::automatic);
    bool const cheaper = direct < aggregated && direct_allowed;
    bool const take_direct = wish == Direct::always || (wish == Direct::automatic && cheaper);
    route.way = Way::aggregated;
    route.considered = route.aggregators;
    route.aggregated_s = aggregated;
    route.direct_s = direct;
    route.direct_allowed = direct_allowed;
    if (wish != Direct::automatic)
        route.reason = Reason::asked;
    else if (direct < aggregated && !direct_allowed)
        route.reason = Reason::small_pieces;
    if (take_direct) route.go_direct();
}

/// On several nodes: chooses direct access at once if it would be faster however the data is spread, and even if the
/// aggregators' links needed no time. Otherwise the ways are compared when the aggregators have their places.
void choose_way_across(Job const& job, Route& route, bool reading)
{
    auto const aggregated = predict_aggregated(job, even_flow(job, route.aggregators, reading, true), reading);
    auto const direct = predict_direct(job, direct_flow(job, {}), reading);
    auto at_least = aggregated;
    at_least.links_s = 0;
    choose_way(job, route, at_least.total(), direct.total(), true);
    route.aggregated_s = aggregated.total();
    if (route.way == Way::aggregated) return;
    route.parts = direct.parts();
    route.passage = direct.passage;
}

/// Removes empty partitions of several nodes, and reduces the number of aggregators accordingly.
void drop_empty(Job const& job, Route& route, bool asked)
{
    if (job.nodes == 1 || route.way == Way::direct) return;
    auto& cuts = route.cuts;
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (cuts.size() < 2) cuts = {job.pattern.begin, job.pattern.end};
    auto const left = static_cast<int>(cuts.size()) - 1;
    if (left == route.aggregators) return;
    if (asked)
        route.notes.push_back(fmt::format("{} aggregators asked for, {} have data: there are no more blocks or stripes",
                                          route.aggregators, left));
    route.aggregators = route.considered = left;
    route.ranks = spread(left, job.ranks);
}

void note(Route& route, std::string const& text)
{
    if (!text.empty()) route.notes.push_back(text);
}

}  // namespace

void Route::go_direct()
{
    way = Way::direct;
    aggregators = 0;
    buffers = 0;
    round_bytes = 0;
    ranks.clear();
    cuts.clear();
    network = {};
    aggregator_places.clear();
    areas.clear();
}

std::uint64_t Route::map_bytes() const
{
    if (way == Way::direct || dense) return 0;
    return round_up((round_bytes / granule + 2 + 7) / 8, 64);  // a granule may straddle each end of a round
}

std::uint64_t Route::memory_per_aggregator() const
{
    return core::multiply(static_cast<std::uint64_t>(buffers), round_bytes + map_bytes());
}

bool wants_histogram(Job const& job)
{
    return job.pattern.bytes > 0 && !job.pattern.dense() && writers(job).count > 1;
}

core::Result<Plan> make(Job job, std::vector<std::uint64_t> const& histogram)
{
    if (job.pattern.bytes == 0) job.pattern.begin = job.pattern.end = 0;
    Plan plan{job, {}, {}};

    auto& write = plan.write;
    auto const writing = writers(job);
    write.aggregators = writing.count;
    choose_buffers(job, write, full_write_round(job, populates(job, write.aggregators)));
    write.dense = job.pattern.dense();
    if (write.dense && (job.storage.reserve == machine::Reserve::allocate || populates(job, write.aggregators)))
        write.reserve = job.storage.reserve;
    write.patch = !write.dense && job.storage.reserve != machine::Reserve::nothing;
    write.granule = std::min(job.pattern.granule(), block(job));
    if (job.nodes > 1)
        choose_way_across(job, write, false);
    else
        choose_way(job, write, aggregated_write_seconds(job, write.aggregators), direct_write_seconds(job),
                   pieces_fill_stripes(job));
    write.ranks = spread(write.aggregators, job.ranks);
    if (write.way == Way::aggregated) write.cuts = balanced_cuts(job, write.aggregators, histogram);
    drop_empty(job, write, job.options.nbaggr.value_or(AggregatorCount::automatic) != AggregatorCount::automatic);
    note(write, writing.why);
    note(write, job.storage.note);
    bound_buffers(job, write);
    keep_room(job, write);
    if (auto status = keep_cap(job, write, false); !status) {  // irrelevant if the step only reads
        write.go_direct();
        write.feasible = status;
    }

    auto& read = plan.read;
    auto const reading = readers(job);
    read.aggregators = reading.count;
    choose_buffers(job, read, full_read_round(job));
    read.dense = true;  // a reader takes whatever the file has
    if (job.nodes > 1)
        choose_way_across(job, read, true);
    else
        choose_way(job, read, aggregated_read_seconds(job, read.aggregators), direct_read_seconds(job),
                   pieces_fill_blocks(job) || sparse(job));
    read.ranks = spread(read.aggregators, job.ranks);
    if (read.way == Way::aggregated)
        read.cuts = job.nodes > 1 ? balanced_cuts(job, read.aggregators, histogram)
                                  : std::vector<std::int64_t>{job.pattern.begin, job.pattern.end};
    drop_empty(job, read,
               job.options.nbaggr_read ||
                   job.options.nbaggr.value_or(AggregatorCount::automatic) != AggregatorCount::automatic);
    note(read, reading.why);
    if (job.nodes > 1) bound_buffers(job, read);
    keep_room(job, read);
    if (auto status = keep_cap(job, read, true); !status)
        return tl::unexpected((write.feasible ? status : write.feasible).error());
    return plan;
}

std::int64_t Schedule::round_begin(std::size_t partition, std::int64_t round) const
{
    auto const& p = partitions[partition];
    return std::max(p.begin, p.origin + round * round_bytes);
}

std::int64_t Schedule::round_end(std::size_t partition, std::int64_t round) const
{
    auto const& p = partitions[partition];
    auto const start = p.origin + round * round_bytes;
    return p.end - start < round_bytes ? p.end : start + round_bytes;
}

Schedule schedule(Route const& route, std::int64_t block_bytes, std::int64_t base)
{
    auto const unit = std::max(block_bytes, route.unit);
    Schedule result;
    result.round_bytes = static_cast<std::int64_t>(route.round_bytes);
    for (std::size_t i = 0; i + 1 < route.cuts.size(); ++i) {
        Schedule::Partition p;
        bool const first = i == 0;
        bool const last = i + 2 == route.cuts.size();
        p.begin = first ? base + route.cuts[i] : core::align_down(base + route.cuts[i], unit);
        p.end = last ? base + route.cuts[i + 1] : core::align_down(base + route.cuts[i + 1], unit);
        p.begin = std::max(p.begin, base + route.cuts.front());
        p.end = std::max(p.end, p.begin);
        // A retargeted step may meet blocks larger than its rounds; no round may lie before the partition.
        p.origin = core::align_down(p.begin, std::min(unit, result.round_bytes));
        p.rounds = p.end > p.begin ? core::divide_up(p.end - p.origin, result.round_bytes) : 0;
        result.partitions.push_back(p);
    }
    return result;
}

}  // namespace tapioca::plan
