// Drain: brings one subfile from a node's tier into the directory of its set. The copy is called draining.N until it is
// complete and durable; then it gets its name, and the subfile on the tier is removed. So the subfile is complete in
// one of the two places at any time. Whoever drains it excludes others. All calls are local, and for one thread at a
// time.
//
// Next to the subfile on the tier, the file drained.N says how much of the copy is durable. A later drain goes on there
// if the subfile was not changed since.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "subfile/copy_stretch.hpp"
#include "subfile/tier_place.hpp"

namespace tapioca::subfile {

/// Stretches of bytes, in ascending order; those that touch are one.
class ByteRanges {
public:
    void add(std::int64_t begin, std::int64_t end);
    void remove(std::int64_t begin, std::int64_t end);
    /// The first that ends behind `offset`; an empty one at the highest offset if there is none.
    struct Range {
        std::int64_t begin, end;
    };
    [[nodiscard]] Range next(std::int64_t offset) const;

private:
    std::map<std::int64_t, std::int64_t> ends_;  ///< by where they begin
};

class Drain {
public:
    /// What is copied at a time begins and ends at multiples of this, as far as it can.
    static constexpr std::int64_t block_bytes = std::int64_t{8} << 20;
    /// After so many bytes, what was copied is made durable, and this is noted.
    static constexpr std::int64_t synced_bytes = std::int64_t{256} << 20;

    struct Subfile {
        std::string directory;  ///< of the set
        std::string place;      ///< of the set on the tier
        SetId identity;         ///< of the set
        std::uint32_t number;
        EmptyPlace empty = EmptyPlace::removed;  ///< what becomes of a place without subfiles
    };
    enum class Writer {
        ended,  ///< nobody changes the subfile any more
        writes  ///< the job that writes it drains it meanwhile; what an interrupted drain has copied does not count
    };
    /// Nothing if there is no such subfile on the tier, or if another drain has it. If it is in the directory already,
    /// because a drain was interrupted in its last step, it is compared, removed on the tier, and there is nothing to
    /// drain; fails if they differ.
    static core::Result<std::unique_ptr<Drain>> open(Subfile const& subfile, Writer writer);

    /// Size of the subfile on the tier when it was opened.
    [[nodiscard]] std::int64_t bytes() const { return bytes_; }
    /// How much of its beginning an earlier drain has copied.
    [[nodiscard]] std::int64_t there() const { return there_; }

    /// [begin, end) of the subfile is complete, or was changed: copies the whole blocks of all that is complete. Edges
    /// are kept for later. After a failure, what was given is still to be copied.
    core::Status copy(std::int64_t begin, std::int64_t end);
    /// The subfile has this many bytes: copies what is left of it, gives the copy its name, durably, and removes the
    /// subfile on the tier. If it is shorter, so is the copy. If this fails, a later drain goes on.
    core::Status finish(std::int64_t bytes);

private:
    Drain(Subfile subfile, Writer writer) : subfile_(std::move(subfile)), writer_(writer) {}
    core::Result<bool> begin();
    core::Result<bool> lock();
    core::Result<bool> settle_with_copy();
    core::Status open_copy();
    void find_earlier();
    core::Status copy_now(std::int64_t begin, std::int64_t end);
    core::Status note_durable();
    core::Status give_name();
    [[nodiscard]] core::Status check_unchanged() const;
    [[nodiscard]] std::string copy_path() const;
    [[nodiscard]] std::string tier_path() const;

    Subfile subfile_;
    Writer writer_;
    core::Descriptor directory_;
    core::Descriptor from_;
    core::Descriptor to_;
    core::Descriptor record_;  ///< drained.N, locked
    std::int64_t bytes_ = 0;
    std::int64_t there_ = 0;
    std::int64_t changed_ = 0;  ///< when the subfile was last changed before it was opened, in nanoseconds
    StretchCopier copier_;
    ByteRanges complete_;  ///< and not copied
    ByteRanges copied_;
    std::int64_t unsynced_ = 0;  ///< bytes copied since they were last made durable
};

/// Drains all of a subfile to which nothing is written any more. Calls `copied` now and then with the bytes that were
/// copied since the last time; those that an earlier drain has copied count. Returns whether there was something to
/// drain.
core::Result<bool> drain_subfile(Drain::Subfile const& subfile, Drain::Writer writer,
                                 std::function<void(std::int64_t bytes)> const& copied);

}  // namespace tapioca::subfile
