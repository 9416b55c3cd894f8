// Drainer: writes an aggregator's rounds to the target as they become complete, without touching their holes.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/context.hpp"
#include "engine/times.hpp"
#include "engine/wire.hpp"

namespace tapioca::engine {

/// Every rank of a write has a drainer; on ranks that do not aggregate, it has nothing to do.
class Drainer {
public:
    /// `context` must outlive this object.
    explicit Drainer(Context const& context);
    Drainer(Drainer const&) = delete;
    Drainer& operator=(Drainer const&) = delete;
    ~Drainer() { stop(); }

    /// Lets the I/O thread drain, if the step uses it.
    void start();
    /// Returns when no thread drains any more. Rounds that have not been drained by then are not written.
    void stop();
    /// Drains on the main thread, unless the main thread is needed for messages and the I/O thread drains. Returns true
    /// if it wrote a round.
    bool help();
    /// True when all of this aggregator's rounds are written, or the rest will never be filled.
    [[nodiscard]] bool over() const;
    /// Valid once over() is true and the I/O thread has finished.
    [[nodiscard]] core::Status const& status() const { return status_; }
    [[nodiscard]] Times const& times() const { return times_; }
    /// Bytes written so far. May be called at any time.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

    // For several nodes; called on the main thread.

    /// Nothing is written until it is known that every rank has supplied what it declared; true from then on.
    bool may_drain();
    /// Adds another node's data of `round`; if `data` is null, the data is already in its place.
    void take_in(std::int64_t round, wire::Runs runs, std::byte const* data);
    /// All data of other nodes in the first `rounds` rounds has arrived.
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
    std::uint64_t end_ = 0;  ///< ticket of the partition's end; 0: this rank drains nothing

    // on the main thread
    bool cleared_ = false;
    std::int64_t here_ = 0;  ///< number of rounds for which all data of other nodes has arrived
    double copying_ = 0;

    /// Ticket of the end of these rounds once draining is permitted, and 0 before; on one node, beyond all rounds.
    std::atomic<std::uint64_t> arrived_ = UINT64_MAX;
    std::atomic<bool> stopped_ = false;
    std::atomic<std::uint64_t> bytes_ = 0;

    // used only by the thread that holds busy_
    std::atomic<bool> busy_ = false;
    std::uint64_t done_ = 0;  ///< ticket of the next round
    bool reserved_ = false;
    bool populate_ = false;
    core::Status status_;
    Times times_;
    std::vector<target::Target::Stretch> stretches_;  ///< the filled parts of the round being written
};

}  // namespace tapioca::engine
