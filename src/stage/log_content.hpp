// LogContent: the requests in one or more logs, and the bytes that result from them. Flush and recovery work on this.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "pattern/summary.hpp"
#include "stage/log_files.hpp"
#include "stage/log_image.hpp"
#include "stage/merge.hpp"

namespace tapioca::stage {

/// The result of the requests of some epochs.
struct Batch {
    pattern::Variables variables;  ///< one variable, for the engine
    std::byte* data = nullptr;     ///< the variable's places in the buffer are relative to this
    std::uint64_t bytes = 0;
    pattern::Variables claims;  ///< includes what was left out, for checking whether ranks overlap
};

/// Bytes of the file, and the epoch of the latest request that wrote them.
struct Claim {
    std::int64_t begin;
    std::int64_t end;
    std::uint64_t epoch;
    bool in_log;  ///< the log has them; otherwise they went to the target at once, or were handed over
};

class LogContent {
public:
    /// Adds the requests of `ranks` in the log at `place`, from `from` on; those of all ranks if none is named. If a
    /// request cannot be read, damage() says so, and the later requests of its rank are left out. Requests that a rank
    /// has handed over are void: they keep their place in the order, but are not written.
    core::Status add(LogPlace const& place, std::vector<std::uint32_t> const& ranks = {},
                     LogImage::EntryCursor const& from = {});
    /// The same for a log that is open and may have lost its name.
    struct OpenLog {
        int meta;
        int data;
    };
    core::Status add(OpenLog held, LogPlace const& place, std::vector<std::uint32_t> const& ranks,
                     LogImage::EntryCursor const& from);
    /// How far each rank's entries in a log have been read.
    using Cursors = std::map<std::uint32_t, LogImage::EntryCursor>;
    /// Adds the requests of ranks other than `rank` from `epoch` on. They are not written, but keep older bytes out of
    /// batches. `passed`: earlier entries, which are not read again.
    core::Status add_others(LogPlace const& place, std::uint32_t rank, std::uint64_t epoch, Cursors& passed);
    /// How many ranks' logs continue beside the target from the log at `place`, which was added.
    [[nodiscard]] std::uint64_t continued(LogPlace const& place) const;
    /// Leaves out requests of this epoch and earlier ones.
    void after(std::uint64_t epoch) { after_ = epoch; }

    /// The batch of the epochs from `first` to `last`, without the bytes of `done`. Local.
    [[nodiscard]] Batch batch(std::uint64_t first, std::uint64_t last, std::vector<Extent> const& done = {});
    /// All bytes of [begin, end) that requests have written, each once. Local.
    [[nodiscard]] std::vector<Claim> claims(std::int64_t begin, std::int64_t end);
    /// Requests that went to the target at once are left out of batches. After this call, the log's own copies of them
    /// are written again, because the target cannot be relied on.
    void rewrite_stored() { again_ = true; }
    /// Verifies the data's checksums and describes what is wrong. From then on, a damaged request and the later
    /// requests of its rank are left out. `progress` is told the number of bytes that were verified.
    [[nodiscard]] std::vector<std::string> verify(std::function<void(std::uint64_t)> const& progress = {});

    /// True if data that went to the target at once cannot be relied on there.
    [[nodiscard]] bool doubtful() const { return doubtful_; }
    /// The latest of the logs' Counters::touched.
    [[nodiscard]] std::uint64_t touched_ns() const { return touched_ns_; }
    /// How many entries were read.
    [[nodiscard]] std::uint64_t looked_at() const { return looked_at_; }
    /// The epoch of the earliest of these requests; greater than any epoch if there is none.
    [[nodiscard]] std::uint64_t first_epoch() const { return first_epoch_; }
    /// A position among a rank's entries, in its log and in the continuation beside the target.
    struct Mark {
        LogImage::EntryCursor log;
        LogImage::EntryCursor beside;
        std::uint64_t generation = 0;  ///< of the log
        [[nodiscard]] bool at_the_beginning() const { return log.entries == 0 && beside.entries == 0; }
    };
    /// The position after the last entry that was added for a rank whose log was added first.
    [[nodiscard]] Mark end_of(std::uint32_t rank) const;
    /// Whether the rank says, anywhere in what was added, that it has handed over everything before.
    [[nodiscard]] bool has_handed_over(std::uint32_t rank) const;
    /// The generation of the first log.
    [[nodiscard]] std::uint64_t generation() const;
    [[nodiscard]] std::uint64_t requests() const;
    [[nodiscard]] std::uint64_t bytes() const;
    [[nodiscard]] std::vector<std::string> const& damage() const { return damage_; }

private:
    struct Log;
    struct Stream {
        Log const* log;
        std::uint32_t rank;
        LogImage::EntryCursor from = {};   ///< entries before this were not asked for
        std::uint64_t others_since = 0;    ///< if not 0: another rank's, which keeps older bytes out from this epoch on
        std::uint64_t sound = UINT64_MAX;  ///< number of entries that can be relied on
        std::uint64_t gone = 0;            ///< number of entries that were handed over and only keep older bytes out
        std::uint64_t requests = 0;        ///< number of the other requests
        std::uint64_t bytes = 0;
        LogImage::EntryCursor to = {};  ///< position after the last of them
        struct Mark {
            std::uint64_t epoch;  ///< epoch of the previous entry
            LogImage::EntryCursor cursor;
        };
        std::vector<Mark> marks = {};  ///< positions at regular intervals, from which reading can start
    };
    /// Calls visit(entry's bytes, entry, its stream, data to write or null) for requests of the epochs, oldest epoch
    /// first.
    template <class Visit>
    void each(std::uint64_t first, std::uint64_t last, Visit const& visit);

    core::Result<std::shared_ptr<Log>> look_into(OpenLog held, LogPlace const& place, bool data, std::uint64_t begin);
    void enter(Log const& log, Stream stream);
    void read(Stream& stream, std::string& what);
    void hand_over(Stream& stream, std::uint64_t entries);
    [[nodiscard]] std::byte const* data_to_write(LogEntry const& entry, Stream const& stream,
                                                 std::uint64_t number) const;

    std::vector<std::shared_ptr<Log>> logs_;
    std::vector<Stream> streams_;
    std::uint64_t after_ = 0;
    std::vector<std::string> damage_;
    bool doubtful_ = false;
    std::uint64_t touched_ns_ = 0;
    std::map<std::uint32_t, bool> whole_;  ///< by rank: true while nothing is missing
    bool again_ = false;                   ///< requests that went to the target at once are written again
    std::uint64_t looked_at_ = 0;
    std::uint64_t first_epoch_ = UINT64_MAX;
};

}  // namespace tapioca::stage
