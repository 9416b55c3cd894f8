// BackgroundDrainer: drains the logs of a node while the program computes. One thread, no MPI.
//
// It follows the logs of its node's ranks and writes blocks of the target that they cover completely. What it wrote
// stays in the logs: whether ranks of other nodes have written the same bytes, earlier or later, only a flush finds
// out. If they have not, the flush leaves those blocks out; if they have, it writes all once more, in the right order.
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
        std::vector<LogPlace> beside;  ///< where they go on when their tier is full: then all is the flush's
        std::int64_t block_bytes = 0;  ///< blocks of the target that are written whole
        std::uint64_t rate = 0;        ///< bytes a second; 0: as fast as it goes
    };
    BackgroundDrainer(DrainSettings wish, std::unique_ptr<target::Target> target, cpu_set_t const& cores);
    /// Ends when the block under way is written.
    ~BackgroundDrainer();
    BackgroundDrainer(BackgroundDrainer const&) = delete;
    BackgroundDrainer& operator=(BackgroundDrainer const&) = delete;

    core::Status launch();
    /// Stops draining, while nobody appends. What of the target holds the latest of these logs, in blocks.
    [[nodiscard]] std::vector<Extent> pause();
    /// Goes on; `anew` after the logs were emptied.
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
        std::uint64_t number;  ///< of the rank's entries
        std::uint64_t at;      ///< where the entry is in NAME.meta
        [[nodiscard]] auto key() const { return std::tuple(epoch, source, rank, number); }
    };
    struct LogBlock {
        std::vector<Reference> requests;
        std::int64_t bytes = 0;   ///< of all its requests, overlaps counted twice
        std::size_t drained = 0;  ///< how many requests it had then; 0: never
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
    std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> gone_;  ///< by source and rank: the last void entry
    std::atomic<std::uint64_t> drained_ = 0;

    std::mutex mutex_;  ///< held while it works
    std::condition_variable changed_;
    std::atomic<bool> stop_ = false;
    std::atomic<bool> paused_ = false;
    bool broken_ = false;             ///< the target refuses: a flush will tell why
    std::atomic<bool> dead_ = false;  ///< out of memory, with requests that it may have missed: all is the flush's
    target::Worker worker_;
};

}  // namespace tapioca::stage
