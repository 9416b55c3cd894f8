// The C interface: all calls move the right data, in both styles.
#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include <tapioca/version.hpp>

#include "mpi/c_test.hpp"

extern "C" int tapioca_c99_check(void);

namespace tapioca::test {
namespace {

TEST(C, HeaderIsC99)
{
    EXPECT_EQ(tapioca_c99_check(), TAPIOCA_ERR_INVALID_ARGUMENT);
}

TEST(C, WritesAndReadsDeclaredVariables)
{
    Scratch const scratch;
    Arrays a;
    auto* file = open(scratch.path("file"));
    EXPECT_OK(TAPIOCA_Init(file, a.count, a.type, a.offset, Arrays::n));
    for (int i = 0; i < Arrays::n; ++i) EXPECT_OK(a.write(file, i));
    a.expect_statuses(Arrays::each, TAPIOCA_SUCCESS);
    EXPECT_OK(TAPIOCA_Flush(file));
    EXPECT_OK(TAPIOCA_Drain(file));
    EXPECT_OK(TAPIOCA_Sync(file));
    Arrays::expect_in(scratch.path("file"));
    int64_t size = 0;
    EXPECT_OK(TAPIOCA_Size(file, &size));
    EXPECT_EQ(size, ranks() * Arrays::n * Arrays::each);
    for (int const i : {2, 0, 1}) EXPECT_OK(a.read(file, i));  // in any order
    a.expect_statuses(Arrays::each, TAPIOCA_SUCCESS);
    for (int i = 0; i < Arrays::n; ++i) EXPECT_TRUE(a.back[i] == a.data[i]);
    EXPECT_OK(TAPIOCA_Finalize(file));
    EXPECT_OK(TAPIOCA_Close(&file));
    EXPECT_EQ(file, TAPIOCA_FILE_NULL);
}

TEST(C, StatusesMayBeSharedOrIgnored)
{
    Scratch const scratch;
    Arrays a;
    TAPIOCA_Status one{-1, -1};
    auto* file = open(scratch.path("file"));
    EXPECT_OK(TAPIOCA_Init(file, a.count, a.type, a.offset, Arrays::n));
    for (int i = 0; i < Arrays::n; ++i) {
        EXPECT_EQ(one.bytes, -1);
        EXPECT_OK(TAPIOCA_Write(file, a.offset[i], a.data[i].data(), 5, 8, i == 1 ? TAPIOCA_STATUS_IGNORE : &one));
    }
    EXPECT_EQ(one.bytes, Arrays::each);
    EXPECT_OK(TAPIOCA_Close(&file));  // also ends the declared step
    Arrays::expect_in(scratch.path("file"));
}

TEST(C, RepeatsRebasesAndRetargets)
{
    Scratch const scratch;
    Arrays a;
    auto const step_bytes = ranks() * Arrays::n * Arrays::each;
    auto* file = open(scratch.path("first"));
    auto* next = open(scratch.path("next"));
    EXPECT_OK(TAPIOCA_Init(file, a.count, a.type, a.offset, Arrays::n));
    TAPIOCA_Step step = TAPIOCA_STEP_NULL;
    EXPECT_OK(TAPIOCA_Step_of(file, &step));
    for (int t = 0; t < 3; ++t) {
        EXPECT_OK(TAPIOCA_Step_rebase(step, t * step_bytes));
        for (int i = 0; i < Arrays::n; ++i) EXPECT_OK(a.write(file, i));
    }
    EXPECT_OK(TAPIOCA_Step_rebase(step, 0));
    EXPECT_OK(TAPIOCA_Step_retarget(step, next));
    for (int i = 0; i < Arrays::n; ++i) EXPECT_OK(a.write(file, i));
    EXPECT_OK(TAPIOCA_Finalize(file));
    EXPECT_OK(TAPIOCA_Close(&next));
    EXPECT_OK(TAPIOCA_Close(&file));
    for (int t = 0; t < 3; ++t) Arrays::expect_in(scratch.path("first"), t * step_bytes);
    Arrays::expect_in(scratch.path("next"));
}

TEST(C, SplitPhase)
{
    Scratch const scratch;
    Arrays a;
    auto* file = open(scratch.path("file"));
    EXPECT_OK(TAPIOCA_Init(file, a.count, a.type, a.offset, Arrays::n));
    for (int turn = 0; turn < 2; ++turn) {
        EXPECT_OK(TAPIOCA_Start(file));
        for (int i = 0; i < Arrays::n; ++i) {
            a.status[i] = {-1, -1};
            EXPECT_OK(turn == 0 ? a.write(file, i) : a.read(file, i));
        }
        EXPECT_EQ(a.status[0].bytes, -1);  // not over yet
        int done = -1;
        EXPECT_OK(TAPIOCA_Progress(file, &done));
        EXPECT_TRUE(done == 0 || done == 1);
        TAPIOCA_Moved moved{};
        EXPECT_OK(TAPIOCA_Wait(file, &moved));
        EXPECT_EQ(moved.bytes, Arrays::n * Arrays::each);
        a.expect_statuses(Arrays::each, TAPIOCA_SUCCESS);
    }
    for (int i = 0; i < Arrays::n; ++i) EXPECT_TRUE(a.back[i] == a.data[i]);
    EXPECT_OK(TAPIOCA_Finalize(file));
    EXPECT_OK(TAPIOCA_Close(&file));
    Arrays::expect_in(scratch.path("file"));
}

TEST(C, EmptyVariablesCountOrAreSkippedWithWait)
{
    Scratch const scratch;
    Arrays a;
    bool const empty = rank() % 2 == 1;
    for (auto& count : a.count) count = empty ? 0 : count;
    auto* file = open(scratch.path("file"));
    EXPECT_OK(TAPIOCA_Init(file, a.count, a.type, a.offset, Arrays::n));
    for (int i = 0; i < Arrays::n; ++i)  // supplied like any other
        EXPECT_OK(TAPIOCA_Write(file, a.offset[i], empty ? nullptr : a.data[i].data(), a.count[i], 8, &a.status[i]));
    a.expect_statuses(empty ? 0 : Arrays::each, TAPIOCA_SUCCESS);
    for (bool const split : {false, true}) {  // skipped
        if (split) {
            EXPECT_OK(TAPIOCA_Start(file));
        }
        for (int i = 0; !empty && i < Arrays::n; ++i) EXPECT_OK(a.read(file, i));
        int done = 1;
        if (split) {
            EXPECT_OK(TAPIOCA_Progress(file, &done));
        }
        TAPIOCA_Moved moved{-1, -1};
        if (split || empty) {
            EXPECT_OK(TAPIOCA_Wait(file, &moved));
            EXPECT_EQ(moved.bytes, empty ? 0 : Arrays::n * Arrays::each);
        }
        for (int i = 0; !empty && i < Arrays::n; ++i) EXPECT_TRUE(a.back[i] == a.data[i]);
        for (auto& back : a.back) std::fill(back.begin(), back.end(), std::byte{0});
    }
    EXPECT_OK(TAPIOCA_Finalize(file));
    EXPECT_OK(TAPIOCA_Init(file, nullptr, nullptr, nullptr, 0));  // nothing at all
    TAPIOCA_Moved moved{-1, -1};
    EXPECT_OK(TAPIOCA_Wait(file, &moved));
    EXPECT_EQ(moved.bytes, 0);
    EXPECT_OK(TAPIOCA_Finalize(file));
    EXPECT_OK(TAPIOCA_Close(&file));
}

TEST(C, EqualVariablesAreSuppliedInTheirOrder)
{
    Scratch const scratch;
    std::int64_t const count[] = {4, 4, 0, 0}, type[] = {1, 1, 1, 1};
    std::int64_t const offset[] = {rank() * 4, rank() * 4, 0, 0};
    char const first[] = "aaaa", second[] = "bbbb";
    auto* file = open(scratch.path("file"));
    EXPECT_OK(TAPIOCA_Init(file, count, type, offset, 4));
    EXPECT_OK(TAPIOCA_Write(file, 0, nullptr, 0, 1, nullptr));
    EXPECT_OK(TAPIOCA_Write(file, rank() * 4, first, 4, 1, nullptr));
    EXPECT_OK(TAPIOCA_Write(file, 0, nullptr, 0, 1, nullptr));
    EXPECT_OK(TAPIOCA_Write(file, rank() * 4, second, 4, 1, nullptr));
    EXPECT_OK(TAPIOCA_Close(&file));
    EXPECT_TRUE(contents(scratch.path("file")) == std::vector<std::byte>(4 * ranks(), std::byte{'b'}));
}

TEST(C, ReadsPastTheEndDeliverWhatIsThere)
{
    Scratch const scratch;
    auto const path = scratch.path("file");
    Arrays a;
    auto const all = static_cast<std::size_t>(ranks() * Arrays::n * Arrays::each);
    if (rank() == 0) write_plain(path, std::vector<std::byte>(all - 10, std::byte{7}));
    barrier();
    auto* file = open(path, TAPIOCA_MODE_READ);
    EXPECT_OK(TAPIOCA_Init(file, a.count, a.type, a.offset, Arrays::n));
    for (int i = 0; i < Arrays::n; ++i) EXPECT_OK(a.read(file, i));
    bool const last = rank() == ranks() - 1;
    EXPECT_EQ(a.status[0].bytes, Arrays::each);
    EXPECT_EQ(a.status[2].bytes, Arrays::each - (last ? 10 : 0));
    TAPIOCA_Step step = TAPIOCA_STEP_NULL;
    EXPECT_OK(TAPIOCA_Step_of(file, &step));
    int64_t received = 0;
    EXPECT_OK(TAPIOCA_Step_received(step, 2, &received));
    EXPECT_EQ(received, a.status[2].bytes);
    EXPECT_OK(TAPIOCA_Close(&file));
}

TEST(C, PatternsOfEveryKindInSeveralSteps)
{
    Scratch const scratch;
    std::int64_t const shape[] = {6, 4 * ranks()};
    std::int64_t start[2], count[2];
    EXPECT_OK(TAPIOCA_Block_of(2, shape, ranks(), rank(), start, count));
    auto const block = block_of({.shape = {shape[0], shape[1]}, .ranks = ranks(), .rank = rank(), .element_size = 2});
    EXPECT_TRUE(std::equal(start, start + 2, block.start.begin()));
    EXPECT_TRUE(std::equal(count, count + 2, block.count.begin()));

    TAPIOCA_Pattern lists = TAPIOCA_PATTERN_NULL, arrays = TAPIOCA_PATTERN_NULL;
    EXPECT_OK(TAPIOCA_Pattern_create(&lists));
    EXPECT_OK(TAPIOCA_Pattern_create(&arrays));
    std::int64_t const offsets[] = {rank() * 30 + 20, rank() * 30}, lengths[] = {10, 15};
    int var = -1;
    EXPECT_OK(TAPIOCA_Pattern_add_extents(lists, 2, offsets, lengths, &var));
    EXPECT_EQ(var, 0);
    EXPECT_OK(TAPIOCA_Pattern_add_extents(lists, 0, nullptr, nullptr, &var));
    EXPECT_EQ(var, 1);
    std::int64_t const base = 30 * ranks(), area = shape[0] * shape[1] * 2;
    std::int64_t const stride[] = {1, 2}, half[] = {count[0], (count[1] + 1) / 2};
    EXPECT_OK(TAPIOCA_Pattern_add_block(arrays, 2, shape, ranks(), rank(), 2, base, nullptr));
    EXPECT_OK(TAPIOCA_Pattern_add_subarray(arrays, 2, shape, start, half, stride, 2, base + area, &var));
    EXPECT_EQ(var, 1);
    int64_t bytes = 0;
    int variables = 0;
    EXPECT_OK(TAPIOCA_Pattern_variables(arrays, &variables));
    EXPECT_EQ(variables, 2);
    EXPECT_OK(TAPIOCA_Pattern_bytes(lists, 0, &bytes));
    EXPECT_EQ(bytes, 25);
    EXPECT_OK(TAPIOCA_Pattern_bookkeeping_bytes(lists, &bytes));
    EXPECT_GT(bytes, 0);

    auto* file = open(scratch.path("file"));
    TAPIOCA_Step one = TAPIOCA_STEP_NULL, two = TAPIOCA_STEP_NULL;
    EXPECT_OK(TAPIOCA_Declare(file, lists, &one));
    EXPECT_OK(TAPIOCA_Declare(file, arrays, &two));
    EXPECT_OK(TAPIOCA_Pattern_free(&lists));
    EXPECT_OK(TAPIOCA_Pattern_free(&arrays));
    EXPECT_EQ(lists, TAPIOCA_PATTERN_NULL);
    auto const full = static_cast<std::size_t>(count[0] * count[1] * 2),
               part = static_cast<std::size_t>(half[0] * half[1] * 2);
    auto const list = stream(1, 25), whole = stream(2, full), strided = stream(3, part);
    TAPIOCA_Moved moved{};
    EXPECT_OK(TAPIOCA_Step_write(one, 0, list.data(), 25));
    EXPECT_OK(TAPIOCA_Step_finish(one, &moved));
    EXPECT_EQ(moved.bytes, 25);
    EXPECT_OK(TAPIOCA_Step_write(two, 0, whole.data(), static_cast<int64_t>(full)));
    EXPECT_OK(TAPIOCA_Step_write(two, 1, strided.data(), static_cast<int64_t>(part)));
    EXPECT_OK(TAPIOCA_Step_start(two));
    int done = 0;
    EXPECT_OK(TAPIOCA_Step_progress(two, &done));
    EXPECT_OK(TAPIOCA_Step_wait(two, &moved));
    EXPECT_EQ(moved.bytes, static_cast<int64_t>(full + part));

    // Read back by C++, from the same declarations.
    auto reader = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::read);
    Pattern pattern;
    pattern.add({{offsets[0], lengths[0]}, {offsets[1], lengths[1]}});
    auto again = block;
    again.file_offset = base;
    pattern.add(again);
    again.file_offset = base + area;
    again.count = {half[0], half[1]};
    again.stride = {1, 2};
    pattern.add(again);
    std::vector<std::byte> a(25), b(full), c(part);
    auto step = reader.declare(pattern);
    step.read(0, a);
    step.read(1, b);
    step.read(2, c);
    step.finish();
    EXPECT_TRUE(a == list);
    EXPECT_TRUE(b == whole);
    EXPECT_TRUE(c == strided);

    char const* text = nullptr;
    EXPECT_OK(TAPIOCA_Step_plan_text(one, &text));
    EXPECT_NE(std::string(text).find("aggregat"), std::string::npos) << text;
    EXPECT_OK(TAPIOCA_Step_plan_json(one, &text));
    EXPECT_EQ(text[0], '{');
    EXPECT_OK(TAPIOCA_Step_free(&one));
    EXPECT_OK(TAPIOCA_Step_free(&two));
    EXPECT_EQ(two, TAPIOCA_STEP_NULL);
    EXPECT_OK(TAPIOCA_Close(&file));
}

TEST(Version, OfTheLibraryIsThatOfTheHeaders)
{
    int major = -1, minor = -1, patch = -1;
    EXPECT_OK(TAPIOCA_Get_version(&major, &minor, &patch));
    EXPECT_OK(TAPIOCA_Get_version(nullptr, nullptr, nullptr));
    EXPECT_EQ(TAPIOCA_MAKE_VERSION(major, minor, patch), TAPIOCA_VERSION);
    EXPECT_EQ(fmt::format("{}.{}.{}", major, minor, patch), TAPIOCA_VERSION_STRING);
    EXPECT_TRUE((version() == Version{major, minor, patch}));
    EXPECT_TRUE((Version{0, 9, 9} < Version{0, 10, 0} && Version{1, 0, 0} > Version{0, 10, 0}));
    EXPECT_LT(TAPIOCA_MAKE_VERSION(0, 9, 9), TAPIOCA_MAKE_VERSION(0, 10, 0));
}

TEST(C, HintsAreTheOptions)
{
    Scratch const scratch;
    MPI_Info hints = MPI_INFO_NULL;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "tapioca_buffers", "7");
    TAPIOCA_File file = TAPIOCA_FILE_NULL;
    EXPECT_OK(TAPIOCA_Open(MPI_COMM_WORLD, scratch.path("file").c_str(), TAPIOCA_MODE_CREATE, hints, &file));
    Arrays a;
    EXPECT_OK(TAPIOCA_Init(file, a.count, a.type, a.offset, Arrays::n));
    TAPIOCA_Step step = TAPIOCA_STEP_NULL;
    EXPECT_OK(TAPIOCA_Step_of(file, &step));
    char const* text = nullptr;
    EXPECT_OK(TAPIOCA_Step_plan_text(step, &text));
    expect_parts(text, {"buffers=7 (hint)"});
    EXPECT_OK(TAPIOCA_Close(&file));
    MPI_Info_set(hints, "tapioca_bufers", "7");
    expect_code(TAPIOCA_Open(MPI_COMM_WORLD, scratch.path("file").c_str(), TAPIOCA_MODE_CREATE, hints, &file),
                TAPIOCA_ERR_SETTING, {"tapioca_bufers"});
    EXPECT_EQ(file, TAPIOCA_FILE_NULL);
    MPI_Info_free(&hints);
}

}  // namespace
}  // namespace tapioca::test
