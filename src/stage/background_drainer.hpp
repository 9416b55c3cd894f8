// BackgroundDrainer: drains the logs of a node while the program computes. It uses one thread and no MPI.
//
// It follows the logs of its node's ranks and writes the blocks of the target that the logs cover completely. The data
// stays in the logs, because only a flush finds out whether ranks of other nodes have written the same bytes, earlier
// or later. If they have not, the flush leaves these blocks out; otherwise it writes everything again, in the right
// order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "stage/log_files.hpp"
#include "stage/log_image.hpp"
#include "target/target.hpp"
#include "target/worker.hpp"

namespace tapioca::stage {

class BackgroundDrainer {
public:
    struct DrainSettings {
        std::vector<LogPlace> logs;
        std::vector<LogPlace> beside;  ///< where the logs continue when their tier is full: left to the flush
        std::int64_t block_bytes = 0;  ///< size of the blocks of the target that are written as a whole
        std::uint64_t rate = 0;        ///< bytes per second; 0: no limit
    };
    BackgroundDrainer(DrainSettings wish, std::unique_ptr<target::Target> target, cpu_set_t const& cores);
    /// Waits until the block under way is written.
    ~BackgroundDrainer();
    BackgroundDrainer(BackgroundDrainer const&) = delete;
    BackgroundDrainer& operator=(BackgroundDrainer const&) = delete;

    core::Status launch();
    /// Stops draining. Nobody may append meanwhile. Returns the parts of the target, in blocks, that hold the latest
    /// bytes of these logs.
    [[nodiscard]] std::vector<Extent> pause();
    /// Makes durable what was drained. Only needed if the target is a set of subfiles: then each of its users has files
    /// of its own open. To be called between pause() and resume().
    [[nodiscard]] core::Status sync();
    /// Continues; `anew` after the logs were emptied.
    void resume(bool anew);

    /// Bytes that were drained so far.
    [[nodiscard]] std::uint64_t drained_bytes() const { return drained_.load(std::memory_order_relaxed); }

private:
    struct FollowedLog;
    /// A request, or a part of it.
    struct Reference {
        std::uint64_t epoch;
        std::size_t source;
        std::uint32_t rank;
        std::uint64_t number;  ///< number of the entry among the rank's entries
        std::uint64_t at;      ///< position of the entry in NAME.meta
        [[nodiscard]] auto key() const { return std::tuple(epoch, source, rank, number); }
    };
    struct LogBlock {
        std::vector<Reference> requests;
        std::int64_t bytes = 0;   ///< bytes of all its requests; overlapping bytes count more than once
        std::size_t drained = 0;  ///< how many requests the block had when it was drained; 0: never drained
    };
    void run();
    bool follow();
    void enter(Reference reference);
    [[nodiscard]] bool overflows() const;
    bool drain_one();
    bool drain(std::int64_t number, LogBlock& block);
    void keep_rate(std::int64_t bytes);
    [[nodiscard]] bool wanted() const { return !stop_ && !paused_; }

    DrainSettings wish_;
    std::unique_ptr<target::Target> target_;
    std::vector<std::unique_ptr<FollowedLog>> sources_;
    std::map<std::int64_t, LogBlock> blocks_;
    std::vector<std::int64_t> candidates_;                                 ///< blocks with new requests
    std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> gone_;  ///< by log and rank: the last void entry
    std::atomic<std::uint64_t> drained_ = 0;

    std::mutex mutex_;  ///< held while the thread works
    std::condition_variable changed_;
    std::atomic<bool> stop_ = false;
    std::atomic<bool> paused_ = false;
    bool broken_ = false;             ///< the target returned an error; a flush will report the reason
    std::atomic<bool> dead_ = false;  ///< out of memory, so requests may be missing: all is left to the flush
    target::Worker worker_;
};

}  // namespace tapioca::stage
