// LogImage: finds the entries in the bytes of a NAME.meta file, whoever wrote it and wherever it was cut off.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stage/log_format.hpp"

namespace tapioca::stage {

class LogImage {
public:
    /// `meta` must outlive the image. Fails if its head cannot be read; damage() describes what is wrong further on.
    /// `meta` may be the mapping of a file to which others append. Then `end` is Counters::meta_end, read before the
    /// file's size, since a block is in the file before the counter is raised. `begin`: the first block that matters,
    /// if an earlier image has read those before it.
    static core::Result<LogImage> of(std::span<std::byte const> meta, std::uint64_t end = UINT64_MAX,
                                     std::uint64_t begin = 0);

    [[nodiscard]] Head const& head() const { return head_; }
    [[nodiscard]] std::uint64_t seed() const { return seed_; }
    /// The ranks that have entries.
    [[nodiscard]] std::vector<std::uint32_t> ranks() const;

    /// The position of a rank's next entry.
    struct EntryCursor {
        std::size_t block = 0;
        std::uint64_t at = sizeof(LogBlock);
        std::uint64_t entries = 0;  ///< number of entries before it
        std::uint64_t epoch = 0;    ///< epoch of the last of them
        std::uint64_t begin = 0;    ///< position of the block in the file, if known
    };
    /// Returns the bytes of the next entry, whose checksum matches, and moves on. Returns nothing at the end, or at the
    /// first damage, which is then described in `damage`.
    [[nodiscard]] std::span<std::byte const> next(std::uint32_t rank, EntryCursor& cursor, std::string& damage) const;

    /// Whether the rank says somewhere after `cursor` that it has handed over everything before, even if not everything
    /// in between can be read.
    [[nodiscard]] bool hands_over_behind(std::uint32_t rank, EntryCursor const& cursor) const;

    /// Damage to the file as a whole: truncated, blocks that cannot be read.
    [[nodiscard]] std::vector<std::string> const& damage() const { return damage_; }

    /// How many ranks' logs continue beside the target from here.
    [[nodiscard]] std::uint64_t continued() const { return continued_; }
    /// If fewer entries can be found than were appended, a text that says so. Reads all entries.
    [[nodiscard]] std::optional<std::string> missing_entries() const;

private:
    explicit LogImage(std::span<std::byte const> meta) : meta_(meta) {}
    void find_blocks(std::uint64_t begin, std::uint64_t end);

    std::span<std::byte const> meta_;
    Head head_ = {};
    std::uint64_t seed_ = 0;
    std::uint64_t appended_ = 0;   ///< number of entries according to the counter; 0 while the log is being emptied
    std::uint64_t continued_ = 0;  ///< from the counter, as well
    struct LogPlace {
        std::uint64_t begin;
        std::uint64_t bytes;
        std::uint64_t first_entry;
    };
    std::map<std::uint32_t, std::map<std::uint64_t, LogPlace>> blocks_;  ///< by rank and number
    std::vector<std::span<std::byte const>> damaged_;                    ///< blocks of unknown ranks
    std::vector<std::string> damage_;
};

}  // namespace tapioca::stage
