#include "subfile/format.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

namespace tapioca::subfile {

namespace {

/// Offsets, sizes and epochs that a program writes are less than this.
constexpr auto most = static_cast<std::uint64_t>(stage::longest_file) + 1;
/// Of the checksums of a form's entries: those of a step are the same in every set.
constexpr std::uint64_t entry_seed = 0;

tl::unexpected<core::Failure> bad(std::string const& what)
{
    return core::fail(Errc::io, "the index is damaged: " + what);
}

/// The checksum of a record: of everything but the checksum itself.
std::uint64_t checksum_of(std::span<std::byte const> record, std::uint64_t seed)
{
    constexpr auto before = offsetof(RecordHead, checksum);
    auto const first = stage::checksum_of(record.data(), before, seed);
    return stage::checksum_of(record.data() + sizeof(RecordHead), record.size() - sizeof(RecordHead), first);
}

/// A record of the fixed part `fixed` and what follows it.
template <class Fixed>
std::vector<std::byte> sealed(Fixed fixed, RecordKind kind, std::span<std::byte const> rest, SetId const& identity)
{
    fixed.head = {sizeof fixed + rest.size(), kind, {}, 0};
    std::vector<std::byte> record(sizeof fixed + rest.size());
    std::memcpy(record.data(), &fixed, sizeof fixed);
    std::copy(rest.begin(), rest.end(), record.begin() + sizeof fixed);
    auto const checksum = checksum_of(record, seed_of(identity));
    std::memcpy(record.data() + offsetof(RecordHead, checksum), &checksum, sizeof checksum);
    return record;
}

template <class Fixed>
core::Result<Fixed> fixed_part(std::span<std::byte const> record, bool alone)
{
    Fixed fixed;
    if (record.size() < sizeof fixed || (alone && record.size() != sizeof fixed))
        return bad("a record's size is not valid");
    std::memcpy(&fixed, record.data(), sizeof fixed);
    return fixed;
}

/// Whether `first` and `first + (count - 1) * step` are between -most and most. @pre count is from 1 to most
template <class Number>
bool stays_in_range(Number first, std::uint64_t count, Number step)
{
    constexpr auto limit = static_cast<std::int64_t>(most);
    auto const begin = static_cast<std::int64_t>(first);
    std::int64_t last = 0;
    return begin > -limit && begin < limit &&
           !__builtin_mul_overflow(static_cast<std::int64_t>(count - 1), static_cast<std::int64_t>(step), &last) &&
           !__builtin_add_overflow(last, begin, &last) && last > -limit && last < limit;
}

}  // namespace

std::uint64_t seed_of(SetId const& identity)
{
    return stage::checksum_of(identity.data(), identity.size());
}

void seal(SetHead& head)
{
    head.checksum = stage::checksum_of(&head, offsetof(SetHead, checksum));
}

core::Result<SetHead> read_head(std::span<std::byte const> file, char const* magic)
{
    SetHead head;
    if (file.size() < sizeof head) return bad(fmt::format("{} bytes are too few for its head", file.size()));
    std::memcpy(&head, file.data(), sizeof head);
    if (std::memcmp(head.magic, magic, sizeof head.magic) != 0) return bad("it begins with something else");
    if (head.version != format_version)
        return core::fail(
            Errc::unsupported,
            fmt::format("the index is of version {}, and this program reads version {}", head.version, format_version));
    if (head.checksum != stage::checksum_of(&head, offsetof(SetHead, checksum)))
        return bad("its head's checksum does not match");
    auto const ends = [](auto const& text) { return text[sizeof text - 1] == 0; };
    if (head.bytes != sizeof head || head.size < 0 || head.epoch >= most || head.generation >= most ||
        head.content_bytes >= most || !ends(head.layout) || !ends(head.host) || !ends(head.name))
        return bad("its head has values that no program writes");
    return head;
}

core::Result<std::vector<std::byte>> encode_part(pattern::Variables const& variables, std::uint64_t position)
{
    std::vector<std::byte> entries;
    for (std::size_t var = 0; var < variables.size(); ++var) {
        auto const& variable = *variables[var];
        if (variable.bytes() == 0) continue;
        if (variable.bookkeeping_bytes() > UINT32_MAX)
            return core::fail(Errc::unsupported, fmt::format("{} has too many extents for an index of subfiles: set "
                                                             "TAPIOCA_SUBFILE=off",
                                                             variable.called(var)));
        stage::Note const note{1, static_cast<std::uint32_t>(var), position, variable.bytes(), 0, 0};
        auto const encoded = stage::encode(variable, 0, note, entry_seed);
        entries.insert(entries.end(), encoded.begin(), encoded.end());
        position += variable.bytes();
    }
    return entries;
}

std::vector<std::byte> form_record(std::uint32_t subfile, std::uint32_t number, std::uint64_t data_bytes,
                                   std::span<std::byte const> entries, SetId const& identity, bool disjoint)
{
    FormRecord const form{{}, subfile, number, data_bytes, disjoint ? 1U : 0U, 0};
    return sealed(form, RecordKind::form, entries, identity);
}

std::vector<std::byte> chunk_record(ChunkRecord chunk, SetId const& identity)
{
    return sealed(chunk, RecordKind::chunk, {}, identity);
}

std::vector<std::byte> cut_record(std::uint64_t epoch, std::int64_t size, SetId const& identity)
{
    return sealed(CutRecord{{}, epoch, size}, RecordKind::cut, {}, identity);
}

std::vector<std::byte> subfile_record(std::uint32_t subfile, std::uint64_t bytes, SetId const& identity,
                                      std::string const& host)
{
    SubfileRecord record{{}, subfile, 0, bytes, {}};
    host.copy(record.host, sizeof record.host - 1);
    return sealed(record, RecordKind::subfile, {}, identity);
}

std::span<std::byte const> next_record(std::span<std::byte const> bytes, std::uint64_t seed)
{
    RecordHead head;
    if (bytes.size() < sizeof head) return {};
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.bytes < sizeof head || head.bytes > bytes.size() || head.bytes % 8 != 0) return {};
    auto const record = bytes.first(head.bytes);
    return checksum_of(record, seed) == head.checksum ? record : std::span<std::byte const>();
}

RecordKind kind_of(std::span<std::byte const> record)
{
    return static_cast<RecordKind>(record[offsetof(RecordHead, kind)]);
}

std::optional<std::uint32_t> subfile_of_form(std::span<std::byte const> record)
{
    if (kind_of(record) != RecordKind::form) return std::nullopt;
    auto const form = fixed_part<FormRecord>(record, false);
    return form ? std::optional(form->subfile) : std::nullopt;
}

core::Result<ChunkForm> decode_form(std::span<std::byte const> record)
{
    auto const fixed = fixed_part<FormRecord>(record, false);
    if (!fixed) return tl::unexpected(fixed.error());
    ChunkForm form{
        fixed->subfile, fixed->number, fixed->data_bytes, fixed->disjoint == 1, pattern::no_offset, 0, {}, {}};
    if (form.data_bytes == 0 || form.data_bytes >= most) return bad("a form without data");
    for (auto rest = record.subspan(sizeof(FormRecord)); !rest.empty();) {
        auto request = stage::decode(rest, entry_seed);
        if (!request) return bad(request.error().text);
        if (request->note.position > form.data_bytes ||
            request->note.data_bytes > form.data_bytes - request->note.position)
            return bad("a form has data outside its chunk");
        form.begin = std::min(form.begin, request->begin());
        form.end = std::max(form.end, request->end());
        form.parts.push_back({std::move(request->layout), static_cast<std::int64_t>(request->note.position)});
        stage::LogEntry entry;
        std::memcpy(&entry, rest.data(), sizeof entry);
        rest = rest.subspan(entry.bytes);
    }
    if (form.parts.empty()) return bad("a form without entries");
    form.record.assign(record.begin(), record.end());
    return form;
}

core::Result<ChunkRecord> decode_chunk(std::span<std::byte const> record)
{
    auto chunk = fixed_part<ChunkRecord>(record, true);
    if (!chunk) return chunk;
    if (chunk->count == 0 || chunk->count > most || chunk->epoch == 0 || chunk->epoch >= most ||
        chunk->position >= most || chunk->epoch_step >= most || chunk->position_step >= most ||
        !stays_in_range(chunk->epoch, chunk->count, chunk->epoch_step) ||
        !stays_in_range(chunk->position, chunk->count, chunk->position_step) ||
        !stays_in_range(chunk->shift, chunk->count, chunk->shift_step))
        return bad("a chunk has values that no program writes");
    return chunk;
}

core::Result<CutRecord> decode_cut(std::span<std::byte const> record)
{
    auto cut = fixed_part<CutRecord>(record, true);
    if (!cut) return cut;
    if (cut->size < 0 || cut->epoch == 0 || cut->epoch >= most) return bad("a cut that no program makes");
    return cut;
}

core::Result<SubfileRecord> decode_subfile(std::span<std::byte const> record)
{
    auto subfile = fixed_part<SubfileRecord>(record, true);
    if (subfile && subfile->bytes >= most) return bad("a subfile's size is not valid");
    if (subfile && subfile->host[sizeof subfile->host - 1] != 0) return bad("the host of a subfile has no end");
    return subfile;
}

}  // namespace tapioca::subfile
