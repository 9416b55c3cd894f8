// The log's entries: what is written is read back, and invalid entries are refused.
#include <cstring>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "stage/log_format.hpp"
#include "stage/marker.hpp"

namespace {

using namespace tapioca;
using namespace tapioca::stage;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t seed = 0x1234567890abcdef;

struct Piece {
    std::int64_t offset, length, buffer;
    bool operator==(Piece const&) const = default;
};

std::vector<Piece> pieces_of(pattern::Layout const& layout, std::int64_t shift = 0)
{
    std::vector<Piece> pieces;
    pattern::LayoutCursor cursor(layout);
    for (pattern::PieceRun run; cursor.next(pattern::no_offset, run);)
        for (std::int64_t i = 0; i < run.count; ++i)
            pieces.push_back({run.offset + i * run.stride + shift, run.length, run.buffer + i * run.buffer_stride});
    return pieces;
}

Note note_of(pattern::Variable const& variable)
{
    Note note;
    note.epoch = 7;
    note.variable = 3;
    note.position = 4096;
    note.data_bytes = variable.bytes();
    note.data_checksum = 99;
    return note;
}

/// The requests in a row of entries.
std::vector<LogRequest> decode_all(Bytes const& bytes)
{
    std::vector<LogRequest> requests;
    for (std::size_t at = 0; at < bytes.size();) {
        auto const rest = std::span(bytes).subspan(at);
        auto request = decode(rest, seed);
        EXPECT_TRUE(request) << (request ? "" : request.error().text);
        if (!request) return requests;
        LogEntry entry;
        std::memcpy(&entry, rest.data(), sizeof entry);
        at += entry.bytes;
        requests.push_back(std::move(*request));
    }
    return requests;
}

class Random {
public:
    explicit Random(unsigned number) : engine_(number) {}
    std::int64_t operator()(std::int64_t from, std::int64_t to)
    {
        return std::uniform_int_distribution<std::int64_t>(from, to)(engine_);
    }

private:
    std::mt19937 engine_;
};

Subarray random_subarray(Random& random)
{
    Subarray array;
    auto const dimensions = random(1, 4);
    for (int d = 0; d < dimensions; ++d) {
        auto const stride = random(1, 3);
        auto const count = random(1, 4);
        array.start.push_back(random(0, 3));
        array.count.push_back(count);
        array.stride.push_back(stride);
        array.shape.push_back(array.start.back() + (count - 1) * stride + 1 + random(0, 3));
    }
    if (random(0, 1) == 0) {
        array.stride.clear();
        for (std::size_t d = 0; d < array.shape.size(); ++d) array.shape[d] += array.start[d] + array.count[d];
    }
    array.element_size = random(1, 8);
    array.file_offset = random(0, 1000);
    return array;
}

pattern::Variable random_variable(Random& random)
{
    if (random(0, 1) == 0) return pattern::Variable::from_subarray(0, random_subarray(random));
    std::vector<Extent> extents(static_cast<std::size_t>(random(1, 9)));
    for (auto& extent : extents) extent = {random(0, 200), random(0, 20)};
    extents.push_back({300, 1});
    return pattern::Variable::from_extents(0, extents);
}

TEST(StageFormat, WhatIsEncodedIsDecoded)
{
    Random random(1);
    int kinds[4] = {};
    for (int i = 0; i < 4000; ++i) {
        auto const variable = random_variable(random);
        ASSERT_TRUE(variable.status()) << variable.status().error().text;
        auto const shift = random(0, 1) * random(0, 100000);
        auto const note = note_of(variable);
        auto const requests = decode_all(encode(variable, shift, note, seed));
        ASSERT_EQ(requests.size(), variable.layouts().size());
        for (std::size_t k = 0; k < requests.size(); ++k) {
            auto const& request = requests[k];
            ++kinds[static_cast<int>(request.kind)];
            EXPECT_EQ(pieces_of(request.layout), pieces_of(variable.layouts()[k], shift));
            EXPECT_EQ(request.note.epoch, note.epoch);
            EXPECT_EQ(request.note.variable, note.variable);
            EXPECT_EQ(request.note.position, note.position);
            EXPECT_EQ(request.note.data_bytes, note.data_bytes);
            EXPECT_EQ(request.note.data_checksum, note.data_checksum);
            if (request.kind != EntryKind::subarray) continue;
            EXPECT_EQ(request.array.shape, variable.declared()->shape);
            EXPECT_EQ(request.array.start, variable.declared()->start);
            EXPECT_EQ(request.array.count, variable.declared()->count);
            EXPECT_EQ(request.array.element_size, variable.declared()->element_size);
            EXPECT_EQ(request.array.file_offset, variable.declared()->file_offset + shift);
        }
    }
    for (int const kind : {1, 2, 3}) EXPECT_GT(kinds[kind], 100) << kind;
}

TEST(StageFormat, EverySingleBitThatFlipsIsNoticed)
{
    Random random(2);
    for (int i = 0; i < 20; ++i) {
        auto const variable = random_variable(random);
        auto bytes = encode(variable, 0, note_of(variable), seed);
        LogEntry entry;
        std::memcpy(&entry, bytes.data(), sizeof entry);
        bytes.resize(entry.bytes);
        for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
            bytes[bit / 8] ^= std::byte{1} << bit % 8;
            EXPECT_FALSE(decode(bytes, seed)) << bit;
            bytes[bit / 8] ^= std::byte{1} << bit % 8;
        }
        EXPECT_FALSE(decode(bytes, seed + 1)) << "the entry of another log";
        for (std::size_t length = 0; length < bytes.size(); ++length)
            EXPECT_FALSE(decode(std::span(bytes).first(length), seed)) << length;
    }
}

/// Entries with checksums that fit: what somebody may make who knows the format.
class Crafted {
public:
    explicit Crafted(pattern::Variable const& variable, std::uint8_t flags = 0)
    {
        auto note = note_of(variable);
        note.flags = flags;
        bytes_ = encode(variable, 0, note, seed);
    }
    Crafted& with(std::function<void(LogEntry&)> const& change)
    {
        LogEntry entry;
        std::memcpy(&entry, bytes_.data(), sizeof entry);
        change(entry);
        std::memcpy(bytes_.data(), &entry, sizeof entry);
        return *this;
    }
    Crafted& with_number(std::size_t number, std::int64_t value)
    {
        std::memcpy(bytes_.data() + sizeof(LogEntry) + number * 8, &value, sizeof value);
        return *this;
    }
    bool is_refused()
    {
        std::uint64_t first = 0;
        std::memcpy(&first, bytes_.data(), sizeof first);
        auto const checksum = checksum_of(bytes_.data() + 16, bytes_.size() - 16, seed ^ first);
        std::memcpy(bytes_.data() + 8, &checksum, sizeof checksum);
        return !decode(bytes_, seed);
    }

private:
    Bytes bytes_;
};

TEST(StageFormat, CraftedEntriesAreRefused)
{
    Extent const one[] = {{10, 20}};
    auto const contiguous = pattern::Variable::from_extents(0, one);
    auto const craft = [&](std::function<void(LogEntry&)> const& change) {
        return Crafted(contiguous).with(change).is_refused();
    };
    EXPECT_FALSE(craft([](LogEntry&) {}));
    EXPECT_FALSE(craft([](LogEntry& e) { e.flags = flag_stored; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.flags = 3; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.flags = 4; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.kind = EntryKind{0}; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.kind = EntryKind{4}; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.dimensions = 1; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.epoch = 0; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.epoch = UINT64_MAX; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.reserved = 1; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.position = UINT64_MAX; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.data_bytes = 0; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.data_bytes = UINT64_MAX; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.offset = -1; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.offset = INT64_MAX; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.bytes = 63; }));
    EXPECT_TRUE(craft([](LogEntry& e) { e.bytes = 72; }));
}

TEST(StageFormat, CraftedSubarraysAreRefused)
{
    // element size, then shape, start, count and stride of each dimension
    auto const variable = pattern::Variable::from_subarray(0, Subarray{{8, 8}, {1, 1}, {3, 3}, {2, 2}, 4, 100});
    EXPECT_FALSE(Crafted(variable).is_refused());
    EXPECT_TRUE(Crafted(variable).with([](LogEntry& e) { e.dimensions = 1; }).is_refused());
    EXPECT_TRUE(Crafted(variable).with([](LogEntry& e) { e.dimensions = 65535; }).is_refused());
    EXPECT_TRUE(Crafted(variable).with([](LogEntry& e) { e.data_bytes += 4; }).is_refused());
    for (std::size_t number = 0; number < 9; ++number)
        for (auto const value : {std::int64_t{-1}, INT64_MAX, INT64_MIN, std::int64_t{1} << 61, std::int64_t{100}})
            EXPECT_TRUE(number % 4 == 1 || Crafted(variable).with_number(number, value).is_refused())
                << number << " " << value;
    EXPECT_TRUE(Crafted(variable).with_number(1, -8).is_refused());
    EXPECT_TRUE(Crafted(variable).with_number(1, INT64_MAX).is_refused());
    EXPECT_TRUE(Crafted(variable).with([](LogEntry& e) { e.offset = std::int64_t{1} << 62; }).is_refused());
}

TEST(StageFormat, CraftedLayoutsAreRefused)
{
    // the place in the data; then, of each piece, offset, length and place
    Extent const list[] = {{10, 20}, {50, 5}, {100, 10}};
    auto const variable = pattern::Variable::from_extents(0, list);
    ASSERT_EQ(variable.layouts().size(), 1U);
    EXPECT_FALSE(Crafted(variable).is_refused());
    EXPECT_TRUE(Crafted(variable).with([](LogEntry& e) { e.data_bytes = 34; }).is_refused());
    EXPECT_TRUE(Crafted(variable).with([](LogEntry& e) { e.offset = INT64_MAX - 5; }).is_refused());
    EXPECT_TRUE(Crafted(variable).with([](LogEntry& e) { e.dimensions = 4; }).is_refused());
    EXPECT_TRUE(Crafted(variable).with_number(0, 1).is_refused());
    EXPECT_TRUE(Crafted(variable).with_number(0, -1).is_refused());
    for (std::size_t number = 1; number <= 9; ++number)
        for (auto const value : {std::int64_t{-1}, INT64_MAX, INT64_MIN, std::int64_t{1} << 62})
            EXPECT_TRUE(Crafted(variable).with_number(number, value).is_refused()) << number << " " << value;
    EXPECT_TRUE(Crafted(variable).with_number(4, 15).is_refused()) << "pieces that overlap in the file";
    EXPECT_TRUE(Crafted(variable).with_number(9, 30).is_refused()) << "data that is not there";
    // three pieces turned into a loop over two
    EXPECT_TRUE(Crafted(variable).with([](LogEntry& e) { e.dimensions = 1; }).is_refused());
}

TEST(StageFormat, ALayoutThatUsesItsDataManyTimesIsRefused)
{
    pattern::Layout const loop{0, 0, {{1 << 30, 8, 0}}, {{0, 4, 0}}};
    pattern::Variable const variable({loop}, 4);
    Crafted crafted(variable);
    EXPECT_TRUE(crafted.is_refused());
}

TEST(StageFormat, HeadsOfOtherVersionsAndNonsenseAreRefused)
{
    Head head = {};
    std::memcpy(head.magic, meta_magic, 8);
    head.version = format_version;
    head.bytes = head_bytes;
    head.meta_block = meta_block_bytes;
    head.data_block = data_block_bytes;
    head.ranks = 4;
    auto const read = [](Head h) {
        seal(h);
        Bytes bytes(head_bytes);
        std::memcpy(bytes.data(), &h, sizeof h);
        return read_head(bytes, meta_magic);
    };
    EXPECT_TRUE(read(head));
    auto const refused = [&](std::function<void(Head&)> const& change) {
        auto other = head;
        change(other);
        return !read(other);
    };
    EXPECT_TRUE(refused([](Head& h) { h.magic[0] = 'X'; }));
    EXPECT_TRUE(refused([](Head& h) { h.ranks = 0; }));
    EXPECT_TRUE(refused([](Head& h) { h.ranks = UINT32_MAX; }));
    EXPECT_TRUE(refused([](Head& h) { h.rank = 4; }));
    EXPECT_TRUE(refused([](Head& h) { h.mapping = StageMapping{2}; }));
    EXPECT_TRUE(refused([](Head& h) { h.meta_block = 4096; }));
    EXPECT_TRUE(refused([](Head& h) { h.data_block = 0; }));
    EXPECT_TRUE(refused([](Head& h) { h.bytes = 1; }));
    EXPECT_TRUE(refused([](Head& h) { h.host[63] = 'x'; }));
    EXPECT_TRUE(refused([](Head& h) { h.target[3583] = 'x'; }));
    head.version = 2;
    auto const other = read(head);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, Errc::unsupported);
    EXPECT_NE(other.error().text.find("version 2"), std::string::npos);
}

TEST(Marker, AllowsForWhatReachesAServerLate)
{
    constexpr std::uint64_t second = 1'000'000'000;
    Marker marker;
    marker.noted = {0, 1, Noted::State::left, {5, 100, 7, 1000 * second}};
    auto const by_others = [&](std::uint64_t changed_s, bool remote) {
        FileFacts const now{5, 200, 7, changed_s * second, remote};
        return changed_by_others(marker, now, 1010 * second).has_value();
    };
    EXPECT_FALSE(by_others(1011, false));
    EXPECT_TRUE(by_others(1012, false));
    EXPECT_FALSE(by_others(1040, true));
    EXPECT_TRUE(by_others(1041, true));
    marker.noted.state = Noted::State::recovering;
    marker.noted.file.changed_ns = 1010 * second;
    EXPECT_TRUE(by_others(1012, false));
    EXPECT_FALSE(by_others(1012, true));
}

}  // namespace
