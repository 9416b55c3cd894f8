// LogWriter: appends one rank's requests to a log. All functions are local.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pattern/variable.hpp"
#include "stage/log_files.hpp"
#include "stage/log_format.hpp"
#include "stage/log_image.hpp"
#include "stage/request_data.hpp"
#include "target/changes.hpp"

namespace tapioca::stage {

class LogWriter {
public:
    /// Creates a log, of which this rank is the first user.
    static core::Result<LogWriter> create(LogPlace const& place, Head head);
    /// Opens the log of another rank of this node, to share it.
    static core::Result<LogWriter> join(LogPlace const& place, std::uint32_t rank);

    /// Moves the log to another place in the same file system, replacing any file that is there.
    core::Status move_to(LogPlace const& place);

    /// Sets the most bytes that this rank may have in the log.
    void limit(std::uint64_t bytes) { limit_ = bytes; }

    /// Appends a request: `variable`, shifted by `shift`, with its bytes. If the log is full, returns
    /// Errc::no_space and appends nothing.
    core::Status append(pattern::Variable const& variable, std::int64_t shift, RequestData const& data,
                        std::uint64_t epoch, std::uint32_t number);
    /// Appends a request whose bytes also went to the target at once.
    core::Status append_stored(pattern::Variable const& variable, std::int64_t shift, RequestData const& data,
                               std::uint64_t epoch, std::uint32_t number);
    /// Notes that everything that this rank has appended so far, from `begin` to `end` in the file, is in the target,
    /// and void.
    core::Status append_gone(std::int64_t begin, std::int64_t end, std::uint64_t epoch);
    /// Sets Counters::doubtful until the log is emptied.
    void mark_doubtful();
    /// Records when this rank is about to change the target; see Counters::touched. Valid as long as this object.
    [[nodiscard]] std::shared_ptr<target::Changes> const& changes() const { return changes_; }
    /// `ahead_ns`: how far the clock of the target's times is ahead of this host's. `durable`: the recorded time
    /// survives a crash of the machine, or is at most half a second older.
    void note_changes(std::int64_t ahead_ns, bool durable);
    /// Notes that this rank's log continues beside the target, until the log is emptied.
    void tell_beside();
    /// Notes that everything in the log is in the target and that the log is about to be removed: from then on it reads
    /// as empty. Nothing may be appended after that. Only for the log's first user.
    void finish();
    /// Refuses all further requests, with this reason.
    void give_up(std::string why) { why_broken_ = std::move(why); }
    /// Tells other processes at once that the requests extend from `begin` to `end`.
    void tell_range(std::int64_t begin, std::int64_t end);
    /// Tells other processes that something was appended elsewhere.
    void tell_appended();
    /// The position after the last entry.
    [[nodiscard]] LogImage::EntryCursor cursor() const;
    /// Makes what was appended survive a crash of the machine. `parent`: also the names of the new files.
    core::Status sync(bool parent);
    /// Empties the log. If several ranks share it, the first user calls this with `empty`, then the others without.
    core::Status reset(std::uint64_t epoch, bool empty);

    [[nodiscard]] LogPlace const& place() const { return place_; }
    /// Fails if these names belong to other files by now.
    [[nodiscard]] core::Status check_place() const;
    /// True if somebody has removed the log.
    [[nodiscard]] bool is_removed() const;
    [[nodiscard]] Head const& head() const { return head_; }
    [[nodiscard]] std::uint32_t rank() const { return rank_; }
    [[nodiscard]] std::uint64_t entries() const { return entries_; }
    /// Bytes of the log that are allocated to this rank.
    [[nodiscard]] std::uint64_t used_bytes() const { return used_; }
    [[nodiscard]] int meta_descriptor() const { return meta_.get(); }
    [[nodiscard]] int data_descriptor() const { return data_.get(); }

private:
    LogWriter(LogPlace place, Descriptor meta, Descriptor data, Head const& head, std::uint32_t rank)
        : place_(std::move(place)), meta_(std::move(meta)), data_(std::move(data)), head_(head), rank_(rank)
    {
    }
    core::Status attach();
    void say_emptied(std::uint64_t generation);
    core::Status append(pattern::Variable const& variable, std::int64_t shift, RequestData const& data, Note note);
    /// Returns the value of the counter before `bytes` were allocated.
    core::Result<std::uint64_t> deal_block(std::uint64_t bytes);
    core::Result<std::uint64_t> deal_data(std::uint64_t bytes);
    core::Status make_room_for_entries(std::uint64_t bytes);
    core::Status add_block(std::uint64_t bytes);
    core::Result<std::uint64_t> make_room_for_data(std::uint64_t bytes);
    core::Status open_window(std::uint64_t position, std::uint64_t end);
    core::Status store(std::uint64_t position, std::span<std::byte const> bytes);

    LogPlace place_;
    Descriptor meta_;
    Descriptor data_;
    Head head_;
    std::uint32_t rank_;
    std::uint64_t seed_ = 0;
    std::uint64_t limit_ = UINT64_MAX;
    std::uint64_t used_ = 0;
    std::uint64_t entries_ = 0;
    std::string why_broken_;

    MappedFile first_page_;          ///< of NAME.meta, for the counters
    MappedFile block_;               ///< the block of NAME.meta that is being filled
    std::uint64_t block_begin_ = 0;  ///< in the file
    std::uint64_t block_at_ = 0;
    std::uint64_t blocks_ = 0;
    std::uint64_t last_epoch_ = 0;

    std::shared_ptr<target::Changes> changes_;

    std::uint64_t data_at_ = 0;  ///< the next free byte of NAME.data that is allocated to this rank
    std::uint64_t data_end_ = 0;
    MappedFile window_;  ///< a part of NAME.data, for small requests and for shared logs
    std::uint64_t window_begin_ = 0;
};

}  // namespace tapioca::stage
