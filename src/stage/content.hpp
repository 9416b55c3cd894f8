// Content: the requests in one or more logs, and what they come to. What a flush and a recovery work on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "pattern/summary.hpp"
#include "stage/files.hpp"
#include "stage/image.hpp"
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

class Content {
public:
    /// Adds `ranks`' requests of the log at `place`, from `from` on; of all ranks, if none is named. A request that
    /// cannot be read is told by damage(), and those of its rank behind it are left out; so are those that the rank
    /// has handed over to the target.
    core::Status add(Place const& place, std::vector<std::uint32_t> ranks = {}, Image::Cursor const& from = {});
    /// The same of a log that is open: it may have lost its name.
    struct Held {
        int meta;
        int data;
    };
    core::Status add(Held held, Place const& place, std::vector<std::uint32_t> const& ranks, Image::Cursor const& from);
    /// What is added from now on is of other ranks, and only keeps older bytes out of batches, also where its rank has
    /// handed it over. Of that one, nothing is added any more.
    void others_than(std::uint32_t rank) { but_ = rank; }
    /// How many ranks' logs go on beside the target from the log at `place`, which was added.
    [[nodiscard]] std::uint64_t continued(Place const& place) const;
    /// Leaves out what is of that epoch or before.
    void after(std::uint64_t epoch) { after_ = epoch; }

    /// Of the epochs first to last, without the bytes of `done`. Local.
    [[nodiscard]] Batch batch(std::uint64_t first, std::uint64_t last, std::vector<Extent> const& done = {});
    /// All bytes that requests have written, each once. Local.
    [[nodiscard]] std::vector<Claim> claims();
    /// What went to the target at once is left out of batches, unless it cannot be relied on there: then the log's own
    /// copy of it is written again.
    void rewrite_stored() { again_ = true; }
    /// Checks the data's checksums and tells what is wrong. From then on a request that is, and those of its rank
    /// behind it, are left out. `progress` hears of bytes that were checked.
    [[nodiscard]] std::vector<std::string> verify(std::function<void(std::uint64_t)> const& progress = {});

    /// What went to the target at once cannot be relied on there.
    [[nodiscard]] bool tainted() const { return tainted_; }
    /// The latest of the logs' Counters::touched.
    [[nodiscard]] std::uint64_t touched_ns() const { return touched_ns_; }
    [[nodiscard]] std::uint64_t requests() const;
    [[nodiscard]] std::uint64_t bytes() const;
    [[nodiscard]] std::vector<std::string> const& damage() const { return damage_; }

private:
    struct Log;
    struct Stream {
        Log const* log;
        std::uint32_t rank;
        Image::Cursor from = {};           ///< what is before that is void
        bool other = false;                ///< only keeps older bytes out
        std::uint64_t sound = UINT64_MAX;  ///< so many entries can be relied on
        std::uint64_t requests = 0;
        std::uint64_t bytes = 0;
        struct Mark {
            std::uint64_t epoch;  ///< of the entry before
            Image::Cursor cursor;
        };
        std::vector<Mark> marks;  ///< every so many entries, to begin from
    };
    /// Calls visit(entry's bytes, entry, data or null) for requests of the epochs, oldest epoch first.
    template <class Visit>
    void each(std::uint64_t first, std::uint64_t last, Visit const& visit);

    core::Status enter(Place const& place, Mapped meta, Mapped data, std::vector<std::uint32_t> ranks,
                       Image::Cursor const& from);
    void forget_before(Stream& stream, Image::Cursor const& cursor);
    [[nodiscard]] std::byte const* data_to_write(Entry const& entry, Stream const& stream) const;

    std::vector<std::shared_ptr<Log>> logs_;
    std::vector<Stream> streams_;
    std::uint64_t after_ = 0;
    std::optional<std::uint32_t> but_;
    std::vector<std::string> damage_;
    bool tainted_ = false;
    std::uint64_t touched_ns_ = 0;
    std::map<std::uint32_t, bool> whole_;  ///< by rank: nothing is missing so far
    bool again_ = false;                   ///< stored requests are written again
};

}  // namespace tapioca::stage
