// Content: the requests in one or more logs, and what they come to. What a flush and a recovery work on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "pattern/summary.hpp"
#include "stage/files.hpp"
#include "stage/image.hpp"
#include "stage/merge.hpp"
#include "target/target.hpp"

namespace tapioca::stage {

/// What the requests of some epochs come to.
struct Batch {
    pattern::Variables variables;  ///< one, for the engine
    std::byte* data = nullptr;     ///< that its places in the buffer are relative to
    std::uint64_t bytes = 0;
    pattern::Variables claims;  ///< with what was left out: for looking whether ranks overlap
};

class Content {
public:
    /// Adds `ranks`' requests of the log at `place`, from `from` on; of all ranks, if none is named. A request that
    /// cannot be read is told by damage(), and those of its rank behind it are left out; so are those that the rank
    /// has handed over to the target.
    core::Status add(Place const& place, std::vector<std::uint32_t> ranks = {}, Image::Cursor const& from = {});
    /// What is added from now on is of other ranks, and only keeps older bytes out of batches, also where its rank has
    /// handed it over. Of that one, nothing is added any more.
    void others_than(std::uint32_t rank) { but_ = rank; }
    /// Leaves out what is of that epoch or before.
    void after(std::uint64_t epoch) { after_ = epoch; }

    struct Range {
        std::uint64_t first = UINT64_MAX;
        std::uint64_t last = 0;
    };
    /// The epochs there are.
    [[nodiscard]] Range epochs();
    /// Of the epochs first to last, without the bytes of `done`. Local.
    [[nodiscard]] Batch batch(std::uint64_t first, std::uint64_t last, std::vector<Extent> const& done = {});
    /// What is in the target already is left out of batches, unless this has read it from there (while nobody has
    /// overwritten it) or, after a crash, the log's own copy of it is to be trusted more.
    core::Status read_back(target::Target& target);
    void rewrite_stored() { again_ = true; }
    /// Checks the data's checksums and tells what is wrong. From then on a request that is, and those of its rank
    /// behind it, are left out. `progress` hears of bytes that were checked.
    [[nodiscard]] std::vector<std::string> verify(std::function<void(std::uint64_t)> const& progress = {});

    /// What went to the target at once cannot be relied on there.
    [[nodiscard]] bool tainted() const { return tainted_; }
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

    void forget_before(Stream& stream, Image::Cursor const& cursor);
    [[nodiscard]] std::byte const* data_to_write(std::span<std::byte const> bytes, Entry const& entry,
                                                 Stream const& stream) const;

    std::vector<std::shared_ptr<Log>> logs_;
    std::vector<Stream> streams_;
    std::uint64_t after_ = 0;
    std::optional<std::uint32_t> but_;
    std::vector<std::string> damage_;
    bool tainted_ = false;
    std::map<std::uint32_t, bool> whole_;                   ///< by rank: nothing is missing so far
    bool again_ = false;                                    ///< stored requests are written again
    std::vector<std::byte> read_back_;                      ///< or read from the target
    std::unordered_map<void const*, std::size_t> read_at_;  ///< by entry: its place in read_back_
};

}  // namespace tapioca::stage
