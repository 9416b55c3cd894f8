// The log's format, byte by byte as docs/formats/log.md has it: little-endian, checksummed, versioned.
//
// A log is a pair of files. NAME.meta is a head, then blocks that belong to one rank each, filled with entries, one a
// request. NAME.data is a head, then the requests' bytes. Nothing here does I/O, nothing trusts what it reads.
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

/// A number that no two openings of a file share.
using OpeningId = std::array<std::byte, 16>;
std::string to_hex(OpeningId const& identity);

/// The first bytes of both files.
struct Head {
    char magic[8];  ///< "TAPIMETA" or "TAPIDATA"
    std::uint32_t version;
    std::uint32_t bytes;  ///< head_bytes
    OpeningId identity;
    std::uint64_t generation;  ///< grows when the log is emptied
    std::uint64_t epoch;       ///< no entry is of an earlier one
    std::uint32_t ranks;       ///< of the job
    std::uint32_t node;
    std::uint32_t rank;  ///< whose log it is; the lowest of those that share it
    StageMapping mapping;
    std::uint64_t meta_block;
    std::uint64_t data_block;
    std::uint64_t device;  ///< of the target, as the writer saw it
    std::uint64_t inode;
    std::uint64_t created;  ///< seconds since 1970; for people only
    char host[64];
    char target[3584];  ///< absolute path
    std::byte reserved[208];
    std::uint64_t checksum;  ///< of all before it
};
/// Follows the head in the first page; changes all the time and is not covered by a checksum.
struct Counters {
    std::uint64_t meta_end;          ///< where the next block of NAME.meta will begin
    std::uint64_t data_end;          ///< and of NAME.data
    std::uint64_t emptied;           ///< the head's generation or, while the log is being emptied, the next
    std::uint64_t emptied_inverted;  ///< all bits of that turned over; written after it
    std::int64_t begin;              ///< of the file, the first byte that a request in the log has; a hint
    std::int64_t end;                ///< and where the last one ends
    std::uint64_t doubtful;          ///< not 0: what went to the target at once may be overwritten there
    std::uint64_t appended;          ///< grows with every entry, also with those beside the target
    std::uint64_t touched;           ///< when one of its ranks was last about to change the target: ns since 1970, or 0
    std::uint64_t beside;            ///< how many ranks' logs go on beside the target
    std::uint64_t entries;           ///< that are whole
    std::byte reserved[40];
};
static_assert(sizeof(Head) + sizeof(Counters) == head_bytes);

/// No request may reach further.
inline constexpr std::int64_t longest_file = (std::int64_t{1} << 62) - 1;

inline constexpr char const* meta_magic = "TAPIMETA";
inline constexpr char const* data_magic = "TAPIDATA";

void seal(Head& head);
/// Fails, saying why, if this is no head of a log that this version reads.
core::Result<Head> read_head(std::span<std::byte const> file, char const* magic);

/// Whether all that was in a NAME.meta with this head is in the target: somebody was about to empty or remove the log.
bool is_finished(Head const& head, std::span<std::byte const> meta);
bool is_zero(std::span<std::byte const> bytes);

/// The beginning of a block of NAME.meta.
struct LogBlock {
    std::uint32_t magic;
    std::uint32_t rank;
    std::uint64_t bytes;        ///< a multiple of meta_block
    std::uint64_t number;       ///< how many blocks the rank had before
    std::uint64_t first_entry;  ///< and how many entries
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
inline constexpr std::uint8_t flag_stored = 1;  ///< the bytes went to the target as well, at once
inline constexpr std::uint8_t flag_gone = 2;    ///< no request: all that the rank had before it is in the target

/// The beginning of an entry; that of a contiguous request is no more than this.
struct LogEntry {
    std::uint32_t bytes;  ///< of the whole entry; these first eight bytes are written last
    EntryKind kind;
    std::uint8_t flags;
    std::uint16_t dimensions;
    std::uint64_t checksum;  ///< of what follows; the first eight bytes are part of its seed
    std::uint64_t epoch;
    std::uint32_t variable;
    std::uint32_t reserved;
    std::uint64_t position;  ///< of the data in NAME.data
    std::uint64_t data_bytes;
    std::uint64_t data_checksum;
    std::int64_t offset;  ///< in the file
};
static_assert(sizeof(LogBlock) == 40 && sizeof(LogEntry) == 64);

/// What the checksums of blocks and entries begin with: those of another log, or of an earlier generation, never fit.
std::uint64_t seed_of(Head const& head);

/// What is said of a request besides its form.
struct Note {
    std::uint64_t epoch = 0;
    std::uint32_t variable = 0;
    std::uint64_t position = 0;
    std::uint64_t data_bytes = 0;
    std::uint64_t data_checksum = 0;
    std::uint8_t flags = 0;
};
/// The entries of a variable that lies `shift` bytes further on: one, if it is a subarray or has one layout.
/// The checksums of `entries` are complete.
std::vector<std::byte> encode(pattern::Variable const& variable, std::int64_t shift, Note const& note,
                              std::uint64_t seed);

/// A request as the log has it.
struct LogRequest {
    EntryKind kind = EntryKind::contiguous;
    Note note;
    std::int64_t offset = 0;
    Subarray array;          ///< of a subarray: as declared, moved to where it was written
    pattern::Layout layout;  ///< of all kinds: where in the file, and where in the request's data

    [[nodiscard]] bool stored() const { return note.flags != 0; }
    [[nodiscard]] bool gone() const { return note.flags & flag_gone; }
    [[nodiscard]] std::int64_t begin() const;
    [[nodiscard]] std::int64_t end() const;
};
/// The entry that `bytes` begin with, whose checksum must fit. Everything else is checked as well: a log may be
/// somebody's craft.
core::Result<LogRequest> decode(std::span<std::byte const> bytes, std::uint64_t seed);
/// The same as far as the fixed part and the checksum go: enough for a contiguous request.
core::Result<LogEntry> decode_entry(std::span<std::byte const> bytes, std::uint64_t seed);

}  // namespace tapioca::stage
