// The format of indexes and journals: what is written is read back, and what no program writes is refused.
#include <functional>

#include "support/subfile_sets.hpp"

namespace tapioca::subfile {
namespace {

using test::form_of;
using test::SetBytes;
using test::some_set;

// As docs/formats/subfiles.md says.
static_assert(offsetof(SetHead, generation) == 32 && offsetof(SetHead, size) == 56 && offsetof(SetHead, ranks) == 76);
static_assert(offsetof(SetHead, written) == 88 && offsetof(SetHead, layout) == 96 && offsetof(SetHead, name) == 224);
static_assert(offsetof(SetHead, checksum) == 504);
static_assert(sizeof(RecordHead) == 24 && sizeof(FormRecord) == 48 && sizeof(ChunkRecord) == 88);
static_assert(sizeof(CutRecord) == 40 && sizeof(SubfileRecord) == 104);
static_assert(offsetof(WriterNote, generation) == 24 && offsetof(WriterNote, layout) == 56);
static_assert(sizeof(WriterNote) == 448 && offsetof(WriterNote, checksum) == 440);

SetHead some_head()
{
    SetHead head = {};
    std::memcpy(head.magic, index_magic, sizeof head.magic);
    head.version = format_version;
    head.bytes = sizeof head;
    head.identity = some_set;
    head.generation = 3;
    return head;
}

core::Result<SetHead> read_changed(std::function<void(SetHead&)> const& change)
{
    auto head = some_head();
    change(head);
    seal(head);
    return read_head(std::as_bytes(std::span(&head, 1)), index_magic);
}

TEST(SetHead, IsReadAsItWasWritten)
{
    auto const head = read_changed([](SetHead&) {});
    ASSERT_TRUE(head);
    EXPECT_EQ(head->generation, 3U);
    auto sealed = some_head();
    seal(sealed);
    auto const bytes = std::as_bytes(std::span(&sealed, 1));
    EXPECT_FALSE(read_head(bytes, journal_magic));
    EXPECT_FALSE(read_head(bytes.first(sizeof sealed - 1), index_magic));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        SetBytes changed(bytes.begin(), bytes.end());
        changed[i] ^= std::byte{0x10};
        EXPECT_FALSE(read_head(changed, index_magic)) << "byte " << i;
    }
}

TEST(SetHead, IsRefusedWithValuesThatNoProgramWrites)
{
    auto const version = read_changed([](SetHead& head) { head.version = 2; });
    ASSERT_FALSE(version);
    EXPECT_EQ(version.error().code, Errc::unsupported);
    auto const most = std::uint64_t{1} << 62;
    EXPECT_FALSE(read_changed([](SetHead& head) { head.bytes = 511; }));
    EXPECT_FALSE(read_changed([](SetHead& head) { head.size = -1; }));
    EXPECT_FALSE(read_changed([&](SetHead& head) { head.epoch = most; }));
    EXPECT_FALSE(read_changed([&](SetHead& head) { head.generation = most; }));
    EXPECT_FALSE(read_changed([&](SetHead& head) { head.content_bytes = most; }));
    EXPECT_FALSE(read_changed([](SetHead& head) { head.layout[63] = 'x'; }));
    EXPECT_FALSE(read_changed([](SetHead& head) { head.host[63] = 'x'; }));
    EXPECT_FALSE(read_changed([](SetHead& head) { head.name[255] = 'x'; }));
}

TEST(Records, AreReadOneAfterTheOther)
{
    auto bytes = form_of(2, 1, {{100, 50}, {200, 30}});
    auto const first = bytes.size();
    auto const second = cut_record(7, 120, some_set);
    bytes.insert(bytes.end(), second.begin(), second.end());
    auto const seed = seed_of(some_set);
    auto const form = next_record(bytes, seed);
    ASSERT_EQ(form.size(), first);
    EXPECT_EQ(kind_of(form), RecordKind::form);
    auto const cut = next_record(std::span(bytes).subspan(first), seed);
    ASSERT_EQ(cut.size(), sizeof(CutRecord));
    EXPECT_EQ(decode_cut(cut)->size, 120);
    EXPECT_EQ(decode_cut(cut)->epoch, 7U);
}

TEST(Records, ThatAreCutOffOrDamagedAreNotRead)
{
    auto const whole = form_of(2, 1, {{100, 50}, {200, 30}});
    auto const seed = seed_of(some_set);
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
        EXPECT_TRUE(next_record(std::span(whole).first(bytes), seed).empty()) << bytes;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        auto changed = whole;
        changed[i] ^= std::byte{4};
        EXPECT_TRUE(next_record(changed, seed).empty()) << "byte " << i;
    }
    EXPECT_TRUE(next_record(whole, seed + 1).empty()) << "of another set";
    SetBytes const zeros(4096);
    EXPECT_TRUE(next_record(zeros, seed).empty());
}

TEST(Forms, SayWhichBytesAChunkHas)
{
    auto const variables = test::variables_of({{{100, 50}, {200, 30}}, {}, {{10, 5}}});
    auto const entries = test::expect(encode_part(variables, 1000));
    auto const form = decode_form(form_record(2, 1, 1085, entries, some_set));
    ASSERT_TRUE(form) << form.error().text;
    EXPECT_EQ(form->subfile, 2U);
    EXPECT_EQ(form->number, 1U);
    EXPECT_EQ(form->data_bytes, 1085U);
    EXPECT_EQ(form->begin, 10);
    EXPECT_EQ(form->end, 230);
    ASSERT_EQ(form->parts.size(), 2U);
    EXPECT_EQ(form->parts[0].position, 1000);
    EXPECT_EQ(form->parts[1].position, 1080);
    EXPECT_TRUE(test::places(form->parts[1].layout) == test::places(variables[2]->layouts()[0]));
}

TEST(Forms, ThatNoProgramWritesAreRefused)
{
    auto const variables = test::variables_of({{{100, 50}, {200, 30}}});
    auto const refused = [&](std::uint64_t data_bytes, SetBytes const& entries) {
        return !decode_form(form_record(0, 0, data_bytes, entries, some_set));
    };
    auto const at_zero = test::expect(encode_part(variables, 0));
    EXPECT_FALSE(refused(80, at_zero));
    EXPECT_TRUE(refused(79, at_zero)) << "its data is longer than the chunk";
    EXPECT_TRUE(refused(80, test::expect(encode_part(variables, 1)))) << "its data ends behind the chunk";
    EXPECT_TRUE(refused(80, test::expect(encode_part(variables, 81)))) << "its data begins behind the chunk";
    EXPECT_TRUE(refused(0, at_zero));
    EXPECT_TRUE(refused(std::uint64_t{1} << 62, at_zero));
    EXPECT_TRUE(refused(80, {})) << "no entries";
    auto damaged = at_zero;
    damaged[40] ^= std::byte{1};
    EXPECT_TRUE(refused(80, damaged));
    auto longer = at_zero;
    longer.resize(longer.size() + 8);
    EXPECT_TRUE(refused(80, longer));
    EXPECT_FALSE(decode_form(SetBytes(sizeof(FormRecord) - 8)));
}

TEST(Chunks, ThatNoProgramWritesAreRefused)
{
    constexpr auto most = std::int64_t{1} << 62;
    auto const refused = [](std::function<void(ChunkRecord&)> const& change) {
        ChunkRecord chunk{{}, 0, 0, 1, 0, 0, 3, 1, 100, 100};
        change(chunk);
        return !decode_chunk(chunk_record(chunk, some_set));
    };
    EXPECT_FALSE(refused([](ChunkRecord&) {}));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.count = 0; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.count = most + 1; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.count = UINT64_MAX; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.epoch = 0; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.epoch = most; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.epoch_step = most; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.epoch_step = most / 2; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.position = most; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.position_step = most; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.position_step = most / 2; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.shift = INT64_MAX, chunk.shift_step = -most; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.shift = -most; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.shift_step = most / 2; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.shift_step = -most / 2; }));
    EXPECT_TRUE(refused([](ChunkRecord& chunk) { chunk.shift_step = INT64_MIN; }));
    EXPECT_FALSE(decode_chunk(SetBytes(sizeof(ChunkRecord) - 8)));
    EXPECT_FALSE(decode_chunk(SetBytes(sizeof(ChunkRecord) + 8)));
}

TEST(CutsAndSubfiles, ThatNoProgramWritesAreRefused)
{
    constexpr auto most = std::uint64_t{1} << 62;
    EXPECT_TRUE(decode_cut(cut_record(1, 0, some_set)));
    EXPECT_FALSE(decode_cut(cut_record(1, -1, some_set)));
    EXPECT_FALSE(decode_cut(cut_record(0, 5, some_set)));
    EXPECT_FALSE(decode_cut(cut_record(most, 5, some_set)));
    EXPECT_TRUE(decode_subfile(subfile_record(1, most - 1, some_set)));
    EXPECT_FALSE(decode_subfile(subfile_record(1, most, some_set)));
    EXPECT_FALSE(decode_subfile(SetBytes(32)));
}

}  // namespace
}  // namespace tapioca::subfile
