// Drainer: writes an aggregator's rounds to the target as they become complete, and leaves their holes alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/context.hpp"
#include "engine/times.hpp"
#include "engine/wire.hpp"

namespace tapioca::engine {

/// Every rank of a write has one; on ranks that do not aggregate it has nothing to drain.
class Drainer {
public:
    /// `context` must outlive this.
    explicit Drainer(Context const& context);
    Drainer(Drainer const&) = delete;
    Drainer& operator=(Drainer const&) = delete;
    ~Drainer() { stop(); }

    /// Lets the worker drain, in a step that has one.
    void start();
    /// Returns when no thread drains any more. What is not drained by then stays so.
    void stop();
    /// Drains on the main thread, unless that is needed for messages and there is a worker. True if it wrote a round.
    bool help();
    /// True when all of this aggregator's rounds are written, or nobody will fill the rest.
    [[nodiscard]] bool over() const;
    /// Once it is over, and the worker done.
    [[nodiscard]] core::Status const& status() const { return status_; }
    [[nodiscard]] Times const& times() const { return times_; }
    /// Bytes written so far. Any time.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

    // Between nodes, on the main thread.

    /// Nothing is written before it is known that every rank has what it declared: true from then on.
    bool may_drain();
    /// What another node has in `round`; already in its place if `data` is null.
    void take_in(std::int64_t round, wire::Runs runs, std::byte const* data);
    /// Other nodes' data of the first `rounds` rounds is all there.
    void note_arrived(std::int64_t rounds);
    /// Seconds spent on copying other nodes' data.
    [[nodiscard]] double copying() const { return copying_; }

private:
    void drain_all();
    bool drain_ready();
    [[nodiscard]] bool untouched(std::uint64_t begin, std::uint64_t end) const;
    void drain_round(std::int64_t round);
    void write(std::int64_t round, target::Target::Stretch const& stretch);
    bool patch(std::int64_t round);
    void reserve(std::int64_t begin, std::int64_t end);

    Context const& context_;
    std::size_t own_ = 0;    ///< this aggregator's partition
    std::uint64_t end_ = 0;  ///< ticket of its end; 0: this rank drains nothing

    // on the main thread
    bool cleared_ = false;
    std::int64_t here_ = 0;  ///< rounds of which other nodes' data is all there
    double copying_ = 0;

    /// Ticket of those rounds' end, once cleared, and 0 before; on one node beyond all rounds.
    std::atomic<std::uint64_t> arrived_ = UINT64_MAX;
    std::atomic<bool> stopped_ = false;
    std::atomic<std::uint64_t> bytes_ = 0;

    // of whichever thread holds busy_
    std::atomic<bool> busy_ = false;
    std::uint64_t done_ = 0;  ///< ticket of the next round
    bool reserved_ = false;
    bool populate_ = false;
    core::Status status_;
    Times times_;
    std::vector<target::Target::Stretch> stretches_;  ///< filled ones of the round that is being written, between holes
};

}  // namespace tapioca::engine
