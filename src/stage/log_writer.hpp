// LogWriter: appends one rank's requests to a log. Local; no communication.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pattern/variable.hpp"
#include "stage/log_files.hpp"
#include "stage/log_format.hpp"
#include "stage/log_image.hpp"
#include "target/changes.hpp"

namespace tapioca::stage {

class LogWriter {
public:
    /// A new log, of which this rank is the first user.
    static core::Result<LogWriter> create(LogPlace const& place, Head head);
    /// The log of another rank of this node, which shares it.
    static core::Result<LogWriter> join(LogPlace const& place, std::uint32_t rank);

    /// Gives the log another place in the same file system, over what is there.
    core::Status move_to(LogPlace const& place);

    /// Most bytes that this rank may have in it.
    void limit(std::uint64_t bytes) { limit_ = bytes; }

    /// Appends a request: `variable`, moved by `shift`, with its packed bytes at `data`. Errc::no_space, with nothing
    /// appended, if the log is full.
    core::Status append(pattern::Variable const& variable, std::int64_t shift, std::byte const* data,
                        std::uint64_t epoch, std::uint32_t number);
    /// The same for a request whose bytes went to the target at once.
    core::Status append_stored(pattern::Variable const& variable, std::int64_t shift, std::byte const* data,
                               std::uint64_t epoch, std::uint32_t number);
    /// Notes that all this rank has appended so far, from `begin` to `end` in the file, is in the target, and void.
    core::Status append_gone(std::int64_t begin, std::int64_t end, std::uint64_t epoch);
    /// See Counters::doubtful; until it is emptied.
    void mark_doubtful();
    /// Where it is noted when this rank is about to change the target; see Counters::touched. Valid as long as this.
    [[nodiscard]] std::shared_ptr<target::Changes> const& changes() const { return changes_; }
    /// `ahead_ns`: how far the clock of the target's times is ahead of this host's; `durable`: what is noted survives
    /// the machine, or is at most half a second older.
    void note_changes(std::int64_t ahead_ns, bool durable);
    /// Notes that this rank's log goes on beside the target, until it is emptied.
    void tell_beside();
    /// Notes that all of it is in the target and that it is about to be removed: whoever finds it later reads it as
    /// empty. Nothing is appended after that. Only on the log's first user.
    void finish();
    /// Appends nothing any more; says why.
    void give_up(std::string why) { why_broken_ = std::move(why); }
    /// Tells other processes, without delay, that requests reach from `begin` to `end`.
    void tell_range(std::int64_t begin, std::int64_t end);
    /// Tells them that something was appended elsewhere.
    void tell_appended();
    /// Behind the last entry.
    [[nodiscard]] LogImage::EntryCursor cursor() const;
    /// Makes what was appended survive the machine. `parent`: the new names as well.
    core::Status sync(bool parent);
    /// Empties the log. Where several share it, the first user does so with `empty`, then the others without.
    core::Status reset(std::uint64_t epoch, bool empty);

    [[nodiscard]] LogPlace const& place() const { return place_; }
    /// Fails if other files have these names by now.
    [[nodiscard]] core::Status check_place() const;
    /// Somebody has removed the log.
    [[nodiscard]] bool is_removed() const;
    [[nodiscard]] Head const& head() const { return head_; }
    [[nodiscard]] std::uint32_t rank() const { return rank_; }
    [[nodiscard]] std::uint64_t entries() const { return entries_; }
    /// Bytes of the log that this rank has been dealt.
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
    core::Status append(pattern::Variable const& variable, std::int64_t shift, std::byte const* data, Note note);
    /// Where the counter stood before `bytes` were dealt.
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

    std::uint64_t data_at_ = 0;  ///< the next free byte of what this rank was dealt of NAME.data
    std::uint64_t data_end_ = 0;
    MappedFile window_;  ///< a part of NAME.data, for small requests and for shared logs
    std::uint64_t window_begin_ = 0;
};

}  // namespace tapioca::stage
