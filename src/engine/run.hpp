// Run: one step under way on one rank. Within a node the same protocol for processes and for threads, without MPI.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/result.hpp"
#include "core/stopwatch.hpp"
#include "engine/exchange.hpp"
#include "engine/net.hpp"
#include "engine/site.hpp"
#include "pattern/variable.hpp"
#include "plan/plan.hpp"
#include "target/target.hpp"
#include "target/worker.hpp"

namespace tapioca::engine {

/// A layout and the buffer of the variable it belongs to.
struct Track {
    pattern::Layout const* layout;
    std::byte* data;  ///< not written to by a write
    std::size_t variable;
};

/// Where the counters of Exchange stand when a step begins; the same on every rank.
struct Tickets {
    std::uint64_t step = 0;
    std::uint64_t read = 0;
    std::vector<std::uint64_t> lanes;  ///< per partition; of no fewer than the exchange has

    /// What the next step starts from, after one with this schedule: through lanes, or through the ring of a node
    /// that reads.
    void pass(plan::Schedule const& schedule, bool through_lanes);
};

/// What a rank spent its time on, in seconds, and what it moved.
struct Times {
    double copying = 0;
    double draining = 0;  ///< the drain thread's, or a direct access's
    std::uint64_t bytes = 0;
    std::uint64_t rounds = 0;  ///< drained or read by this rank
    std::uint64_t calls = 0;   ///< of the target
};

/// The rank's seat at the table.
struct Place {
    Exchange* exchange = nullptr;
    std::byte* buffers = nullptr;  ///< shared; as large as the route needs
    std::byte* maps = nullptr;     ///< shared; all zero between steps
    target::Worker* worker = nullptr;
    Patience const* patience = nullptr;
    int rank = 0;                        ///< in the communicator
    Net const* net = nullptr;            ///< on several nodes
    std::vector<std::byte*> tiers = {};  ///< likewise shared: the other areas of the site

    /// One of a partition's buffers; on the aggregator's node.
    [[nodiscard]] std::byte* buffer(Site const& site, std::size_t partition, std::size_t number) const
    {
        auto const area = site.area(partition);
        return (area == 0 ? buffers : tiers[area - 1]) + site.buffer(partition, number);
    }
};

/// What is to be done.
struct Work {
    plan::Route const* route = nullptr;
    Site const* site = nullptr;
    bool writing = true;
    bool every_byte = false;  ///< all ranks together move every byte from the first to the last
    plan::Schedule schedule;
    std::int64_t base = 0;
    std::vector<Track> tracks;
    std::size_t variables = 0;
    target::Target* target = nullptr;  ///< null on ranks that do no I/O
    core::Status target_status;        ///< why target is null on a rank that should do I/O
    /// Opens the target on a rank that was not meant to need it.
    std::function<target::Target*(core::Status& why_not)> open_target;
    Tickets tickets;
    bool spoiled = false;   ///< this rank's input is bad: take part, move nothing
    bool threaded = false;  ///< the worker does I/O that the main thread could do
};

class Run {
public:
    virtual ~Run() = default;
    /// Copies what can be copied now; if `helping`, also does I/O that it would otherwise wait for. Local. True when
    /// this rank has no more to copy.
    virtual bool advance(bool helping = true) = 0;
    /// Waits for this rank's own I/O, after advance() came true. Local.
    virtual core::Status settle() = 0;
    /// Bytes of each variable that came from the file (reads only).
    [[nodiscard]] virtual std::vector<std::uint64_t> const& received() const = 0;
    /// Bytes that this rank's I/O has moved so far. Any time.
    [[nodiscard]] virtual std::uint64_t drained_bytes() const = 0;
    /// Seconds this rank has spent copying so far.
    [[nodiscard]] virtual double copying() const { return 0; }
    /// After settle().
    [[nodiscard]] virtual Times times() const = 0;
};

std::unique_ptr<Run> start_write(Place const& place, Work work);
std::unique_ptr<Run> start_read(Place const& place, Work work);
std::unique_ptr<Run> start_remote_read(Place const& place, Work work);
std::unique_ptr<Run> start_direct(Place const& place, Work work);
/// The one that the route asks for.
std::unique_ptr<Run> start(Place const& place, Work work);

using core::Stopwatch;

}  // namespace tapioca::engine
