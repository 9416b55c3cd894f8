#include "plan/memory.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "core/index.hpp"
#include "core/units.hpp"

namespace tapioca::plan {

namespace {

using core::index;

constexpr std::uint64_t slots_budget = 256 * core::MiB;  // of a node, for the data that it gathers to send
constexpr std::uint64_t least_slot = 64 * core::KiB;
constexpr std::uint64_t tiny_slot = 2 * core::KiB;  // used if memory is short
constexpr std::uint64_t stray_bytes = 4 * core::MiB;
constexpr std::uint64_t apart_bytes = 256 * core::KiB;  // from here on, a separate message may need its own place

// Sizes of what the engine keeps, rounded up (engine/filler.hpp, taker.hpp, outbox.hpp, inbox.hpp, p2p.cpp,
// comm/messages.hpp).
constexpr std::uint64_t cursor_bytes = 64;
constexpr std::uint64_t layout_bytes = 64;
constexpr std::uint64_t lane_bytes = 1200;  // per partition: its counters and its queue
constexpr std::uint64_t place_bytes = 400;  // per partition in the plan, and per bid while the plan is made
constexpr std::uint64_t bid_bytes = 170;
constexpr std::uint64_t feed_bytes = 120;     // per node and range of neighbouring partitions
constexpr std::uint64_t feeder_bytes = 320;   // per node that feeds an aggregator
constexpr std::uint64_t asked_bytes = 96;     // per round that was asked for, and per layout in it
constexpr std::uint64_t message_bytes = 160;  // per message under way
constexpr std::uint64_t most_runs = 256;      // of an entry under construction
constexpr std::uint64_t run_bytes = 100;
constexpr std::uint64_t entry_bytes = 48;  // a short description of one rank's part of a variable in a round

std::uint64_t align(std::uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

std::uint64_t layouts_of(Job const& job)
{
    return std::max<std::uint64_t>({1, job.pattern.most_layouts, job.pattern.most_variables});
}

/// Memory for the stray entries of a rank in one round: all its data there, which is more than the round if its own
/// extents overlap.
std::uint64_t strays_of(Job const& job, Route const& route)
{
    auto const& pattern = job.pattern;
    auto const layers = pattern.most_layouts - std::min(pattern.most_layouts, pattern.most_variables) + 1;
    auto const bytes = std::min(core::multiply(route.round_bytes, layers), pattern.most_bytes);
    return bytes + bytes / 8 + layers * core::KiB;
}

/// The number of ranks whose stray entries an aggregator may hold. Together they fill its buffers, unless ranks
/// overlap; then each may have a whole round on its way.
std::uint64_t strays_here(Job const& job, Route const& route)
{
    auto const ranks = static_cast<std::uint64_t>(job.ranks);
    auto const range = static_cast<std::uint64_t>(job.pattern.end - job.pattern.begin);
    return job.pattern.bytes > range ? ranks : std::min(static_cast<std::uint64_t>(route.buffers), ranks);
}

std::uint64_t crossing_bytes(Job const& job, Route const& route, bool reading)
{
    auto const partitions = static_cast<std::uint64_t>(route.aggregators);
    auto const nodes = static_cast<std::uint64_t>(job.nodes);
    auto const buffers = static_cast<std::uint64_t>(route.buffers);
    auto const feeds = std::max<std::uint64_t>(nodes, route.network.feeds.size());
    auto bytes = partitions * (lane_bytes + place_bytes + bid_bytes * std::min<std::uint64_t>(16, nodes)) +
                 feeds * feed_bytes + nodes * feeder_bytes + static_cast<std::uint64_t>(job.ranks) * 16;
    bytes += std::min(most_runs, job.pattern.most_pieces) * run_bytes;
    bytes += (partitions * buffers * (reading ? 2 : 1) + 2 * nodes) * message_bytes;
    auto const asked = partitions * buffers;
    if (reading) return bytes + asked_bytes * (asked + std::min(asked * layouts_of(job), job.pattern.most_pieces));
    bytes += (1 + strays_here(job, route)) * strays_of(job, route);
    if (route.round_bytes >= apart_bytes) bytes += buffers * route.round_bytes;
    return bytes;
}

/// The most that each node has in one partition.
std::vector<std::uint64_t> most_of(std::vector<Weight> const& weights, std::size_t nodes)
{
    std::vector<std::uint64_t> most(nodes, 0);
    for (auto const& weight : weights)
        most[index(weight.node)] =
            std::max({most[index(weight.node)], weight.most_bytes, weight.bytes_in(weight.begin)});
    return most;
}

/// Room for a node's messages.
class Slots {
public:
    Slots(Job const& job, Route& route, Nodes const& nodes, std::vector<Weight> const& weights)
        : job_(job),
          route_(route),
          nodes_(nodes),
          most_(most_of(weights, nodes.size())),
          fed_(nodes.size(), 0),
          rivals_(nodes.size(), 0)
    {
        std::vector<std::uint64_t> feeders(route.network.homes.size(), 0);
        auto const each = [&](auto use) {
            for (auto const& feed : route.network.feeds)
                for (auto p = feed.begin; p < feed.end; ++p)
                    if (route.network.homes[p] != feed.node) use(index(feed.node), p);
        };
        each([&](std::size_t, std::size_t p) { ++feeders[p]; });
        each([&](std::size_t node, std::size_t p) {
            ++fed_[node];
            rivals_[node] = std::max(rivals_[node], feeders[p]);
        });
    }

    /// Room for everything that a node may have in a round, if `budget` allows for what one node gathers and for what
    /// one aggregator receives. It does, unless a node feeds very many aggregators, or very many nodes feed one.
    void choose(std::uint64_t budget)
    {
        auto& network = route_.network;
        network.slot_bytes.assign(nodes_.size(), 0);
        network.request_bytes.assign(nodes_.size(), 0);
        for (std::size_t node = 0; node < nodes_.size(); ++node) {
            if (fed_[node] == 0) continue;
            auto const data = align(std::min(route_.round_bytes, most_[node]) + 8);
            auto const entries = entry_bytes * layouts_of(job_) * nodes_[node].size();
            auto const described =
                align(192 + data / 8 + std::min(entries, std::max(4 * core::KiB, route_.round_bytes / 8)));
            auto const whole = described + data;
            auto const share = std::min(budget / (2 * rivals_[node]),
                                        budget / (fed_[node] * static_cast<std::uint64_t>(route_.buffers)));
            auto const least = std::min(whole, budget == slots_budget ? least_slot : tiny_slot);
            auto const slot = std::clamp(share, least, whole) / 64 * 64;
            network.slot_bytes[node] = slot;
            network.request_bytes[node] =
                slot == whole ? described : std::clamp(slot * described / whole, slot / 9, slot / 3) / 64 * 64;
        }
    }

private:
    Job const& job_;
    Route& route_;
    Nodes const& nodes_;
    std::vector<std::uint64_t> most_;
    std::vector<std::uint64_t> fed_;     ///< per node: number of aggregators that it feeds
    std::vector<std::uint64_t> rivals_;  ///< per node: the largest number of nodes that feed one of them
};

/// Makes a route smaller, one step at a time; the steps that cost the least speed come first.
class Shrinking {
public:
    Shrinking(Job const& job, Route& route, bool rounds_too)
        : route_(route),
          rounds_too_(rounds_too),
          block_(static_cast<std::uint64_t>(job.storage.block_bytes)),
          least_buffers_(route.network.transport == Transport::rma ? 2 : 1)
    {
    }

    /// Returns false if nothing can be made smaller.
    bool next()
    {
        if (rounds_too_ && fewer_buffers(4)) return true;
        if (rounds_too_ && smaller_rounds(64 * core::KiB)) return true;
        if (rounds_too_ && fewer_buffers(2)) return true;
        if (budget > tiny_slot) {
            budget = std::max(budget / 2, tiny_slot);
            return true;
        }
        return rounds_too_ && (smaller_rounds(block_) || fewer_buffers(1));
    }

    std::uint64_t budget = slots_budget;

private:
    bool fewer_buffers(int least)
    {
        if (route_.buffers <= std::max(least, least_buffers_)) return false;
        --route_.buffers;
        return true;
    }
    /// Halves the rounds in whole units while they are more than one unit, then in whole blocks.
    bool smaller_rounds(std::uint64_t least)
    {
        if (route_.round_bytes <= std::max(least, block_)) return false;
        auto const unit = static_cast<std::uint64_t>(route_.unit);
        auto const step = route_.round_bytes > unit && unit >= block_ ? unit : block_;
        route_.round_bytes = std::max((route_.round_bytes / 2 + step - 1) / step * step, block_);
        return true;
    }

    Route& route_;
    bool rounds_too_;
    std::uint64_t block_;
    int least_buffers_;
};

}  // namespace

std::uint64_t private_bytes(Job const& job, Route const& route, bool reading)
{
    auto const layouts = layouts_of(job);
    auto bytes = job.fixed_bytes + job.pattern.most_bookkeeping_bytes;
    if (route.way == Way::direct) return bytes;
    bool const partitioned = job.nodes > 1 || !reading;
    auto const cursors =
        (partitioned ? static_cast<std::uint64_t>(route.aggregators) : 1) * (job.nodes > 1 && reading ? 2 : 1);
    bytes += layouts * (layout_bytes + cursor_bytes * cursors);
    auto const ranks = static_cast<std::uint64_t>(job.ranks);
    return bytes + (job.nodes > 1 ? crossing_bytes(job, route, reading) : counter_bytes(route, ranks) / ranks);
}

std::uint64_t counter_bytes(Route const& route, std::uint64_t ranks)
{
    auto const partitions = static_cast<std::uint64_t>(route.aggregators);
    auto const buffers = static_cast<std::uint64_t>(route.buffers);
    return partitions * (64 + align(8 * buffers) + align(32 * buffers)) + 2 * ranks * align(8 * partitions);
}

Shared shared_bytes(Route const& route, Nodes const& nodes)
{
    auto const& network = route.network;
    auto const buffers = static_cast<std::uint64_t>(route.buffers);
    auto const maps = buffers * route.map_bytes();
    std::vector<std::uint64_t> used(nodes.size(), 0);
    std::vector<std::uint64_t> slots(nodes.size(), 0);
    std::vector<std::uint64_t> mapped(nodes.size(), 0);
    std::vector<std::uint64_t> landing(network.homes.size(), 0);
    for (auto const& feed : network.feeds)
        for (auto p = feed.begin; p < feed.end; ++p) {
            if (network.homes[p] == feed.node) continue;
            landing[p] += 2 * network.slot_bytes[index(feed.node)];
            slots[index(feed.node)] += buffers * network.slot_bytes[index(feed.node)];
        }
    Shared shared;
    for (std::size_t p = 0; p < network.homes.size(); ++p) {
        auto const each = core::multiply(buffers, route.round_bytes);
        auto const home = index(network.homes[p]);
        used[home] += (route.area(p) == 0 ? each : 0) + landing[p];
        mapped[home] += maps;
        shared.aggregator_bytes = std::max(shared.aggregator_bytes, each + maps + landing[p]);
    }
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        shared.segment_bytes = std::max(shared.segment_bytes, used[node] + slots[node]);
        shared.map_bytes = std::max(shared.map_bytes, mapped[node]);
        shared.counter_bytes = std::max(shared.counter_bytes, counter_bytes(route, nodes[node].size()));
        shared.slot_bytes = std::max(shared.slot_bytes, (slots[node] + nodes[node].size() - 1) / nodes[node].size());
    }
    return shared;
}

Taken taken(Job const& job, Route const& route, Nodes const& nodes, bool reading)
{
    auto const shared = shared_bytes(route, nodes);
    std::size_t fewest = nodes[0].size();
    for (auto const& ranks : nodes) fewest = std::min(fewest, ranks.size());
    auto const counters = (shared.counter_bytes + fewest - 1) / fewest;
    auto const even = (shared.segment_bytes + shared.map_bytes + fewest - 1) / fewest;
    return {private_bytes(job, route, reading), std::max(even, shared.aggregator_bytes + shared.slot_bytes) + counters};
}

std::uint64_t free_of(Job const& job)
{
    if (!job.machine) return UINT64_MAX;
    auto least = UINT64_MAX;
    for (std::size_t tier = 0; tier < job.machine->tiers.size(); ++tier)
        for (auto const& free : job.free_bytes)
            if (machine::is_ordinary(job.machine->tiers[tier])) least = std::min(least, free[tier]);
    return least;
}

std::uint64_t room_of(Job const& job)
{
    auto const free = free_of(job);
    return free == UINT64_MAX ? free : free / 4 * 3;  // others take some, too, and there may be files
}

core::Status fit(Job const& job, Route& route, Nodes const& nodes, std::vector<Weight> const& weights, bool reading,
                 Taken const& other)
{
    auto const cap = job.options.memory.value_or(UINT64_MAX);
    bool const asked = job.options.buffersize || job.options.buffers;
    auto const free = free_of(job);
    auto const room = asked ? free : room_of(job);
    auto const wanted = route.round_bytes;
    auto const wanted_buffers = route.buffers;
    route.network.stray_bytes = job.options.memory ? 0 : stray_bytes;
    Slots slots(job, route, nodes, weights);
    slots.choose(slots_budget);
    auto const fits = [&](auto needs, std::uint64_t limit, bool rounds_too) {
        Shrinking shrinking(job, route, rounds_too);
        while (needs() > limit && shrinking.next()) slots.choose(shrinking.budget);
        return needs() <= limit;
    };
    auto const shared = [&] {
        auto const all = shared_bytes(route, nodes);
        return all.segment_bytes + all.map_bytes + all.counter_bytes;
    };
    auto const process = [&] {
        auto const [own, shared_part] = taken(job, route, nodes, reading);
        auto const later = reading ? own : private_bytes(job, route, true);  // if this step reads
        return std::max({own, later, other.own_bytes}) + std::max(shared_part, other.shared_bytes);
    };
    auto const to_shrink = [&](char const* why, std::uint64_t limit) {
        if (route.round_bytes != wanted || route.buffers != wanted_buffers)
            route.notes.push_back(fmt::format("{} buffers of {} cut to {} of {} to keep within {} ({})", wanted_buffers,
                                              core::format_bytes(wanted), route.buffers,
                                              core::format_bytes(route.round_bytes), why, core::format_bytes(limit)));
    };
    if (job.options.memory) {
        if (!fits(process, cap, true))
            return core::fail(Errc::memory,
                              fmt::format("crossing {} nodes needs {}, but TAPIOCA_MEMORY allows {}: raise it",
                                          nodes.size(), core::format_bytes(process()), core::format_bytes(cap)));
        to_shrink("TAPIOCA_MEMORY", cap);
    }
    if (shared() <= room) return {};
    // Sizes that the user asked for are not changed, and need not leave memory to others.
    if (!fits(shared, room, !asked) && shared() > free)
        return core::fail(Errc::memory,
                          fmt::format("crossing {} nodes needs {} of shared memory on a node, but only {} are "
                                      "free: lower TAPIOCA_BUFFERSIZE, TAPIOCA_BUFFERS or TAPIOCA_NBAGGR",
                                      nodes.size(), core::format_bytes(shared()), core::format_bytes(free)));
    to_shrink("what is free", room);
    return {};
}

}  // namespace tapioca::plan
