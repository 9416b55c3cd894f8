// Context: everything that a step uses while it runs on one rank. The run owns it; the roles that make up the run
// (filler, drainer, taker, loader, carrier) share it and only read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/result.hpp"
#include "engine/buffer_layout.hpp"
#include "engine/exchange.hpp"
#include "engine/network_context.hpp"
#include "engine/valid_map.hpp"
#include "pattern/layout.hpp"
#include "plan/plan.hpp"
#include "target/lazy_file.hpp"
#include "target/worker.hpp"

namespace tapioca::engine {

/// A layout and the buffer of the variable it belongs to.
struct VariableBuffer {
    pattern::Layout const* layout;
    std::byte* data;  ///< a write does not modify it
    std::size_t variable;
};

/// Where the counters of Exchange stand when a step begins; the same on every rank.
struct Tickets {
    std::uint64_t step = 0;
    std::uint64_t read = 0;
    std::vector<std::uint64_t> lanes;  ///< one per partition; at least as many as the exchange has lanes

    /// Advances the tickets past a step with this schedule, which went through lanes, or through the ring of a node
    /// that reads.
    void pass(plan::Schedule const& schedule, bool through_lanes);
};

/// Stands for "no round".
inline constexpr std::int64_t no_round = std::numeric_limits<std::int64_t>::max();

struct Context {
    // this rank and its node
    Exchange* exchange = nullptr;
    std::byte* buffers = nullptr;        ///< shared; as large as the route needs
    std::byte* maps = nullptr;           ///< shared; all zero between steps
    std::vector<std::byte*> tiers = {};  ///< shared; the areas of the layout on other tiers
    target::Worker* worker = nullptr;
    WaitPolicy const* wait_policy = nullptr;
    int rank = 0;                         ///< in the communicator
    NetworkContext const* net = nullptr;  ///< null on one node

    // the step, the same on all ranks
    plan::Route const* route = nullptr;
    BufferLayout const* buffer_layout = nullptr;
    plan::Schedule schedule = {};
    std::int64_t base = 0;
    Tickets tickets = {};
    bool writing = true;
    bool every_byte = false;  ///< all ranks together move every byte from the first to the last
    bool threaded = false;    ///< the I/O thread does I/O that the main thread could do

    // this rank's part of it
    std::vector<VariableBuffer> variable_buffers = {};  ///< empty if spoiled
    std::size_t variables = 0;
    target::Target* target = nullptr;         ///< null on ranks that do no I/O
    core::Status target_status = {};          ///< why target is null on a rank that should do I/O
    target::LazyFile* lazy_target = nullptr;  ///< for a rank that was not meant to do I/O but has to
    bool spoiled = false;                     ///< this rank's input is bad: it takes part but moves no data

    [[nodiscard]] bool networked() const { return route->networked(); }
    [[nodiscard]] std::size_t partitions() const { return schedule.partitions.size(); }
    [[nodiscard]] std::int64_t rounds(std::size_t partition) const { return schedule.partitions[partition].rounds; }
    /// The number of rounds of the partition that has the most.
    [[nodiscard]] std::int64_t most_rounds() const;
    /// The partition that this rank aggregates, if any.
    [[nodiscard]] std::optional<std::size_t> own_partition() const;

    /// The ticket of a round, in which the partition's counters count.
    [[nodiscard]] std::uint64_t ticket(std::size_t partition, std::int64_t round) const
    {
        return tickets.lanes[partition] + static_cast<std::uint64_t>(round);
    }
    /// The ticket of a round; for no_round, the ticket of the partition's end.
    [[nodiscard]] std::uint64_t ticket_or_end(std::size_t partition, std::int64_t round) const
    {
        return ticket(partition, round == no_round ? rounds(partition) : round);
    }

    // The position of a round in the file, relative to the base: where it begins and ends, and where its buffer begins.
    [[nodiscard]] std::int64_t begin(std::size_t partition, std::int64_t round) const
    {
        return schedule.round_begin(partition, round) - base;
    }
    [[nodiscard]] std::int64_t end(std::size_t partition, std::int64_t round) const
    {
        return schedule.round_end(partition, round) - base;
    }
    [[nodiscard]] std::int64_t origin(std::size_t partition, std::int64_t round) const
    {
        return schedule.partitions[partition].origin + round * schedule.round_bytes - base;
    }

    // The position of a round in memory.
    [[nodiscard]] std::size_t buffer_of(std::int64_t round) const
    {
        return static_cast<std::size_t>(round % route->buffers);
    }
    /// On the aggregator's node.
    [[nodiscard]] std::byte* buffer(std::size_t partition, std::int64_t round) const
    {
        auto const area = buffer_layout->area(partition);
        return (area == 0 ? buffers : tiers[area - 1]) + buffer_layout->buffer(partition, buffer_of(round));
    }
    [[nodiscard]] ValidMap map(std::size_t partition, std::int64_t round) const
    {
        auto* const bytes = maps + buffer_layout->map(partition, buffer_of(round));
        return {reinterpret_cast<std::uint64_t*>(bytes), route->granule, origin(partition, round)};
    }
    /// On the other nodes that have data in the partition.
    [[nodiscard]] std::byte* slot(std::size_t partition, std::int64_t round) const
    {
        return buffers + buffer_layout->slot(partition, buffer_of(round));
    }

    /// Writing: true if the buffer, or the slot, of a round no longer holds an earlier round.
    [[nodiscard]] bool is_free(std::size_t partition, std::int64_t round) const
    {
        auto const emptied = exchange->emptied(partition).load(std::memory_order_acquire);
        return ticket(partition, round) < emptied + static_cast<std::uint64_t>(route->buffers);
    }
    /// Reading: true if the round was loaded or, on a node other than the aggregator's, if the reply has arrived.
    [[nodiscard]] bool is_there(std::size_t partition, std::int64_t round) const
    {
        return exchange->present(partition).load(std::memory_order_acquire) > ticket(partition, round);
    }

    /// One cursor per variable buffer, at the partition's begin.
    void add_cursors(std::size_t partition, std::vector<pattern::LayoutCursor>& to) const;
    /// The round of a partition in which the earliest of the cursors stands, or no_round.
    [[nodiscard]] std::int64_t next_round(std::size_t partition, std::span<pattern::LayoutCursor const> cursors) const;
};

}  // namespace tapioca::engine
