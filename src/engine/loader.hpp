// Loader: reads an aggregator's rounds from the target when they are wanted by ranks of its node or by other nodes'
// requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "engine/context.hpp"
#include "engine/times.hpp"

namespace tapioca::engine {

/// Every rank of a read between nodes has a loader; on ranks that do not aggregate, it has nothing to do.
class Loader {
public:
    /// `context` must outlive this object.
    explicit Loader(Context const& context);
    Loader(Loader const&) = delete;
    Loader& operator=(Loader const&) = delete;
    ~Loader() { stop(); }

    /// Lets the I/O thread load, if the step uses it.
    void start();
    /// Returns when no thread loads any more.
    void stop();
    /// Loads on the main thread, unless the I/O thread loads; then the main thread serves messages. Returns true if it
    /// loaded a round.
    bool help() { return !context_.threaded && load_ready(); }
    /// True when no rank of this node needs anything more from this aggregator.
    [[nodiscard]] bool over() const;
    /// After stop().
    [[nodiscard]] core::Status const& status() const { return status_; }
    [[nodiscard]] Times const& times() const { return times_; }
    /// Bytes loaded so far. May be called at any time.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

    // For requests of other nodes.

    /// The first round that another node may want; `sure` once all nodes have sent a message.
    void note_wanted(std::int64_t round, bool sure);
    /// Copies what `requests` ask for into `reply`. The round must be loaded.
    void fill_reply(std::int64_t round, std::span<std::byte const> requests, std::span<std::byte> reply);
    /// For carriers with which all ranks go through the rounds together, and nothing else loads: load() loads a round;
    /// the second function marks a round as loaded or as not wanted.
    void load(std::int64_t round);
    void pass(std::int64_t round);
    /// Seconds spent on copying into replies.
    [[nodiscard]] double copying() const { return copying_; }

private:
    bool load_ready();
    void load_all();

    Context const& context_;
    std::size_t own_ = 0;   ///< this aggregator's partition
    std::int64_t end_ = 0;  ///< number of its rounds; 0: this rank loads nothing
    double copying_ = 0;

    std::atomic<std::uint64_t> wanted_ = UINT64_MAX;  ///< ticket of the first round that another node may want
    std::atomic<bool> sure_ = false;
    std::atomic<bool> stopped_ = false;
    std::atomic<std::uint64_t> bytes_ = 0;

    // used only by the thread that holds busy_
    std::atomic<bool> busy_ = false;
    core::Status status_;
    Times times_;
};

}  // namespace tapioca::engine
