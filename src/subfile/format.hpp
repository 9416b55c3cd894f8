// The format of a set's index and journals, byte by byte as in docs/formats/subfiles.md: little-endian, with checksums
// and a version. Both have a head, then records. Nothing here does I/O, and nothing that is read is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "pattern/summary.hpp"
#include "subfile/stub.hpp"

namespace tapioca::subfile {

inline constexpr std::uint32_t format_version = 1;
inline constexpr char const* index_magic = "TAPISETI";
inline constexpr char const* journal_magic = "TAPISETJ";

/// The first bytes of both files.
struct SetHead {
    char magic[8];
    std::uint32_t version;
    std::uint32_t bytes;  ///< of the head
    SetId identity;
    std::uint64_t generation;        ///< how many openings have changed the set; a journal has that of the next index
    std::uint64_t content_bytes;     ///< index: bytes of all records
    std::uint64_t content_checksum;  ///< index: checksum of all records
    std::int64_t size;               ///< index: size of the file
    std::uint64_t epoch;             ///< index: no chunk or cut is later
    std::uint32_t subfiles;          ///< index: their number, including those that were never made; journal: its own
    std::uint32_t ranks;             ///< of the job that wrote it last
    std::uint32_t nodes;             ///< of that job
    std::uint32_t groups;            ///< of that job's ranks, each with a subfile
    std::uint64_t written;           ///< seconds since 1970; for information only
    char layout[64];                 ///< what the setting `subfile` said
    char host[64];                   ///< of that job's rank 0; journal: of the first rank of its group
    char name[256];                  ///< of the file when the set was made; for information only
    std::byte reserved[24];
    std::uint64_t checksum;  ///< of everything before it
};
static_assert(sizeof(SetHead) == 512);

enum class RecordKind : std::uint8_t {
    form = 1,     ///< FormRecord, followed by entries as in a log
    chunk = 2,    ///< ChunkRecord
    cut = 3,      ///< CutRecord
    subfile = 4,  ///< SubfileRecord; only in an index
};

/// The beginning of every record.
struct RecordHead {
    std::uint64_t bytes;  ///< of the whole record, a multiple of 8
    RecordKind kind;
    std::byte reserved[7];
    std::uint64_t checksum;  ///< of everything else in the record, with the set's seed
};

/// Which bytes of the file a chunk of this form has. The entries are those of the log (formats/log.md), in the order of
/// the ranks; their positions are relative to the beginning of the chunk.
struct FormRecord {
    RecordHead head;
    std::uint32_t subfile;
    std::uint32_t number;      ///< among the forms of this subfile
    std::uint64_t data_bytes;  ///< of a chunk
    std::uint32_t disjoint;    ///< 1: no byte of the file is in two chunks of one epoch, or twice in one of them
    std::uint32_t reserved;
};

/// `count` chunks: stretches of a subfile with data of one form.
struct ChunkRecord {
    RecordHead head;
    std::uint32_t subfile;
    std::uint32_t form;
    std::uint64_t epoch;     ///< where chunks overlap, the later one counts
    std::int64_t shift;      ///< is added to the offsets of the form
    std::uint64_t position;  ///< in the subfile
    std::uint64_t count;
    std::uint64_t epoch_step;  ///< from one chunk to the next
    std::int64_t shift_step;
    std::uint64_t position_step;
};

/// The file was shortened: chunks of earlier epochs have nothing from `size` on.
struct CutRecord {
    RecordHead head;
    std::uint64_t epoch;
    std::int64_t size;
};

/// A subfile must have at least this many bytes.
struct SubfileRecord {
    RecordHead head;
    std::uint32_t subfile;
    std::uint32_t reserved;
    std::uint64_t bytes;
    char host[64];  ///< of its group's first rank, where a subfile on a tier lies; empty: not known
};

/// The seed of the checksums of all records of a set.
std::uint64_t seed_of(SetId const& identity);

void seal(SetHead& head);
core::Result<SetHead> read_head(std::span<std::byte const> file, char const* magic);

/// A part of a form: one request as it is stored in a log.
struct FormPart {
    pattern::Layout layout;
    std::int64_t position = 0;  ///< of the layout's data in the chunk
};
struct ChunkForm {
    std::uint32_t subfile = 0;
    std::uint32_t number = 0;
    std::uint64_t data_bytes = 0;
    bool disjoint = false;   ///< from the other chunks of the same epoch, as its parts are from each other
    std::int64_t begin = 0;  ///< first byte of the file, before the shift
    std::int64_t end = 0;
    std::vector<FormPart> parts;
    std::vector<std::byte> record;  ///< as it was read
};

/// A rank's part of a form: its variables, whose bytes lie one after the other from `position` of the chunk on. Fails
/// if there are too many extents for the format.
core::Result<std::vector<std::byte>> encode_part(pattern::Variables const& variables, std::uint64_t position);

// Records with their checksums.
std::vector<std::byte> form_record(std::uint32_t subfile, std::uint32_t number, std::uint64_t data_bytes,
                                   std::span<std::byte const> entries, SetId const& identity, bool disjoint = false);
std::vector<std::byte> chunk_record(ChunkRecord chunk, SetId const& identity);
std::vector<std::byte> cut_record(std::uint64_t epoch, std::int64_t size, SetId const& identity);
std::vector<std::byte> subfile_record(std::uint32_t subfile, std::uint64_t bytes, SetId const& identity,
                                      std::string const& host = {});

/// The record at the beginning of `bytes`, with its checksum verified. Empty if it is cut off or damaged.
std::span<std::byte const> next_record(std::span<std::byte const> bytes, std::uint64_t seed);
RecordKind kind_of(std::span<std::byte const> record);
/// The subfile that a form is of.
std::optional<std::uint32_t> subfile_of_form(std::span<std::byte const> record);

// The contents of records, checked: they may be forged.
core::Result<ChunkForm> decode_form(std::span<std::byte const> record);
core::Result<ChunkRecord> decode_chunk(std::span<std::byte const> record);
core::Result<CutRecord> decode_cut(std::span<std::byte const> record);
core::Result<SubfileRecord> decode_subfile(std::span<std::byte const> record);

}  // namespace tapioca::subfile
