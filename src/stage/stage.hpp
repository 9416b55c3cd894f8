// Stage: one rank's part of a staged file: its log, its epoch, and what to do when the log is full. Local.
//
// When its tier is full, the log continues in a second pair of files beside the target until the next flush. Draining
// old requests, or writing new ones to the target at once, would avoid the second copy. But then earlier bytes could
// overwrite later bytes of other ranks, which this rank does not know about.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include <tapioca/options.hpp>

#include "stage/log_content.hpp"
#include "stage/log_writer.hpp"
#include "stage/node_logs.hpp"
#include "stage/surface.hpp"
#include "target/target.hpp"

namespace tapioca::stage {

class Stage {
public:
    /// `overflow`: where the log continues when its tier is full.
    Stage(LogWriter writer, LogPlace overflow, StageSync stage_sync)
        : writer_(std::move(writer)), overflow_place_(std::move(overflow)), stage_sync_(stage_sync)
    {
    }

    /// A collective call of the program begins: later requests win over all ranks' requests before it.
    void advance() { epoch_ += 3; }
    /// The latest epoch that a request can have. Independent requests have an epoch of their own, after that of the
    /// collective call before them; those that go to the target at once have yet another one after that.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_ + 2; }
    /// The number of the collective call of the program that came last before a request of this epoch.
    [[nodiscard]] static std::uint64_t call_of(std::uint64_t epoch) { return (epoch - 1) / 3; }
    [[nodiscard]] StageSync stage_sync() const { return stage_sync_; }

    struct Write {
        pattern::Variable const& variable;
        std::int64_t shift = 0;
        RequestData data = nullptr;
        std::uint32_t number = 0;
        bool collective = true;
    };
    /// Logs a request.
    core::Status write(Write const& write);
    /// Logs a request that `through` also writes to the target, because others should see it at once.
    core::Status write_through(Write const& write, std::function<core::Status()> const& through);

    /// The access to the target, past the log, that is about to be made.
    enum class PastTheLog { read, write };
    /// Writes what this rank has in the log to the target. Before a write, these log entries become void: no flush,
    /// recovery or background drainer writes them again, nor older bytes of other ranks in their place. Before a read
    /// they stay valid, and a flush writes them once more, because bytes of other nodes' ranks may come between.
    /// `lasting`: the data is first made durable on the target's devices, and the entry that says so on the log's.
    core::Status hand_over(target::Target& target, PastTheLog next, bool lasting);

    [[nodiscard]] bool empty() const { return entries() == 0; }
    /// The range, from the first byte to the end of the last, of what is in the log and was not handed over.
    [[nodiscard]] std::int64_t begin() const { return begin_; }
    [[nodiscard]] std::int64_t end() const { return end_; }
    /// True once, after the tier became full for the first time; for a warning.
    [[nodiscard]] bool take_warning();
    /// Everything was flushed, and the file is being closed: from now on the log reads as empty. `first`: this rank is
    /// the log's first user.
    void finish(bool first);
    /// Removes the files beside the target. Only after the log's first user has called finish().
    core::Status remove_overflow();
    /// Removes the log.
    core::Status remove(bool first);

    /// What is in the log. The view stays valid until reset().
    core::Result<std::shared_ptr<LogContent>> content() const;

    /// Sets the other ranks of this node, whose bytes surface() includes.
    void meet(NodeLogs neighbours) { neighbours_ = std::move(neighbours); }
    /// A range that contains every byte that is in a log of this node.
    struct LoggedRange {
        std::int64_t begin;
        std::int64_t end;
    };
    [[nodiscard]] LoggedRange range();
    /// How many entries surface() reads at most, besides this rank's own.
    [[nodiscard]] std::uint64_t entries_of_neighbours() { return neighbours_.entries(); }
    /// The contents of this rank's log now, and those of this node's other logs at least within [begin, end). Valid
    /// until the next call that is not const.
    core::Result<Surface*> surface(std::int64_t begin, std::int64_t end);

    core::Status sync();
    /// Everything was flushed: empties the log. `empty` on the rank that empties a shared log, before the others.
    core::Status reset(bool empty);
    /// The log cannot be emptied, and must not be used any more.
    void give_up(std::string why) { writer_.give_up(std::move(why)); }
    /// From now on, older bytes may overwrite data in the target that went there at once.
    void mark_doubtful() { writer_.mark_doubtful(); }

    /// Figures for the account.
    struct Totals {
        std::uint64_t requests = 0;
        std::uint64_t bytes = 0;
        std::uint64_t through = 0;    ///< of these, bytes that were written to the target at once
        std::uint64_t overflow = 0;   ///< of these, bytes that were logged beside the target because the tier was full
        std::uint64_t overlays = 0;   ///< how often independent reads found something new in the logs
        std::uint64_t looked_at = 0;  ///< entries that these reads and handing over have read
        double seconds = 0;
    };
    Totals totals;

    [[nodiscard]] LogWriter const& writer() const { return writer_; }
    [[nodiscard]] LogWriter& writer() { return writer_; }

private:
    /// Appends the request to the log, wherever there is room.
    core::Status append(std::function<core::Status(LogWriter&)> const& to);
    [[nodiscard]] core::Result<LogWriter> go_on_beside() const;
    core::Result<std::shared_ptr<LogContent>> content_since(LogContent::Mark const& mark) const;
    /// The contents of all logs of the node.
    core::Result<std::shared_ptr<LogContent>> everything() const;
    /// How much of this rank's data is in the target.
    struct Written {
        LogContent::Mark mark;
        std::uint64_t entries = 0;
    };
    [[nodiscard]] Written so_far() const;
    [[nodiscard]] std::uint64_t entries() const { return writer_.entries() + (overflow_ ? overflow_->entries() : 0); }
    void widen(Write const& write);
    /// Whether the log must be synced after this request was appended.
    [[nodiscard]] bool syncs(Write const& write) const
    {
        return stage_sync_ == StageSync::write || (stage_sync_ == StageSync::collective && write.collective);
    }
    /// A request's epoch, which is no earlier than that of this rank's previous request.
    [[nodiscard]] std::uint64_t enter(std::uint64_t epoch) { return last_ = std::max(last_, epoch); }

    LogWriter writer_;
    LogPlace overflow_place_;
    std::optional<LogWriter> overflow_;  ///< exists from when the tier was full
    bool overflow_left_ = false;         ///< its files could not be removed
    StageSync stage_sync_;
    std::uint64_t epoch_ = 1;
    std::uint64_t last_ = 1;  ///< epoch of the last request
    std::int64_t begin_ = pattern::no_offset;
    std::int64_t end_ = 0;
    bool warned_ = false;
    bool named_ = false;  ///< the files' names are durable

    NodeLogs neighbours_;

    std::uint64_t void_entries_ = 0;  ///< number of entries that were handed over and are void
    Written written_;
    bool settled_ = true;  ///< the void entries' data is on the target's devices, and the log's devices have the note

    std::optional<Surface> surface_;
    std::uint64_t seen_ = 0;  ///< how many of this rank's entries are in the surface
};

}  // namespace tapioca::stage
