#include "stage/log_format.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

namespace tapioca::stage {

namespace {

/// Appends bytes to an entry under construction.
template <class T>
void put(std::vector<std::byte>& to, T const& value)
{
    auto const* const bytes = reinterpret_cast<std::byte const*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof value);
}

/// Reads the numbers of an entry one after the other.
class EntryNumbers {
public:
    explicit EntryNumbers(std::span<std::byte const> bytes) : bytes_(bytes) {}
    std::int64_t next()
    {
        std::int64_t value = 0;
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    [[nodiscard]] std::size_t left() const { return (bytes_.size() - at_) / sizeof(std::int64_t); }

private:
    std::span<std::byte const> bytes_;
    std::size_t at_ = 0;
};

/// The checksum of everything except the checksum itself, which comes second.
std::uint64_t checksum_of_entry(std::span<std::byte const> bytes, std::uint64_t seed)
{
    constexpr auto rest = offsetof(LogEntry, checksum) + sizeof(LogEntry::checksum);
    std::uint64_t first = 0;
    std::memcpy(&first, bytes.data(), sizeof first);
    return checksum_of(bytes.data() + rest, bytes.size() - rest, seed ^ first);
}

void finish(std::vector<std::byte>& to, std::size_t begin, std::uint64_t seed)
{
    auto const bytes = static_cast<std::uint32_t>(to.size() - begin);
    std::memcpy(to.data() + begin, &bytes, sizeof bytes);
    auto const entry = std::span(to).subspan(begin);
    auto const checksum = checksum_of_entry(entry, seed);
    std::memcpy(entry.data() + offsetof(LogEntry, checksum), &checksum, sizeof checksum);
}

/// Offsets, sizes and epochs that a program writes are less than this.
constexpr auto most_bytes = static_cast<std::uint64_t>(longest_file) + 1;

tl::unexpected<core::Failure> bad(std::string const& what)
{
    return core::fail(Errc::io, "the log is damaged: " + what);
}

/// Adds the extent of a dimension, in the file or in the buffer. Fails if the sum exceeds 2^62 or a value is negative.
bool reach(std::int64_t& total, std::int64_t count, std::int64_t step)
{
    std::int64_t product = 0;
    return !__builtin_mul_overflow(count - 1, step, &product) && !__builtin_add_overflow(total, product, &total) &&
           total <= longest_file;
}

/// Whether a layout has all properties that the engine relies on.
bool is_sound(pattern::Layout const& layout, std::uint64_t data_bytes)
{
    constexpr auto most = longest_file + 1;
    if (layout.entries.empty() || layout.base < 0 || layout.base >= most || layout.buffer < 0) return false;
    std::int64_t file_end = 0;  // end of the tile, then including the faster dimensions
    std::int64_t buffer_end = 0;
    std::int64_t bytes = 0;
    for (auto const& entry : layout.entries) {
        if (entry.offset < file_end || entry.length <= 0 || entry.buffer < 0 || entry.offset >= most ||
            entry.length >= most || entry.buffer >= most)
            return false;
        file_end = entry.offset + entry.length;
        buffer_end = std::max(buffer_end, entry.buffer + entry.length);
        bytes += entry.length;
        if (file_end >= most || bytes >= most) return false;
    }
    for (auto at = layout.dimensions.rbegin(); at != layout.dimensions.rend(); ++at) {
        if (at->count <= 0 || at->buffer_step < 0 || (at->count > 1 && at->step < file_end)) return false;
        if (!reach(file_end, at->count, at->step) || !reach(buffer_end, at->count, at->buffer_step)) return false;
        if (__builtin_mul_overflow(bytes, at->count, &bytes)) return false;
    }
    if (layout.base + file_end >= most || layout.buffer >= most - buffer_end) return false;
    return static_cast<std::uint64_t>(layout.buffer + buffer_end) <= data_bytes &&
           static_cast<std::uint64_t>(bytes) <= data_bytes;  // no byte of the data goes to two places
}

core::Result<LogRequest> decode_subarray(LogRequest request, LogEntry const& entry, EntryNumbers numbers)
{
    if (numbers.left() != 1 + std::size_t{4} * entry.dimensions) return bad("a subarray's entry has the wrong size");
    auto& array = request.array;
    array.file_offset = entry.offset;
    array.element_size = numbers.next();
    for (int d = 0; d < entry.dimensions; ++d) {
        array.shape.push_back(numbers.next());
        array.start.push_back(numbers.next());
        array.count.push_back(numbers.next());
        array.stride.push_back(numbers.next());
    }
    auto const variable = pattern::Variable::from_subarray(entry.variable, array);
    if (!variable.status()) return bad(variable.status().error().text);
    if (variable.layouts().size() != 1 || variable.bytes() != entry.data_bytes)
        return bad("a subarray and its data differ in size");
    request.layout = variable.layouts().front();
    if (static_cast<std::uint64_t>(request.layout.end()) >= most_bytes)
        return bad("a subarray that no program can have declared");
    return request;
}

core::Result<LogRequest> decode_layout(LogRequest request, LogEntry const& entry, EntryNumbers numbers)
{
    if (numbers.left() < 1 + std::size_t{3} * entry.dimensions || (numbers.left() - 1) % 3 != 0)
        return bad("a layout's entry has the wrong size");
    auto& layout = request.layout;
    layout.base = entry.offset;
    layout.buffer = numbers.next();
    layout.dimensions.resize(entry.dimensions);
    for (auto& d : layout.dimensions) d = {numbers.next(), numbers.next(), numbers.next()};
    layout.entries.resize(numbers.left() / 3);
    for (auto& e : layout.entries) e = {numbers.next(), numbers.next(), numbers.next()};
    if (!is_sound(layout, entry.data_bytes)) return bad("a layout that no program can have declared");
    for (std::size_t i = 1; i < layout.entries.size(); ++i) {
        auto const& before = layout.entries[i - 1];
        layout.in_order = layout.in_order && layout.entries[i].buffer == before.buffer + before.length;
    }
    return request;
}

}  // namespace

std::string to_hex(OpeningId const& identity)
{
    std::string text;
    for (auto const byte : identity) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return text;
}

void seal(Head& head)
{
    head.checksum = checksum_of(&head, offsetof(Head, checksum));
}

core::Result<Head> read_head(std::span<std::byte const> file, char const* magic)
{
    Head head;
    if (file.size() < head_bytes) return bad(fmt::format("{} bytes are too few for its head", file.size()));
    std::memcpy(&head, file.data(), sizeof head);
    if (std::memcmp(head.magic, magic, sizeof head.magic) != 0) return core::fail(Errc::io, "this is not a log");
    if (head.version != format_version)
        return core::fail(Errc::unsupported, fmt::format("the log is of version {}, this program reads version {}",
                                                         head.version, format_version));
    if (head.checksum != checksum_of(&head, offsetof(Head, checksum))) return bad("its head's checksum does not match");
    if (head.bytes != head_bytes || head.meta_block != meta_block_bytes || head.data_block != data_block_bytes ||
        head.ranks == 0 || head.ranks > INT32_MAX || head.rank >= head.ranks || head.mapping > StageMapping::node ||
        head.target[sizeof head.target - 1] != 0 || head.host[sizeof head.host - 1] != 0)
        return bad("its head has values that no program writes");
    return head;
}

void seal(LogBlock& block, std::uint64_t seed)
{
    block.checksum = checksum_of(&block, offsetof(LogBlock, checksum), seed);
}

bool is_sound(LogBlock const& block, std::uint64_t seed)
{
    return block.magic == block_magic && block.checksum == checksum_of(&block, offsetof(LogBlock, checksum), seed) &&
           block.bytes >= meta_block_bytes && block.bytes % meta_block_bytes == 0 && block.bytes < most_bytes;
}

bool is_finished(Head const& head, std::span<std::byte const> meta)
{
    if (meta.size() < head_bytes) return false;
    Counters counters;
    std::memcpy(&counters, meta.data() + sizeof(Head), sizeof counters);
    return counters.emptied == head.generation + 1 && counters.emptied_inverted == ~(head.generation + 1);
}

bool is_zero(std::span<std::byte const> bytes)
{
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

std::uint64_t seed_of(Head const& head)
{
    return checksum_of(&head.identity, sizeof head.identity, head.generation);
}

std::vector<std::byte> encode(pattern::Variable const& variable, std::int64_t shift, Note const& note,
                              std::uint64_t seed)
{
    LogEntry entry = {};
    entry.flags = note.flags;
    entry.epoch = note.epoch;
    entry.variable = note.variable;
    entry.position = note.position;
    entry.data_bytes = note.data_bytes;
    entry.data_checksum = note.data_checksum;

    std::vector<std::byte> result;
    auto const* const array = variable.declared();
    bool const alone = variable.layouts().size() == 1;
    if (array && alone && variable.layouts().front().pieces() > 1 && array->file_offset + shift >= 0) {
        entry.kind = EntryKind::subarray;
        entry.dimensions = static_cast<std::uint16_t>(array->shape.size());
        entry.offset = array->file_offset + shift;
        put(result, entry);
        put(result, array->element_size);
        for (std::size_t d = 0; d < array->shape.size(); ++d) {
            put(result, array->shape[d]);
            put(result, array->start[d]);
            put(result, array->count[d]);
            put(result, array->stride.empty() ? std::int64_t{1} : array->stride[d]);
        }
        finish(result, 0, seed);
        return result;
    }
    for (auto const& layout : variable.layouts()) {
        auto const begin = result.size();
        if (alone && layout.pieces() == 1) {
            entry.kind = EntryKind::contiguous;
            entry.offset = layout.base + layout.entries[0].offset + shift;
            put(result, entry);
            finish(result, begin, seed);
            return result;
        }
        entry.kind = EntryKind::layout;
        entry.dimensions = static_cast<std::uint16_t>(layout.dimensions.size());
        auto const first = layout.entries[0].offset;
        entry.offset = layout.base + first + shift;
        put(result, entry);
        put(result, layout.buffer);
        for (auto const& d : layout.dimensions) put(result, d);
        for (auto const& e : layout.entries)
            put(result, pattern::Layout::ListItem{e.offset - first, e.length, e.buffer});
        finish(result, begin, seed);
    }
    return result;
}

std::int64_t LogRequest::begin() const
{
    return layout.base + layout.entries.front().offset;
}

std::int64_t LogRequest::end() const
{
    return layout.end();
}

core::Result<LogEntry> decode_entry(std::span<std::byte const> bytes, std::uint64_t seed)
{
    LogEntry entry;
    if (bytes.size() < sizeof entry) return bad("an entry is cut off");
    std::memcpy(&entry, bytes.data(), sizeof entry);
    if (entry.bytes < sizeof entry || entry.bytes > bytes.size() || entry.bytes % 8 != 0)
        return bad("an entry's size is not valid");
    if (checksum_of_entry(bytes.first(entry.bytes), seed) != entry.checksum)
        return bad("an entry's checksum does not match");
    if (entry.kind < EntryKind::contiguous || entry.kind > EntryKind::layout || entry.flags > flag_gone ||
        entry.offset < 0 || entry.data_bytes == 0 || entry.data_bytes >= most_bytes || entry.position >= most_bytes ||
        entry.epoch == 0 || entry.epoch >= most_bytes || entry.reserved != 0)
        return bad("an entry has values that no program writes");
    if (entry.kind == EntryKind::contiguous &&
        (entry.bytes != sizeof entry || entry.dimensions != 0 ||
         static_cast<std::uint64_t>(entry.offset) + entry.data_bytes >= most_bytes))
        return bad("an entry has values that no program writes");
    return entry;
}

core::Result<LogRequest> decode(std::span<std::byte const> bytes, std::uint64_t seed)
{
    auto const entry = decode_entry(bytes, seed);
    if (!entry) return tl::unexpected(entry.error());
    LogRequest request;
    request.kind = entry->kind;
    request.note = {entry->epoch,      entry->variable,      entry->position,
                    entry->data_bytes, entry->data_checksum, entry->flags};
    request.offset = entry->offset;
    EntryNumbers const numbers(bytes.first(entry->bytes).subspan(sizeof(LogEntry)));
    if (entry->kind == EntryKind::subarray) return decode_subarray(std::move(request), *entry, numbers);
    if (entry->kind == EntryKind::layout) return decode_layout(std::move(request), *entry, numbers);
    request.layout.base = entry->offset;
    request.layout.entries = {{0, static_cast<std::int64_t>(entry->data_bytes), 0}};
    return request;
}

}  // namespace tapioca::stage
