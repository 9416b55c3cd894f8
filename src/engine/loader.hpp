// Loader: reads an aggregator's rounds from the target when somebody wants them, for the ranks of its node and for
// other nodes' requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "engine/context.hpp"
#include "engine/times.hpp"

namespace tapioca::engine {

/// Every rank of a read between nodes has one; on ranks that do not aggregate it has nothing to load.
class Loader {
public:
    /// `context` must outlive this.
    explicit Loader(Context const& context);
    Loader(Loader const&) = delete;
    Loader& operator=(Loader const&) = delete;
    ~Loader() { stop(); }

    /// Lets the worker load, in a step that has one.
    void start();
    /// Returns when no thread loads any more.
    void stop();
    /// Loads on the main thread, unless there is a worker: the main thread is there for the messages then. True if it
    /// loaded a round.
    bool help() { return !context_.threaded && load_ready(); }
    /// True when no rank of this node needs anything any more of what is loaded here.
    [[nodiscard]] bool over() const;
    /// After stop().
    [[nodiscard]] core::Status const& status() const { return status_; }
    [[nodiscard]] Times const& times() const { return times_; }
    /// Bytes loaded so far. Any time.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

    // For requests of other nodes.

    /// The first round that another node may want; `sure` once all have said something.
    void note_wanted(std::int64_t round, bool sure);
    /// Puts what `requests` ask for into `reply`. The round is loaded.
    void fill_reply(std::int64_t round, std::span<std::byte const> requests, std::span<std::byte> reply);
    /// Where all ranks go through the rounds together, and nobody else loads: loads a round; and says that it is
    /// loaded, or not wanted.
    void load(std::int64_t round);
    void pass(std::int64_t round);
    /// Seconds spent on copying into replies.
    [[nodiscard]] double copying() const { return copying_; }

private:
    bool load_ready();
    void load_all();

    Context const& context_;
    std::size_t own_ = 0;   ///< this aggregator's partition
    std::int64_t end_ = 0;  ///< its rounds; 0: this rank loads nothing
    double copying_ = 0;

    std::atomic<std::uint64_t> wanted_ = UINT64_MAX;  ///< ticket of the first round that another node may want
    std::atomic<bool> sure_ = false;
    std::atomic<bool> stopped_ = false;
    std::atomic<std::uint64_t> bytes_ = 0;

    // of whichever thread holds busy_
    std::atomic<bool> busy_ = false;
    core::Status status_;
    Times times_;
};

}  // namespace tapioca::engine
