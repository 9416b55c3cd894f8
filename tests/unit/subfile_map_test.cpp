// ExtentMap: what it finds is compared with chunks laid over each other byte by byte; indexes that lie are refused;
// what no longer counts is left out of the records.
#include <chrono>
#include <cstdio>
#include <random>

#include "support/subfile_sets.hpp"

namespace tapioca::subfile {
namespace {

using test::chunk_of;
using test::chunks_of;
using test::form_of;
using test::Model;
using test::model_of;
using test::pick;
using test::SetBytes;
using test::some_set;

/// A map of these records. What it says about the first failure is in `failure`.
struct Told {
    ExtentMap map;
    std::string failure;

    Told(std::initializer_list<SetBytes> records)
    {
        for (auto const& record : records)
            if (failure.empty()) failure = test::add_all(map, record);
    }
};

/// The same map from its own records.
Told again(ExtentMap const& map)
{
    return {map.records(some_set)};
}

TEST(RangeIndex, FindsWhatASearchOfAllRangesFinds)
{
    std::mt19937_64 random(7);
    for (int trial = 0; trial < 50; ++trial) {
        RangeIndex index;
        std::vector<std::pair<std::int64_t, std::int64_t>> all;
        for (int turn = 0; turn < 200; ++turn) {
            for (auto more = pick(random, 0, trial % 5); more > 0; --more) {
                auto const begin = pick(random, 0, 1000);
                auto const end = begin + 1 + (pick(random, 0, 9) == 0 ? pick(random, 0, 1000) : pick(random, 0, 20));
                index.add(begin, end, all.size());
                all.emplace_back(begin, end);
            }
            auto const begin = pick(random, 0, 1000);
            auto const end = begin + pick(random, 0, 30);
            auto found = index.find(begin, end);
            std::sort(found.begin(), found.end());
            std::vector<std::size_t> expected;
            for (std::size_t i = 0; i < all.size(); ++i)
                if (all[i].first < end && all[i].second > begin) expected.push_back(i);
            ASSERT_EQ(found, expected);
        }
    }
}

TEST(ChunkPlaces, NoticeEveryOverlap)
{
    std::mt19937_64 random(11);
    int refused = 0;
    for (int trial = 0; trial < 2000; ++trial) {
        ChunkPlaces places;
        std::map<std::uint64_t, int> taken;
        for (int turn = 0; turn < 12; ++turn) {
            auto const small = [&](std::int64_t most) { return static_cast<std::uint64_t>(pick(random, 0, most)); };
            auto const bytes = 1 + small(3);
            ChunkPlaces::PlaceSeries const made{small(200), bytes, 1 + (small(1) == 0 ? small(9) : 0),
                                                bytes + small(12)};
            bool free = true;
            for (std::uint64_t i = 0; i < made.count; ++i)
                for (std::uint64_t b = 0; b < bytes; ++b)
                    free = free && !taken.contains(made.position + i * made.step + b);
            ASSERT_EQ(places.add(1, made, 0), free) << "seed of trial " << trial;
            refused += !free;
            if (!free) continue;
            for (std::uint64_t i = 0; i < made.count; ++i)
                for (std::uint64_t b = 0; b < bytes; ++b) taken[made.position + i * made.step + b] = 1;
        }
        EXPECT_TRUE(places.add(2, {0, 1000, 1, 0}, 5));
        EXPECT_EQ(places.find(2, 0), 5U);
        EXPECT_FALSE(places.find(2, 1));
    }
    EXPECT_GT(refused, 1000);
}

/// Random chunks, as jobs write them, and the bytes that they mean.
class Story {
public:
    explicit Story(std::uint64_t seed) : random_(seed) {}

    ExtentMap map;
    std::vector<SetBytes> told;  ///< the records
    Model model;

    void go_on()
    {
        auto const what = pick(random_, 0, 9);
        if (forms_.empty() || what == 0) return add_form();
        ++epoch_;
        if (what == 1) return cut(pick(random_, 0, 1500));
        auto const& form =
            forms_[static_cast<std::size_t>(pick(random_, 0, static_cast<std::int64_t>(forms_.size()) - 1))];
        if (what <= 3 && !written_.empty()) return rewrite();
        if (what <= 6) return write(form, pick(random_, 0, 4) * 100);
        series(form);
    }

private:
    struct Form {
        std::uint32_t subfile, number;
        std::vector<Extent> extents;
        std::int64_t bytes;
    };
    struct Written {
        Form form;
        std::int64_t shift;
        std::uint64_t position;
    };

    void add(SetBytes const& record)
    {
        EXPECT_EQ(test::add_all(map, record), "");
        told.push_back(record);
    }

    void add_form()
    {
        Form form{static_cast<std::uint32_t>(pick(random_, 0, 2)), static_cast<std::uint32_t>(forms_.size()), {}, 0};
        if (!forms_.empty() && pick(random_, 0, 2) == 0) {
            form.extents = forms_.front().extents;  // the same in another subfile, or by another opening
        } else {
            auto at = pick(random_, 0, 600);
            for (auto pieces = pick(random_, 1, 4); pieces > 0; --pieces) {
                form.extents.push_back({at, pick(random_, 1, 60)});
                at = form.extents.back().offset + form.extents.back().length + pick(random_, 0, 60);
            }
        }
        for (auto const& extent : form.extents) form.bytes += extent.length;
        forms_.push_back(form);
        add(form_of(form.subfile, form.number, form.extents));
    }
    std::uint64_t take(Form const& form, std::uint64_t bytes)
    {
        return std::exchange(ends_[form.subfile], ends_[form.subfile] + bytes);
    }
    void paint(Form const& form, std::int64_t shift, std::uint64_t position)
    {
        auto at = static_cast<std::int64_t>(position);
        for (auto const& extent : form.extents)
            for (std::int64_t i = 0; i < extent.length; ++i) model[extent.offset + i + shift] = {form.subfile, at++};
    }
    void write(Form const& form, std::int64_t shift)
    {
        auto const position = take(form, static_cast<std::uint64_t>(form.bytes));
        add(chunk_of(form.subfile, form.number, epoch_, shift, position));
        paint(form, shift, position);
        written_.push_back({form, shift, position});
    }
    void rewrite()
    {
        auto const& one =
            written_[static_cast<std::size_t>(pick(random_, 0, static_cast<std::int64_t>(written_.size()) - 1))];
        add(chunk_of(one.form.subfile, one.form.number, epoch_, one.shift, one.position));
        paint(one.form, one.shift, one.position);
    }
    void series(Form const& form)
    {
        auto const count = static_cast<std::uint64_t>(pick(random_, 2, 6));
        auto const step = pick(random_, -2, 3) * pick(random_, 1, 120);
        auto const distance = static_cast<std::uint64_t>(form.bytes + pick(random_, 0, 3));
        auto const shift = step < 0 ? -step * 6 : 0;
        auto const position = take(form, distance * count);
        add(chunks_of(form.subfile, form.number, epoch_, shift, position, {count, 2, step, distance}));
        for (std::uint64_t i = 0; i < count; ++i)
            paint(form, shift + static_cast<std::int64_t>(i) * step, position + i * distance);
        epoch_ += 2 * count;
    }
    void cut(std::int64_t size)
    {
        add(cut_record(epoch_, size, some_set));
        model.erase(model.lower_bound(size), model.end());
    }

    std::mt19937_64 random_;
    std::uint64_t epoch_ = 0;
    std::vector<Form> forms_;
    std::vector<Written> written_;
    std::map<std::uint32_t, std::uint64_t> ends_;
};

TEST(ExtentMap, FindsWhatWasWrittenLast)
{
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        Story story(seed);
        for (int turn = 0; turn < 20; ++turn) story.go_on();
        ASSERT_TRUE(model_of(story.map, 0, 2500, 2500) == story.model) << "seed " << seed;
        ASSERT_TRUE(model_of(story.map, 0, 2500, 37) == story.model) << "seed " << seed;
        auto const told = again(story.map);
        ASSERT_EQ(told.failure, "");
        EXPECT_TRUE(told.map.all_announced());
        ASSERT_TRUE(model_of(told.map, 0, 2500, 37) == story.model) << "from its own records, seed " << seed;
        EXPECT_TRUE(told.map.records(some_set) == again(told.map).map.records(some_set));
        auto const last = story.model.empty() ? 0 : story.model.rbegin()->first + 1;
        EXPECT_GE(story.map.end(), last) << "seed " << seed;
        EXPECT_LE(told.map.end(), story.map.end());
        EXPECT_LE(told.map.chunks(), story.map.chunks());
    }
}

TEST(ExtentMap, KnowsTheEndAtAnyTime)
{
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        Story story(seed);
        for (int turn = 0; turn < 20; ++turn) {
            story.go_on();
            // Cuts that are known before the chunks, and afterwards, with what was asked before.
            ExtentMap map, other;
            for (bool const cuts : {true, false})
                for (auto const& record : story.told)
                    if ((kind_of(record) == RecordKind::cut) == cuts) {
                        EXPECT_EQ(test::add_all(map, record), "");
                    }
            for (bool const cuts : {false, true})
                for (auto const& record : story.told)
                    if ((kind_of(record) == RecordKind::cut) == cuts) {
                        EXPECT_EQ(test::add_all(other, record), "");
                    }
            ASSERT_EQ(map.end(), story.map.end()) << "seed " << seed;
            ASSERT_EQ(other.end(), story.map.end()) << "seed " << seed;
        }
    }
    Told told{form_of(0, 0, {{0, 100}}), chunk_of(0, 0, 5, 0, 0), chunk_of(0, 0, 9, 200, 100),
              cut_record(7, 50, some_set)};
    EXPECT_EQ(told.map.end(), 300);
    Told cut{form_of(0, 0, {{0, 100}}), chunk_of(0, 0, 5, 0, 0), cut_record(7, 50, some_set)};
    EXPECT_EQ(cut.map.end(), 50);
}

TEST(ExtentMap, RefusesAnIndexThatLies)
{
    auto const form = form_of(0, 0, {{1000, 100}});
    auto const says = [&](std::initializer_list<SetBytes> records, char const* what) {
        Told const told(records);
        EXPECT_NE(told.failure.find(what), std::string::npos) << told.failure << "\ninstead of\n" << what;
    };
    constexpr auto most = std::int64_t{1} << 62;
    says({form, form}, "two forms 0");
    says({chunk_of(0, 0, 1, 0, 0)}, "has no form 0");
    says({form, chunk_of(1, 0, 1, 0, 0)}, "subfile 1 has no form 0");
    says({form, chunk_of(0, 0, 1, -1001, 0)}, "leaves the range");
    says({form, chunk_of(0, 0, 1, most - 1100, 0)}, "leaves the range");
    says({form, chunk_of(0, 0, 1, 0, most - 100)}, "leaves the range");
    says({form, chunks_of(0, 0, 1, 0, 0, {3, 1, -501, 100})}, "leaves the range");
    says({form, chunks_of(0, 0, 1, 0, 0, {2, 1, 0, most - 100})}, "leaves the range");
    says({form, chunks_of(0, 0, 1, 0, 0, {3, 1, 100, 99})}, "chunks overlap in subfile 0");
    says({form, chunk_of(0, 0, 1, 0, 50), chunk_of(0, 0, 2, 0, 149)}, "chunks overlap");
    says({form, chunk_of(0, 0, 1, 0, 149), chunk_of(0, 0, 2, 0, 50)}, "chunks overlap");
    says({form, chunk_of(0, 0, 1, 0, 350), chunks_of(0, 0, 2, 0, 0, {9, 1, 0, 150})}, "chunks overlap");
    says({form, chunks_of(0, 0, 2, 0, 0, {9, 1, 0, 250}), chunk_of(0, 0, 1, 0, 590)}, "chunks overlap");
    says({form, chunks_of(0, 0, 2, 0, 0, {9, 1, 0, 250}), chunks_of(0, 0, 2, 0, 110, {9, 1, 0, 320})},
         "chunks overlap");
    says({form, chunk_of(0, 0, 2, 0, 0), chunk_of(0, 0, 3, 1, 0)}, "two chunks at 0");
    says({form, chunk_of(0, 0, 2, 0, 0), chunk_of(0, 0, 1, 0, 0)}, "two chunks at 0");
    says({form, form_of(0, 1, {{1000, 100}}), chunk_of(0, 0, 2, 0, 0), chunk_of(0, 1, 3, 0, 0)}, "two chunks at 0");
    says({form, subfile_record(0, 99, some_set), chunk_of(0, 0, 1, 0, 0)}, "beyond the end of subfile 0");
    says({form, subfile_record(0, 299, some_set), chunks_of(0, 0, 1, 0, 0, {3, 1, 0, 100})}, "beyond the end");
    says({subfile_record(0, 99, some_set), subfile_record(0, 99, some_set)}, "comes twice");
    says({form, chunk_of(0, 0, 1, 0, 0), subfile_record(0, 100, some_set)}, "too late");
    auto strange = cut_record(1, 5, some_set);
    strange[offsetof(RecordHead, kind)] = std::byte{9};
    ExtentMap map;
    EXPECT_NE(test::failure_of(map.add(strange)).find("unknown kind"), std::string::npos);
    Told const fits{form, subfile_record(0, 300, some_set), chunks_of(0, 0, 1, 0, 0, {3, 1, 0, 100})};
    EXPECT_EQ(fits.failure, "");
    EXPECT_TRUE(fits.map.all_announced());
    EXPECT_FALSE((Told{form, chunk_of(0, 0, 1, 0, 0)}.map.all_announced()));
}

TEST(ExtentMap, NeverExpandsASeries)
{
    constexpr auto many = std::uint64_t{1} << 40;
    auto const form = form_of(0, 0, {{0, 8}});
    Told const told{form, chunks_of(0, 0, 1, 0, 0, {many, 1, 100, 8})};
    EXPECT_EQ(told.failure, "");
    EXPECT_EQ(told.map.chunks(), many);
    EXPECT_EQ(told.map.series(), 1U);
    EXPECT_EQ(told.map.end(), static_cast<std::int64_t>((many - 1) * 100 + 8));
    EXPECT_EQ(told.map.data_bytes(), many * 8);
    auto const found = told.map.find(700'000'000'000, 700'000'000'201);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].position, 7'000'000'000 * 8);
    EXPECT_EQ(again(told.map).map.chunks(), many);
    // All at the same place: only the last one is seen.
    Told const over{form, chunks_of(0, 0, 1, 0, 0, {many, 1, 0, 8})};
    ASSERT_EQ(over.map.find(0, 100).size(), 1U);
    EXPECT_EQ(over.map.find(0, 100)[0].position, static_cast<std::int64_t>((many - 1) * 8));
    // Backwards, and cut off on the way.
    Told const back{form, chunks_of(0, 0, 1, 800, 0, {9, 1, -100, 8}), cut_record(4, 550, some_set)};
    EXPECT_EQ(back.map.end(), 550);
    EXPECT_EQ(back.map.find(0, 1000).size(), 6U);
    // Interleaved so far that every read would have to look at all of them.
    auto const wide = form_of(0, 0, {{0, 8}, {std::int64_t{1} << 50, 8}});
    Told const deep{wide, chunks_of(0, 0, 1, 0, 0, {many, 1, 16, 16})};
    EXPECT_NE(deep.failure.find("more chunks at one place"), std::string::npos);
    Told const twice{wide, chunks_of(0, 0, 1, 0, 0, {most_depth / 2 + 1, 1, 16, 16}),
                     chunks_of(0, 0, 1, 0, many, {most_depth / 2, 1, 16, 16})};
    EXPECT_NE(twice.failure.find("more chunks at one place"), std::string::npos);
}

TEST(ExtentMap, WritesOnlyWhatItReads)
{
    // So deep that not all of it can be series.
    Told told{form_of(0, 0, {{0, 8}, {std::int64_t{1} << 50, 8}})};
    for (std::uint64_t i = 0; i < most_depth + 10; ++i) {
        if (i == most_depth / 2)
            told.failure = test::add_all(told.map, chunk_of(0, 0, 2 * most_depth, 8, (i + most_depth) * 16));
        ASSERT_EQ(test::failure_of(told.map.add(chunk_of(0, 0, i + 1, static_cast<std::int64_t>(i) * 16, i * 16))), "");
    }
    auto const same = again(told.map);
    EXPECT_EQ(same.failure, "");
    EXPECT_EQ(same.map.chunks(), told.map.chunks());
    EXPECT_EQ(same.map.find(0, 1 << 20).size(), told.map.find(0, 1 << 20).size());
}

TEST(Records, LeaveOutWhatLaterChunksHaveReplaced)
{
    auto const same = [](std::uint32_t subfile) { return form_of(subfile, 0, {{0, 50}, {100, 50}}); };
    Told told{same(0),
              same(1),
              form_of(2, 0, {{0, 50}, {100, 51}}),
              chunk_of(0, 0, 1, 0, 0),
              chunk_of(0, 0, 2, 1000, 100),
              chunk_of(1, 0, 3, 0, 0),
              chunk_of(2, 0, 4, 1000, 0)};
    EXPECT_EQ(told.map.chunks(), 4U);
    auto now = again(told.map);
    EXPECT_EQ(now.map.chunks(), 3U) << "the first one was written again by another job";
    EXPECT_EQ(now.map.subfiles().size(), 3U);
    EXPECT_TRUE(model_of(now.map, 0, 2000, 100) == model_of(told.map, 0, 2000, 100));
    EXPECT_EQ(test::add_all(told.map, chunk_of(1, 0, 5, 1000, 100)), "");
    now = again(told.map);
    EXPECT_EQ(now.map.subfiles(), (std::map<std::uint32_t, std::uint64_t>{{1, 200}, {2, 101}}));
    EXPECT_EQ(now.map.forms(), 2U);
    EXPECT_TRUE(model_of(now.map, 0, 2000, 100) == model_of(told.map, 0, 2000, 100));
    // In the same epoch, the one in the later subfile counts.
    Told const equal{same(1), same(0), chunk_of(1, 0, 1, 0, 0), chunk_of(0, 0, 1, 0, 0)};
    EXPECT_EQ(again(equal.map).map.subfiles().begin()->first, 1U);
}

TEST(Records, LeaveOutWhatWasCutOff)
{
    Told told{form_of(0, 0, {{0, 100}}), form_of(1, 0, {{0, 100}}),   chunk_of(0, 0, 1, 0, 0),
              chunk_of(1, 0, 2, 500, 0), cut_record(3, 50, some_set), cut_record(4, 500, some_set)};
    auto const one = again(told.map);
    EXPECT_EQ(one.map.chunks(), 1U);
    EXPECT_EQ(one.map.subfiles().size(), 1U);
    EXPECT_EQ(one.map.end(), 50);
    EXPECT_EQ(test::add_all(told.map, cut_record(5, 0, some_set)), "");
    EXPECT_TRUE(told.map.records(some_set).empty()) << "neither chunks nor cuts count";
    // A file that is cut and written again has no cut any more.
    Told const anew{form_of(0, 0, {{0, 100}}), chunk_of(0, 0, 1, 0, 0), cut_record(2, 0, some_set),
                    chunk_of(0, 0, 3, 0, 0)};
    auto const size = subfile_record(0, 0, some_set).size() + form_of(0, 0, {{0, 100}}).size() + sizeof(ChunkRecord);
    EXPECT_EQ(anew.map.records(some_set).size(), size);
}

TEST(Records, AreAsManyAsBeforeWhenAProgramWritesTheSameAgain)
{
    ExtentMap map;
    std::size_t size = 0;
    for (std::uint32_t opening = 0; opening < 20; ++opening) {
        SetBytes journal = form_of(opening, 0, {{0, 10}, {1000, 10}});
        for (std::uint64_t step = 0; step < 30; ++step) {
            auto const chunk =
                chunk_of(opening, 0, map.epoch() + 1 + step, static_cast<std::int64_t>(step) * 10, step * 20);
            journal.insert(journal.end(), chunk.begin(), chunk.end());
        }
        ASSERT_EQ(test::add_all(map, journal), "");
        auto now = again(map);
        ASSERT_EQ(now.failure, "");
        EXPECT_EQ(now.map.chunks(), 30U);
        EXPECT_EQ(now.map.series(), 1U);
        EXPECT_EQ(now.map.subfiles().begin()->first, opening);
        auto const bytes = now.map.records(some_set).size();
        EXPECT_TRUE(size == 0 || bytes == size);
        size = bytes;
        map = now.map;
    }
}

double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(ExtentMap, TakesManyChunksAndCuts)
{
    constexpr std::uint64_t many = 100'000;
    std::mt19937_64 random(3);
    ExtentMap map;
    ASSERT_EQ(test::add_all(map, form_of(0, 0, {{0, 10}, {1'000'000'000, 10}})), "");
    ASSERT_EQ(test::add_all(map, form_of(0, 1, {{0, 100}})), "");
    // The first one ends behind all others: what looks for the furthest end must not stop at it.
    ASSERT_EQ(test::failure_of(map.add(chunk_of(0, 0, 1, 0, 0))), "");
    auto const begin = std::chrono::steady_clock::now();
    std::size_t found = 0;
    for (std::uint64_t i = 1; i <= many; ++i) {
        auto const shift = static_cast<std::int64_t>(random() % 10'000'000 * 100);
        ASSERT_EQ(test::failure_of(map.add(chunk_of(0, 1, 2 * i, shift, i * 100))), "");
        if (i % 2 == 0) {
            ASSERT_EQ(
                test::failure_of(map.add(cut_record(2 * i + 1, 900'000'000 + static_cast<std::int64_t>(i), some_set))),
                "");
        }
        found += map.find(shift, shift + 100).size();
        EXPECT_GT(map.end(), 0);
    }
    std::printf("%zu chunks and half as many cuts, each followed by a search: %.2f s\n", map.chunks(),
                seconds_since(begin));
    EXPECT_GE(found, many * 9 / 10);
    auto const before = std::chrono::steady_clock::now();
    auto const records = map.records(some_set);
    std::printf("their records, %zu bytes: %.2f s\n", records.size(), seconds_since(before));
    EXPECT_LE(records.size(), many * sizeof(ChunkRecord) * 3 / 2);
}

TEST(ExtentMap, StridedDataOfManyRanksTakesLittle)
{
    constexpr std::int64_t pieces = 1'000'000, ranks = 16, groups = 4;
    auto const round = ranks * 8;
    test::SetScratch const scratch;
    auto const directory = scratch.path("a.subfiles");
    {
        test::SetJob job(directory, true, groups);
        job.advance();
        for (std::int64_t group = 0; group < groups; ++group) {
            SetBytes entries;
            std::uint64_t position = 0;
            for (auto rank = group * ranks / groups; rank < (group + 1) * ranks / groups; ++rank) {
                std::vector<Extent> extents;
                for (std::int64_t i = 0; i < pieces; ++i) extents.push_back({i * round + rank * 8, 8});
                auto const variables = test::variables_of({extents});
                auto const part = test::expect(encode_part(variables, position));
                entries.insert(entries.end(), part.begin(), part.end());
                position += test::bytes_of(variables);
            }
            auto& writer = job.writer(static_cast<std::size_t>(group));
            auto const form = writer.add_form(position);
            writer.describe(form, {entries, false});
            writer.position_of(form, 0);
            EXPECT_EQ(test::failure_of(writer.note_chunk(form, 0)), "");
        }
        EXPECT_EQ(test::failure_of(job.complete()), "");
    }
    auto const index = std::filesystem::file_size(directory + "/index");
    EXPECT_LT(index, std::uintmax_t{1} << 20);
    auto const opened = test::expect(open_directory(directory));
    SetContents contents(opened.get(), some_set);
    auto const begin = std::chrono::steady_clock::now();
    EXPECT_EQ(test::failure_of(contents.refresh()), "");
    std::printf("index of %lld pieces: %llu bytes, opened in %.3f ms\n", static_cast<long long>(pieces * ranks),
                static_cast<unsigned long long>(index), seconds_since(begin) * 1e3);
    EXPECT_EQ(contents.map().forms(), 4U);
    EXPECT_EQ(contents.map().series(), 4U);
    auto const found = contents.map().find(500'000 * round, 500'000 * round + round);
    ASSERT_EQ(found.size(), static_cast<std::size_t>(ranks));
    for (auto const& holding : found) {
        EXPECT_EQ(holding.part->layout.pieces(), pieces);
        EXPECT_LE(holding.part->layout.entries.size() + holding.part->layout.dimensions.size(), 2U);
    }
    EXPECT_EQ(contents.map().end(), pieces * round);
}

}  // namespace
}  // namespace tapioca::subfile
