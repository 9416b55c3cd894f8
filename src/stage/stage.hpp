// Stage: one rank's side of a staged file: its log, its epoch, and what to do when the log is full. Local.
//
// When its tier is full, the log goes on in a second pair of files beside the target, until the next flush. To drain
// old requests, or to write new ones to the target at once, would take no second copy; but then later bytes of other
// ranks, of which this one cannot know, could be overwritten by earlier ones.
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
    /// `overflow`: where the log goes on.
    Stage(LogWriter writer, LogPlace overflow, StageSync stage_sync)
        : writer_(std::move(writer)), overflow_place_(std::move(overflow)), stage_sync_(stage_sync)
    {
    }

    /// A collective call of the program begins: later requests win over those of all ranks before it.
    void advance() { epoch_ += 3; }
    /// The latest that a request can be of. Independent requests have an epoch of their own, after that of the
    /// collective call before them, and those of them that go to the target at once one after that.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_ + 2; }
    [[nodiscard]] StageSync stage_sync() const { return stage_sync_; }

    struct Write {
        pattern::Variable const& variable;
        std::int64_t shift = 0;
        std::byte const* data = nullptr;
        std::uint32_t number = 0;
        bool collective = true;
    };
    /// Logs a request.
    core::Status write(Write const& write);
    /// Logs a request that `through` writes to the target as well, because others should see it at once.
    core::Status write_through(Write const& write, std::function<core::Status()> const& through);

    /// What somebody is about to do with the target past the log.
    enum class PastTheLog { read, write };
    /// Writes what this rank has in the log to the target. Before a write it then is void: no flush, recovery or
    /// background drainer brings these bytes back, nor older ones of other ranks. Before a read it stays, and a flush
    /// writes it once more: bytes of other nodes' ranks may come between. `lasting`: the target's devices have it
    /// first, and the log's know of it.
    core::Status hand_over(target::Target& target, PastTheLog next, bool lasting);

    [[nodiscard]] bool empty() const { return entries() == 0; }
    /// From the first to behind the last byte that is in the log and was not handed over.
    [[nodiscard]] std::int64_t begin() const { return begin_; }
    [[nodiscard]] std::int64_t end() const { return end_; }
    /// Whether its tier became full for the first time just now, for a warning.
    [[nodiscard]] bool take_warning();
    /// All was flushed, and the file is being closed: from now on the log reads as empty. `first` where this rank is
    /// the log's first user.
    void finish(bool first);
    /// Removes the files beside the target; only once the log's first user has finished it.
    core::Status remove_overflow();
    /// Removes the log.
    core::Status remove(bool first);

    /// What is in the log. The view stays valid until reset().
    core::Result<std::shared_ptr<LogContent>> content() const;

    /// Other ranks of this node, whose bytes surface() has, too.
    void meet(NodeLogs neighbours) { neighbours_ = std::move(neighbours); }
    /// No byte that is in a log of this node is outside of it.
    struct LoggedRange {
        std::int64_t begin;
        std::int64_t end;
    };
    [[nodiscard]] LoggedRange range();
    /// What is in the logs of this node now, at least of [begin, end). Valid until the next call that is not const.
    core::Result<Surface*> surface(std::int64_t begin, std::int64_t end);

    core::Status sync();
    /// All was flushed. `empty` on the rank that empties a shared log, before the others.
    core::Status reset(bool empty);
    /// The log cannot be emptied, and must not be used any more.
    void give_up(std::string why) { writer_.give_up(std::move(why)); }
    /// What went to the target at once may be overwritten there by older bytes from now on.
    void mark_doubtful() { writer_.mark_doubtful(); }

    /// For the account.
    struct Totals {
        std::uint64_t requests = 0;
        std::uint64_t bytes = 0;
        std::uint64_t through = 0;    ///< of these, written to the target at once
        std::uint64_t overflow = 0;   ///< and logged beside the target, since the tier was full
        std::uint64_t overlays = 0;   ///< how often independent reads found something new in the logs
        std::uint64_t looked_at = 0;  ///< entries, by those and by handing over
        double seconds = 0;
    };
    Totals totals;

    [[nodiscard]] LogWriter const& writer() const { return writer_; }
    [[nodiscard]] LogWriter& writer() { return writer_; }

private:
    /// Has the request appended to the log, wherever there is room.
    core::Status append(std::function<core::Status(LogWriter&)> const& to);
    [[nodiscard]] core::Result<LogWriter> go_on_beside() const;
    core::Result<std::shared_ptr<LogContent>> content_since(LogContent::Mark const& mark) const;
    /// What is in all logs of the node.
    core::Result<std::shared_ptr<LogContent>> everything() const;
    /// How much of this rank's is in the target.
    struct Written {
        LogContent::Mark mark;
        std::uint64_t entries = 0;
    };
    [[nodiscard]] Written so_far() const;
    [[nodiscard]] std::uint64_t entries() const { return writer_.entries() + (overflow_ ? overflow_->entries() : 0); }
    void widen(Write const& write);
    /// Whether the log must survive the machine once this is in it.
    [[nodiscard]] bool syncs(Write const& write) const
    {
        return stage_sync_ == StageSync::write || (stage_sync_ == StageSync::collective && write.collective);
    }
    /// A request's epoch, no earlier than that of this rank's request before it.
    [[nodiscard]] std::uint64_t enter(std::uint64_t epoch) { return last_ = std::max(last_, epoch); }

    LogWriter writer_;
    LogPlace overflow_place_;
    std::optional<LogWriter> overflow_;  ///< from when the tier was full on
    StageSync stage_sync_;
    std::uint64_t epoch_ = 1;
    std::uint64_t last_ = 1;  ///< of the last request
    std::int64_t begin_ = pattern::no_offset;
    std::int64_t end_ = 0;
    bool warned_ = false;
    bool named_ = false;  ///< the files' names are durable

    NodeLogs neighbours_;

    std::uint64_t void_entries_ = 0;  ///< so many were handed over for good
    Written written_;
    bool settled_ = true;  ///< so it is on the target's devices, and the log's know of it

    std::optional<Surface> surface_;
    std::uint64_t seen_ = 0;  ///< of this rank's entries, those that are in it
};

}  // namespace tapioca::stage
