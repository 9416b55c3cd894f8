// LogContent: the requests in one or more logs, and what they come to. What a flush and a recovery work on.
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

/// What the requests of some epochs come to.
struct Batch {
    pattern::Variables variables;  ///< one, for the engine
    std::byte* data = nullptr;     ///< that its places in the buffer are relative to
    std::uint64_t bytes = 0;
    pattern::Variables claims;  ///< with what was left out: for looking whether ranks overlap
};

/// Bytes of the file, and the epoch of the latest request that wrote them.
struct Claim {
    std::int64_t begin;
    std::int64_t end;
    std::uint64_t epoch;
};

class LogContent {
public:
    /// Adds `ranks`' requests of the log at `place`, from `from` on; of all ranks, if none is named. A request that
    /// cannot be read is told by damage(), and those of its rank behind it are left out. What the rank has handed over
    /// is void: it keeps its place among the requests of others, but is not written.
    core::Status add(LogPlace const& place, std::vector<std::uint32_t> const& ranks = {},
                     LogImage::EntryCursor const& from = {});
    /// The same of a log that is open: it may have lost its name.
    struct OpenLog {
        int meta;
        int data;
    };
    core::Status add(OpenLog held, LogPlace const& place, std::vector<std::uint32_t> const& ranks,
                     LogImage::EntryCursor const& from);
    /// How far the ranks' entries in a log were looked at.
    using Cursors = std::map<std::uint32_t, LogImage::EntryCursor>;
    /// Adds the requests of other ranks than `rank` that are of `epoch` or later; they only keep older bytes out of
    /// batches. `passed`: earlier ones, which are not looked at again.
    core::Status add_others(LogPlace const& place, std::uint32_t rank, std::uint64_t epoch, Cursors& passed);
    /// How many ranks' logs go on beside the target from the log at `place`, which was added.
    [[nodiscard]] std::uint64_t continued(LogPlace const& place) const;
    /// Leaves out what is of that epoch or before.
    void after(std::uint64_t epoch) { after_ = epoch; }

    /// Of the epochs first to last, without the bytes of `done`. Local.
    [[nodiscard]] Batch batch(std::uint64_t first, std::uint64_t last, std::vector<Extent> const& done = {});
    /// All bytes of [begin, end) that requests have written, each once. Local.
    [[nodiscard]] std::vector<Claim> claims(std::int64_t begin, std::int64_t end);
    /// What went to the target at once is left out of batches, unless it cannot be relied on there: then the log's own
    /// copy of it is written again.
    void rewrite_stored() { again_ = true; }
    /// Checks the data's checksums and tells what is wrong. From then on a request that is, and those of its rank
    /// behind it, are left out. `progress` hears of bytes that were checked.
    [[nodiscard]] std::vector<std::string> verify(std::function<void(std::uint64_t)> const& progress = {});

    /// What went to the target at once cannot be relied on there.
    [[nodiscard]] bool doubtful() const { return doubtful_; }
    /// The latest of the logs' Counters::touched.
    [[nodiscard]] std::uint64_t touched_ns() const { return touched_ns_; }
    /// How many entries were looked at.
    [[nodiscard]] std::uint64_t looked_at() const { return looked_at_; }
    /// The epoch of the earliest of these requests; later than any if there is none.
    [[nodiscard]] std::uint64_t first_epoch() const { return first_epoch_; }
    /// A place among a rank's entries, in its log and where that goes on beside the target.
    struct Mark {
        LogImage::EntryCursor log;
        LogImage::EntryCursor beside;
        std::uint64_t generation = 0;  ///< of the log
        [[nodiscard]] bool at_the_beginning() const { return log.entries == 0 && beside.entries == 0; }
    };
    /// Behind what was added of a rank, whose log came first.
    [[nodiscard]] Mark end_of(std::uint32_t rank) const;
    /// Whether the rank says somewhere in what was added that it has handed over all that came before.
    [[nodiscard]] bool has_handed_over(std::uint32_t rank) const;
    /// Of the first log.
    [[nodiscard]] std::uint64_t generation() const;
    [[nodiscard]] std::uint64_t requests() const;
    [[nodiscard]] std::uint64_t bytes() const;
    [[nodiscard]] std::vector<std::string> const& damage() const { return damage_; }

private:
    struct Log;
    struct Stream {
        Log const* log;
        std::uint32_t rank;
        LogImage::EntryCursor from = {};  ///< what is before that was not asked for
        std::uint64_t others_since = 0;   ///< if not 0: another's, of which what is of this epoch keeps older bytes out
        std::uint64_t sound = UINT64_MAX;  ///< so many entries can be relied on
        std::uint64_t gone = 0;            ///< so many were handed over, and only keep older bytes out
        std::uint64_t requests = 0;        ///< of the others
        std::uint64_t bytes = 0;
        LogImage::EntryCursor to = {};  ///< behind the last of them
        struct Mark {
            std::uint64_t epoch;  ///< of the entry before
            LogImage::EntryCursor cursor;
        };
        std::vector<Mark> marks = {};  ///< every so many entries, to begin from
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
    std::map<std::uint32_t, bool> whole_;  ///< by rank: nothing is missing so far
    bool again_ = false;                   ///< stored requests are written again
    std::uint64_t looked_at_ = 0;
    std::uint64_t first_epoch_ = UINT64_MAX;
};

}  // namespace tapioca::stage
