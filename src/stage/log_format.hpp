// The log's format, byte by byte as in docs/formats/log.md: little-endian, with checksums and versions.
//
// A log is a pair of files. NAME.meta has a head, then blocks, each of which belongs to one rank and is filled with
// entries, one per request. NAME.data has a head, then the requests' bytes. Nothing here does I/O, and nothing that is
// read is trusted.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tapioca/options.hpp>

#include "core/result.hpp"
#include "pattern/variable.hpp"
#include "stage/checksum.hpp"

namespace tapioca::stage {

static_assert(std::endian::native == std::endian::little, "the log is written as the processor has its numbers");

inline constexpr std::uint32_t format_version = 1;
inline constexpr std::size_t head_bytes = 4096;
inline constexpr std::uint64_t meta_block_bytes = 64 * 1024;
inline constexpr std::uint64_t data_block_bytes = 1024 * 1024;

/// A random number that identifies one opening of a file.
using OpeningId = std::array<std::byte, 16>;
std::string to_hex(OpeningId const& identity);

/// The first bytes of both files.
struct Head {
    char magic[8];  ///< "TAPIMETA" or "TAPIDATA"
    std::uint32_t version;
    std::uint32_t bytes;  ///< head_bytes
    OpeningId identity;
    std::uint64_t generation;  ///< grows when the log is emptied
    std::uint64_t epoch;       ///< no entry has an earlier epoch
    std::uint32_t ranks;       ///< of the job
    std::uint32_t node;
    std::uint32_t rank;  ///< rank whose log this is; the lowest of the ranks that share it
    StageMapping mapping;
    std::uint64_t meta_block;
    std::uint64_t data_block;
    std::uint64_t device;  ///< of the target, as the writer saw it
    std::uint64_t inode;
    std::uint64_t created;  ///< seconds since 1970; for information only
    char host[64];
    char target[3584];  ///< absolute path
    std::byte reserved[208];
    std::uint64_t checksum;  ///< of everything before it
};
/// Follows the head in the first page. It changes all the time and is not covered by a checksum.
struct Counters {
    std::uint64_t meta_end;          ///< where the next block of NAME.meta will begin
    std::uint64_t data_end;          ///< where the next block of NAME.data will begin
    std::uint64_t emptied;           ///< the head's generation or, while the log is being emptied, the next one
    std::uint64_t emptied_inverted;  ///< `emptied` with all bits inverted; written after it
    std::int64_t begin;              ///< first byte of the file that a request in the log has; a hint
    std::int64_t end;                ///< end of the last byte of the file that a request in the log has
    std::uint64_t doubtful;          ///< if not 0, data that went to the target at once may be overwritten there
    std::uint64_t appended;          ///< grows with every entry, also with entries beside the target
    std::uint64_t touched;           ///< when one of its ranks was last about to change the target: ns since 1970, or 0
    std::uint64_t beside;            ///< how many ranks' logs continue beside the target
    std::uint64_t entries;           ///< number of complete entries
    std::byte reserved[40];
};
static_assert(sizeof(Head) + sizeof(Counters) == head_bytes);

/// No request may extend beyond this offset.
inline constexpr std::int64_t longest_file = (std::int64_t{1} << 62) - 1;

inline constexpr char const* meta_magic = "TAPIMETA";
inline constexpr char const* data_magic = "TAPIDATA";

void seal(Head& head);
/// Fails, with the reason, if this is not the head of a log that this version can read.
core::Result<Head> read_head(std::span<std::byte const> file, char const* magic);

/// Whether everything in a NAME.meta with this head is in the target, because the log was about to be emptied or
/// removed.
bool is_finished(Head const& head, std::span<std::byte const> meta);
bool is_zero(std::span<std::byte const> bytes);

/// The beginning of a block of NAME.meta.
struct LogBlock {
    std::uint32_t magic;
    std::uint32_t rank;
    std::uint64_t bytes;        ///< a multiple of meta_block
    std::uint64_t number;       ///< how many blocks the rank had before
    std::uint64_t first_entry;  ///< how many entries the rank had before
    std::uint64_t checksum;
};
inline constexpr std::uint32_t block_magic = 0x4b4c4254;  // TBLK
void seal(LogBlock& block, std::uint64_t seed);
bool is_sound(LogBlock const& block, std::uint64_t seed);

enum class EntryKind : std::uint8_t {
    contiguous = 1,  ///< `data_bytes` at `offset`
    subarray = 2,    ///< as it was declared: element size, then shape, start, count and stride of every dimension
    layout = 3,      ///< loops and a list, in bytes: what views and lists of extents become
};
inline constexpr std::uint8_t flag_stored = 1;  ///< the bytes also went to the target at once
inline constexpr std::uint8_t flag_gone = 2;    ///< not a request: everything before it is in the target

/// The fixed part of an entry; a contiguous request has nothing more.
struct LogEntry {
    std::uint32_t bytes;  ///< of the whole entry; these first eight bytes are written last
    EntryKind kind;
    std::uint8_t flags;
    std::uint16_t dimensions;
    std::uint64_t checksum;  ///< of everything after it; its seed includes the first eight bytes
    std::uint64_t epoch;
    std::uint32_t variable;
    std::uint32_t reserved;
    std::uint64_t position;  ///< of the data in NAME.data
    std::uint64_t data_bytes;
    std::uint64_t data_checksum;
    std::int64_t offset;  ///< in the file
};
static_assert(sizeof(LogBlock) == 40 && sizeof(LogEntry) == 64);

/// The seed of the checksums of blocks and entries, so that those of another log or of an earlier generation never
/// match.
std::uint64_t seed_of(Head const& head);

/// The properties of a request other than its form.
struct Note {
    std::uint64_t epoch = 0;
    std::uint32_t variable = 0;
    std::uint64_t position = 0;
    std::uint64_t data_bytes = 0;
    std::uint64_t data_checksum = 0;
    std::uint8_t flags = 0;
};
/// Encodes a variable that is shifted by `shift` bytes: one entry if it is a subarray or has one layout, otherwise
/// several. The entries' checksums are complete.
std::vector<std::byte> encode(pattern::Variable const& variable, std::int64_t shift, Note const& note,
                              std::uint64_t seed);

/// A request as it is stored in the log.
struct LogRequest {
    EntryKind kind = EntryKind::contiguous;
    Note note;
    std::int64_t offset = 0;
    Subarray array;          ///< for a subarray: as declared, moved to where it was written
    pattern::Layout layout;  ///< for all kinds: where in the file, and where in the request's data

    [[nodiscard]] bool stored() const { return note.flags != 0; }
    [[nodiscard]] bool gone() const { return note.flags & flag_gone; }
    [[nodiscard]] std::int64_t begin() const;
    [[nodiscard]] std::int64_t end() const;
};
/// Decodes the entry at the beginning of `bytes`. Its checksum must match, and everything else is checked as well,
/// because a log may be forged.
core::Result<LogRequest> decode(std::span<std::byte const> bytes, std::uint64_t seed);
/// Decodes only the fixed part and checks the checksum: enough for a contiguous request.
core::Result<LogEntry> decode_entry(std::span<std::byte const> bytes, std::uint64_t seed);

}  // namespace tapioca::stage
