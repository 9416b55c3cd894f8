// LogImage: the entries in the bytes of a NAME.meta file, whoever wrote it and wherever it was cut off.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stage/log_format.hpp"

namespace tapioca::stage {

class LogImage {
public:
    /// `meta` must outlive the image. Fails if its head cannot be read; what is wrong further on is told by damage().
    /// It may be the mapping of a file that others append to: then `end` is Counters::meta_end as it was before the
    /// file's size was asked for, since the file has a block before the counter says so.
    /// `begin`: where the first block is that matters, of those that an image had; else all do.
    static core::Result<LogImage> of(std::span<std::byte const> meta, std::uint64_t end = UINT64_MAX,
                                     std::uint64_t begin = 0);

    [[nodiscard]] Head const& head() const { return head_; }
    [[nodiscard]] std::uint64_t seed() const { return seed_; }
    /// The ranks that have entries.
    [[nodiscard]] std::vector<std::uint32_t> ranks() const;

    /// Where a rank's next entry is.
    struct EntryCursor {
        std::size_t block = 0;
        std::uint64_t at = sizeof(LogBlock);
        std::uint64_t entries = 0;  ///< behind it
        std::uint64_t epoch = 0;    ///< of the last of them
        std::uint64_t begin = 0;    ///< where the block is in the file, as far as that is known
    };
    /// The bytes of the next entry, whose checksum fits, and moves on; none at the end or at the first damage, which is
    /// then noted in `damage`.
    [[nodiscard]] std::span<std::byte const> next(std::uint32_t rank, EntryCursor& cursor, std::string& damage) const;

    /// Whether the rank has handed over what it had, and noted that somewhere behind `cursor`, though not all that lies
    /// between can be read.
    [[nodiscard]] bool hands_over_behind(std::uint32_t rank, EntryCursor const& cursor) const;

    /// What is wrong with the file as a whole: truncated, blocks that cannot be read.
    [[nodiscard]] std::vector<std::string> const& damage() const { return damage_; }

    /// How many ranks' logs go on beside the target from here.
    [[nodiscard]] std::uint64_t continued() const { return continued_; }
    /// Whether fewer entries are there than were appended, in words. Looks at all of them.
    [[nodiscard]] std::optional<std::string> missing_entries() const;

private:
    explicit LogImage(std::span<std::byte const> meta) : meta_(meta) {}
    void find_blocks(std::uint64_t begin, std::uint64_t end);

    std::span<std::byte const> meta_;
    Head head_ = {};
    std::uint64_t seed_ = 0;
    std::uint64_t appended_ = 0;   ///< entries, as the counter has it; 0 if it is being emptied
    std::uint64_t continued_ = 0;  ///< likewise
    struct LogPlace {
        std::uint64_t begin;
        std::uint64_t bytes;
        std::uint64_t first_entry;
    };
    std::map<std::uint32_t, std::map<std::uint64_t, LogPlace>> blocks_;  ///< by rank and number
    std::vector<std::span<std::byte const>> damaged_;                    ///< blocks of whichever rank
    std::vector<std::string> damage_;
};

}  // namespace tapioca::stage
