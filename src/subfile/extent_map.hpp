// ExtentMap: which bytes of a file lie where in its subfiles, as the records of an index and of journals say. Its
// memory is in proportion to the records: chunks that one record describes are never expanded.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "subfile/chunk_places.hpp"
#include "subfile/format.hpp"
#include "subfile/range_index.hpp"

namespace tapioca::subfile {

/// A part of a chunk that may have bytes of a range of the file.
struct Holding {
    std::uint32_t subfile;
    std::shared_ptr<ChunkForm const> form;
    FormPart const* part;
    std::uint64_t epoch;
    std::int64_t shift;     ///< is added to the layout's offsets
    std::int64_t position;  ///< of the part's data in the subfile
    std::int64_t end;       ///< bytes of the file from here on were cut off
};

/// Chunks of one form at equal distances, in the order in which they were written.
struct ChunkSeries {
    std::shared_ptr<ChunkForm const> form;
    std::uint64_t epoch = 0;
    std::int64_t shift = 0;
    std::uint64_t position = 0;
    std::uint64_t count = 1;
    std::uint64_t epoch_step = 0;
    std::int64_t shift_step = 0;
    std::uint64_t position_step = 0;

    [[nodiscard]] ChunkSeries chunk(std::uint64_t number) const
    {
        return {form, epoch + number * epoch_step, shift + static_cast<std::int64_t>(number) * shift_step,
                position + number * position_step};
    }
    [[nodiscard]] ChunkSeries last() const { return chunk(count - 1); }
    // Of the file.
    [[nodiscard]] std::int64_t begin() const { return form->begin + std::min(shift, last().shift); }
    [[nodiscard]] std::int64_t end() const { return form->end + std::max(shift, last().shift); }

    /// The chunks [first, last) that may have bytes of [begin, end), but for those of which later ones have every byte.
    struct Numbers {
        std::uint64_t first, last;
    };
    [[nodiscard]] Numbers touched(std::int64_t begin, std::int64_t end) const;
    /// How many chunks may have the same byte of the file, times their parts, if it is more than one chunk.
    [[nodiscard]] std::uint64_t depth() const;
};

/// What the series of an index may have as depth() in all: each read looks at so many parts. Chunks beyond it have
/// records of their own.
inline constexpr std::uint64_t most_depth = std::uint64_t{1} << 18;

class ExtentMap {
public:
    /// Takes a record, as next_record() returns it. Fails if it contradicts the records before it.
    core::Status add(std::span<std::byte const> record);

    /// The parts that may have bytes of [begin, end), earlier ones first: where they overlap, the last one counts.
    [[nodiscard]] std::vector<Holding> find(std::int64_t begin, std::int64_t end) const;
    /// One past the last byte that a chunk has.
    [[nodiscard]] std::int64_t end() const;
    /// The latest epoch.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    /// How many bytes each subfile must have at least, by its number.
    [[nodiscard]] std::map<std::uint32_t, std::uint64_t> const& subfiles() const { return subfiles_; }
    /// Whether there was a record about each of them.
    [[nodiscard]] bool all_announced() const { return announced_.size() == subfiles_.size(); }
    /// How many bytes its subfile must have for the last chunk of a record; 0 if it has a form that is not known.
    [[nodiscard]] std::uint64_t end_in_subfile(ChunkRecord const& record) const;
    /// The host on which a subfile was written; empty if it is not known.
    [[nodiscard]] std::string host_of(std::uint32_t subfile) const;
    void note_host(std::uint32_t subfile, std::string const& host) { hosts_[subfile] = host; }
    [[nodiscard]] std::size_t chunks() const { return chunks_; }
    /// How many records describe them, or would.
    [[nodiscard]] std::size_t series() const { return series_.size(); }
    [[nodiscard]] std::size_t forms() const { return forms_.size(); }
    /// Bytes of all chunks, including those that later chunks have replaced.
    [[nodiscard]] std::uint64_t data_bytes() const;
    /// Everything that counts as the records of an index. Chunks at equal distances become one record. Chunks that
    /// later ones have replaced as a whole, or that were cut off, are left out, and so are subfiles without chunks.
    [[nodiscard]] std::vector<std::byte> records(SetId const& identity) const;

private:
    using FormKey = std::pair<std::uint32_t, std::uint32_t>;  // subfile, number

    core::Status add_form(std::span<std::byte const> record);
    core::Status add_chunks(ChunkRecord const& record);
    core::Status announce(SubfileRecord const& subfile);
    void add_cut(std::uint64_t epoch, std::int64_t size);
    [[nodiscard]] std::int64_t limit(std::uint64_t epoch) const;
    [[nodiscard]] std::int64_t end_of(ChunkSeries const& series) const;
    [[nodiscard]] std::vector<ChunkSeries> live_chunks() const;

    std::map<FormKey, std::shared_ptr<ChunkForm const>> forms_;
    std::vector<ChunkSeries> series_;
    std::size_t chunks_ = 0;
    std::uint64_t depth_ = 0;  ///< of all series
    ChunkPlaces places_;
    RangeIndex ranges_;                           ///< of the file, that series have
    std::map<std::uint64_t, std::int64_t> cuts_;  ///< size by epoch, without those that a later, deeper cut replaces
    std::map<std::uint32_t, std::uint64_t> subfiles_;
    std::set<std::uint32_t> announced_;
    std::map<std::uint32_t, std::string> hosts_;
    std::uint64_t epoch_ = 0;
    mutable std::optional<std::int64_t> end_ = 0;  ///< see end()
};

}  // namespace tapioca::subfile
