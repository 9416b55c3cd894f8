// Errors in the C interface: a code and one line, the same on every rank, and no rank is left waiting.
#include "mpi/c_test.hpp"

namespace tapioca::test {
namespace {

bool last()
{
    return rank() == ranks() - 1;
}

std::string last_rank()
{
    return "rank " + std::to_string(ranks() - 1);
}

/// A file with a declared step of three arrays; the end checks that step and file still work.
class CErrors : public testing::Test {
protected:
    CErrors()
    {
        file = open(scratch.path("file"));
        EXPECT_OK(TAPIOCA_Init(file, a.count, a.type, a.offset, Arrays::n));
    }
    ~CErrors() override
    {
        for (int i = 0; i < Arrays::n; ++i) EXPECT_OK(a.write(file, i));
        a.expect_statuses(Arrays::each, TAPIOCA_SUCCESS);
        EXPECT_OK(TAPIOCA_Finalize(file));
        EXPECT_OK(TAPIOCA_Close(&file));
        Arrays::expect_in(scratch.path("file"));
    }
    CErrors(CErrors const&) = delete;
    CErrors& operator=(CErrors const&) = delete;

    /// The last of three calls must fail on all ranks because of the last rank's mistake.
    void expect_failed_run(int returned, int code, std::vector<std::string> const& parts)
    {
        expect_code(returned, code, parts);
        expect_parts(TAPIOCA_Last_error(), {last_rank(), scratch.path("file")});
        a.expect_statuses(0, code);
    }

    Scratch scratch;
    Arrays a;
    TAPIOCA_File file = TAPIOCA_FILE_NULL;
};

TEST_F(CErrors, OffsetThatWasNotDeclared)
{
    EXPECT_OK(a.write(file, 0));
    EXPECT_OK(TAPIOCA_Write(file, a.offset[1] + (last() ? 4 : 0), a.data[1].data(), 5, 8, &a.status[1]));
    expect_failed_run(a.write(file, 2), TAPIOCA_ERR_INVALID_ARGUMENT, {"none of the 3 declared", "5 x 8 bytes"});
}

TEST_F(CErrors, CountThatWasNotDeclaredInTheLastCall)
{
    EXPECT_OK(a.write(file, 0));
    EXPECT_OK(a.write(file, 1));
    expect_failed_run(TAPIOCA_Write(file, a.offset[2], a.data[2].data(), last() ? 4 : 5, 8, &a.status[2]),
                      TAPIOCA_ERR_INVALID_ARGUMENT, {"none of the 3 declared", "4 x 8 bytes"});
}

TEST_F(CErrors, SameVariableTwice)
{
    EXPECT_OK(a.write(file, 0));
    EXPECT_OK(TAPIOCA_Write(file, a.offset[last() ? 0 : 1], a.data[1].data(), 5, 8, &a.status[1]));
    expect_failed_run(a.write(file, 2), TAPIOCA_ERR_INVALID_STATE, {"supplied before"});
}

TEST_F(CErrors, ReadAmongWrites)
{
    EXPECT_OK(a.write(file, 0));
    EXPECT_OK(last() ? a.read(file, 1) : a.write(file, 1));
    expect_failed_run(a.write(file, 2), TAPIOCA_ERR_INVALID_STATE, {"already has variables to write"});
}

TEST_F(CErrors, NullData)
{
    EXPECT_OK(TAPIOCA_Write(file, a.offset[0], last() ? nullptr : a.data[0].data(), 5, 8, &a.status[0]));
    EXPECT_OK(a.write(file, 1));
    expect_failed_run(a.write(file, 2), TAPIOCA_ERR_INVALID_ARGUMENT, {"the data is null"});
}

TEST_F(CErrors, MistakesInASplitRunAreToldByTheWait)
{
    EXPECT_OK(TAPIOCA_Start(file));
    for (int i = 0; i < Arrays::n; ++i)
        EXPECT_OK(TAPIOCA_Write(file, a.offset[i] + (last() ? 1 : 0), a.data[i].data(), 5, 8, &a.status[i]));
    EXPECT_EQ(TAPIOCA_Start(file), TAPIOCA_ERR_INVALID_STATE);
    expect_code(TAPIOCA_Wait(file, nullptr), TAPIOCA_ERR_INVALID_ARGUMENT, {last_rank(), "none of the 3 declared"});
    a.expect_statuses(0, TAPIOCA_ERR_INVALID_ARGUMENT);
}

TEST_F(CErrors, WriteIntoARunUnderWay)
{
    EXPECT_OK(TAPIOCA_Start(file));
    for (int i = 0; i < Arrays::n; ++i) EXPECT_OK(a.write(file, i));
    if (last()) {
        EXPECT_OK(TAPIOCA_Write(file, a.offset[0], a.data[0].data(), 5, 8, nullptr));
    }
    expect_code(TAPIOCA_Wait(file, nullptr), TAPIOCA_ERR_INVALID_STATE, {last_rank(), "under way"});
}

TEST_F(CErrors, WaitWithVariablesMissing)
{
    EXPECT_OK(a.write(file, 0));
    EXPECT_OK(a.write(file, 1));
    int const code = last() ? TAPIOCA_Wait(file, nullptr) : a.write(file, 2);
    expect_code(code, TAPIOCA_ERR_INVALID_STATE, {last_rank(), "variable 2 (40 bytes) was never supplied"});
}

TEST_F(CErrors, CloseMissesTheFinishOfADeclaredStep)
{
    for (bool const writing : {true, false})
        for (bool const freed : {false, true}) {
            auto other = open(scratch.path("other"));
            TAPIOCA_Pattern pattern = TAPIOCA_PATTERN_NULL;
            EXPECT_OK(TAPIOCA_Pattern_create(&pattern));
            std::int64_t const offset = rank() * 10;
            std::int64_t const length = 10;
            EXPECT_OK(TAPIOCA_Pattern_add_extents(pattern, 1, &offset, &length, nullptr));
            TAPIOCA_Step step = TAPIOCA_STEP_NULL;
            EXPECT_OK(TAPIOCA_Declare(other, pattern, &step));
            std::vector<std::byte> data(10);
            EXPECT_OK(writing ? TAPIOCA_Step_write(step, 0, data.data(), 10)
                              : TAPIOCA_Step_read(step, 0, data.data(), 10));
            if (freed) {
                EXPECT_OK(TAPIOCA_Step_free(&step));
            }
            expect_code(TAPIOCA_Close(&other), TAPIOCA_ERR_INVALID_STATE,
                        {"rank 0", "variable 0 of a step was supplied", "finish() was never called"});
            EXPECT_EQ(other, TAPIOCA_FILE_NULL) << "it is closed all the same";
            EXPECT_OK(TAPIOCA_Step_free(&step));
            EXPECT_OK(TAPIOCA_Pattern_free(&pattern));
        }
}

TEST_F(CErrors, FinalizeAndCloseWithWritesOutstanding)
{
    if (last()) {
        EXPECT_OK(a.write(file, 0));
    }
    expect_code(TAPIOCA_Finalize(file), TAPIOCA_ERR_INVALID_STATE, {last_rank(), "1 of 3 variables were supplied"});
    expect_code(TAPIOCA_Close(&file), TAPIOCA_ERR_INVALID_STATE, {last_rank(), "1 of 3 variables were supplied"});
    EXPECT_NE(file, TAPIOCA_FILE_NULL);
    for (int i = last() ? 1 : 0; i < Arrays::n; ++i) EXPECT_OK(a.write(file, i));

    EXPECT_OK(TAPIOCA_Start(file));
    for (int i = 0; i < Arrays::n; ++i) EXPECT_OK(a.write(file, i));
    expect_code(TAPIOCA_Finalize(file), TAPIOCA_ERR_INVALID_STATE, {"the step is under way"});
    expect_code(TAPIOCA_Close(&file), TAPIOCA_ERR_INVALID_STATE, {"the step is under way"});
    EXPECT_OK(TAPIOCA_Wait(file, nullptr));
}

TEST_F(CErrors, InitTwice)
{
    expect_code(TAPIOCA_Init(file, a.count, a.type, a.offset, Arrays::n), TAPIOCA_ERR_INVALID_STATE,
                {"call TAPIOCA_Finalize first"});
}

TEST_F(CErrors, AStepOfInitIsNotRunByNumber)
{
    TAPIOCA_Step step = TAPIOCA_STEP_NULL;
    EXPECT_OK(TAPIOCA_Step_of(file, &step));
    EXPECT_EQ(TAPIOCA_Step_write(step, 0, a.data[0].data(), 40), TAPIOCA_ERR_INVALID_STATE);
    EXPECT_EQ(TAPIOCA_Step_finish(step, nullptr), TAPIOCA_ERR_INVALID_STATE);
    EXPECT_EQ(TAPIOCA_Step_start(step), TAPIOCA_ERR_INVALID_STATE);
    EXPECT_EQ(TAPIOCA_Step_wait(step, nullptr), TAPIOCA_ERR_INVALID_STATE);
    EXPECT_EQ(TAPIOCA_Step_free(&step), TAPIOCA_ERR_INVALID_STATE);
    EXPECT_NE(step, TAPIOCA_STEP_NULL);
    int done = 0;
    EXPECT_EQ(TAPIOCA_Progress(file, &done), TAPIOCA_ERR_INVALID_STATE);
    expect_code(TAPIOCA_Step_progress(step, &done), TAPIOCA_ERR_INVALID_STATE, {"TAPIOCA_Init"});
}

TEST_F(CErrors, TheStepWorksAgainAfterAFailedStart)
{
    // Another step of the communicator is under way.
    TAPIOCA_Pattern pattern = TAPIOCA_PATTERN_NULL;
    TAPIOCA_Step other = TAPIOCA_STEP_NULL;
    EXPECT_OK(TAPIOCA_Pattern_create(&pattern));
    EXPECT_OK(TAPIOCA_Declare(file, pattern, &other));
    EXPECT_OK(TAPIOCA_Step_start(other));
    EXPECT_OK(a.write(file, 0));
    EXPECT_OK(a.write(file, 1));
    expect_code(a.write(file, 2), TAPIOCA_ERR_INVALID_STATE, {"under way on this communicator"});
    a.expect_statuses(0, TAPIOCA_ERR_INVALID_STATE);
    EXPECT_OK(TAPIOCA_Start(file));
    for (int i = 0; i < Arrays::n; ++i) EXPECT_EQ(a.write(file, i) == TAPIOCA_SUCCESS, i < 2);
    expect_code(TAPIOCA_Wait(file, nullptr), TAPIOCA_ERR_INVALID_STATE, {"under way on this communicator"});
    EXPECT_OK(TAPIOCA_Step_wait(other, nullptr));
    EXPECT_OK(TAPIOCA_Step_free(&other));
    EXPECT_OK(TAPIOCA_Pattern_free(&pattern));
}

TEST(CArguments, ReachEveryRankFromOne)
{
    Scratch const scratch;
    auto const path = scratch.path("file");
    TAPIOCA_File file = TAPIOCA_FILE_NULL;
    auto const open_with = [&](char const* name, int mode, TAPIOCA_File* out) {
        return TAPIOCA_Open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, out);
    };
    char const* const name = path.c_str();
    int const bad = TAPIOCA_ERR_INVALID_ARGUMENT;
    expect_code(open_with(last() ? nullptr : name, TAPIOCA_MODE_CREATE, &file), bad, {last_rank(), "path is null"});
    expect_code(open_with(name, last() ? 7 : TAPIOCA_MODE_CREATE, &file), bad, {last_rank(), "7 is none of"});
    expect_code(open_with(name, TAPIOCA_MODE_CREATE, last() ? nullptr : &file), bad, {last_rank(), "file handle"});
    expect_code(open_with(name, TAPIOCA_MODE_READ, &file), TAPIOCA_ERR_NOT_FOUND, {path});
    EXPECT_EQ(TAPIOCA_Open(MPI_COMM_NULL, name, TAPIOCA_MODE_READ, MPI_INFO_NULL, &file), bad);
    EXPECT_EQ(file, TAPIOCA_FILE_NULL);

    file = open(path);
    Arrays a;
    auto* const counts = last() ? nullptr : a.count;
    expect_code(TAPIOCA_Init(file, counts, a.type, a.offset, 3), bad, {last_rank(), "null"});
    expect_code(TAPIOCA_Init(file, a.count, a.type, a.offset, last() ? -1 : 3), bad, {last_rank(), "-1 variables"});
    if (ranks() > 1)
        expect_code(TAPIOCA_Init(file, a.count, a.type, a.offset, last() ? 2 : 3), TAPIOCA_ERR_MISMATCH,
                    {"from 2 to 3"});
    for (auto* const number : {&a.count[1], &a.type[1], &a.offset[1]}) {
        auto const kept = *number;
        if (last()) *number = -3;
        expect_code(TAPIOCA_Init(file, a.count, a.type, a.offset, 3), bad, {last_rank(), "variable 1: ", "-3"});
        *number = kept;
    }
    a.count[2] = a.type[2] = last() ? std::int64_t{1} << 40 : 1;
    expect_code(TAPIOCA_Init(file, a.count, a.type, a.offset, 3), bad, {last_rank(), "variable 2"});
    EXPECT_EQ(TAPIOCA_Write(file, 0, nullptr, 0, 1, nullptr), TAPIOCA_ERR_INVALID_STATE);
    EXPECT_EQ(TAPIOCA_Wait(file, nullptr), TAPIOCA_ERR_INVALID_STATE);
    expect_code(TAPIOCA_Finalize(file), TAPIOCA_ERR_INVALID_STATE, {"call TAPIOCA_Init first"});

    int64_t size = 0;
    expect_code(TAPIOCA_Size(file, last() ? nullptr : &size), bad, {last_rank(), "null"});
    TAPIOCA_Step step = TAPIOCA_STEP_NULL;
    TAPIOCA_Pattern pattern = TAPIOCA_PATTERN_NULL;
    EXPECT_OK(TAPIOCA_Pattern_create(&pattern));
    expect_code(TAPIOCA_Declare(file, last() ? nullptr : pattern, &step), bad, {last_rank(), "pattern handle"});
    expect_code(TAPIOCA_Declare(file, pattern, last() ? nullptr : &step), bad, {last_rank(), "step handle"});
    EXPECT_OK(TAPIOCA_Pattern_free(&pattern));
    EXPECT_OK(TAPIOCA_Pattern_free(&pattern));  // as free() does
    EXPECT_OK(TAPIOCA_Release(&file));
    EXPECT_EQ(file, TAPIOCA_FILE_NULL);
}

TEST(CArguments, BadVariablesAreKeptForDeclare)
{
    Scratch const scratch;
    auto* file = open(scratch.path("file"));
    std::int64_t const shape[] = {10, 10}, start[] = {0, 0}, count[] = {10, 11};
    using Add = std::function<int(TAPIOCA_Pattern)>;
    std::vector<std::pair<Add, std::string>> const mistakes = {
        {[&](auto* p) { return TAPIOCA_Pattern_add_extents(p, 2, nullptr, shape, nullptr); }, "null"},
        {[&](auto* p) { return TAPIOCA_Pattern_add_extents(p, -2, shape, shape, nullptr); }, "-2 extents"},
        {[&](auto* p) { return TAPIOCA_Pattern_add_subarray(p, 0, shape, start, count, nullptr, 1, 0, nullptr); },
         "0 dimensions"},
        {[&](auto* p) { return TAPIOCA_Pattern_add_subarray(p, 2, shape, nullptr, count, nullptr, 1, 0, nullptr); },
         "null"},
        {[&](auto* p) { return TAPIOCA_Pattern_add_subarray(p, 2, shape, start, count, nullptr, 1, 0, nullptr); },
         "variable 1"},
        {[&](auto* p) { return TAPIOCA_Pattern_add_block(p, 2, shape, 3, 3, 1, 0, nullptr); }, "rank 3 of 3"},
    };
    for (auto const& [add, words] : mistakes) {
        TAPIOCA_Pattern pattern = TAPIOCA_PATTERN_NULL;
        TAPIOCA_Step step = TAPIOCA_STEP_NULL;
        EXPECT_OK(TAPIOCA_Pattern_create(&pattern));
        EXPECT_OK(TAPIOCA_Pattern_add_extents(pattern, 0, nullptr, nullptr, nullptr));
        EXPECT_OK(last() ? add(pattern) : TAPIOCA_Pattern_add_extents(pattern, 0, nullptr, nullptr, nullptr));
        expect_code(TAPIOCA_Declare(file, pattern, &step), TAPIOCA_ERR_INVALID_ARGUMENT, {last_rank(), words});
        EXPECT_EQ(step, TAPIOCA_STEP_NULL);
        EXPECT_OK(TAPIOCA_Pattern_free(&pattern));
    }
    EXPECT_OK(TAPIOCA_Close(&file));
}

TEST(CArguments, BadBuffersOfAStepAreToldByItsFinish)
{
    Scratch const scratch;
    auto* file = open(scratch.path("file"));
    TAPIOCA_Pattern pattern = TAPIOCA_PATTERN_NULL;
    TAPIOCA_Step step = TAPIOCA_STEP_NULL;
    std::int64_t const offset[] = {rank() * 8}, length[] = {8};
    auto const data = stream(static_cast<std::uint64_t>(rank()), 8);
    EXPECT_OK(TAPIOCA_Pattern_create(&pattern));
    EXPECT_OK(TAPIOCA_Pattern_add_extents(pattern, 1, offset, length, nullptr));
    EXPECT_OK(TAPIOCA_Declare(file, pattern, &step));
    int const bad = TAPIOCA_ERR_INVALID_ARGUMENT;
    EXPECT_OK(TAPIOCA_Step_write(step, last() ? 1 : 0, data.data(), 8));
    expect_code(TAPIOCA_Step_finish(step, nullptr), bad, {last_rank(), "1 variables are declared"});
    EXPECT_OK(TAPIOCA_Step_write(step, last() ? -1 : 0, data.data(), 8));
    expect_code(TAPIOCA_Step_finish(step, nullptr), bad, {last_rank(), "variable -1", "no such"});
    EXPECT_OK(TAPIOCA_Step_write(step, 0, data.data(), last() ? 7 : 8));
    expect_code(TAPIOCA_Step_finish(step, nullptr), bad, {last_rank(), "7 bytes, but 8 were declared"});
    EXPECT_OK(TAPIOCA_Step_write(step, 0, data.data(), last() ? -8 : 8));
    expect_code(TAPIOCA_Step_finish(step, nullptr), bad, {last_rank(), "-8 bytes"});
    EXPECT_OK(TAPIOCA_Step_write(step, 0, last() ? nullptr : data.data(), 8));
    expect_code(TAPIOCA_Step_finish(step, nullptr), bad, {last_rank(), "null"});
    EXPECT_OK(TAPIOCA_Step_write(step, 0, data.data(), 8));
    EXPECT_OK(TAPIOCA_Step_finish(step, nullptr));
    expect_code(TAPIOCA_Step_wait(step, nullptr), TAPIOCA_ERR_INVALID_STATE, {"no step was started"});
    EXPECT_OK(TAPIOCA_Step_free(&step));
    EXPECT_OK(TAPIOCA_Pattern_free(&pattern));
    EXPECT_OK(TAPIOCA_Close(&file));
}

/// Every call refuses these handles, none of which stands for anything.
void expect_refused(TAPIOCA_File file, TAPIOCA_Step step, TAPIOCA_Pattern pattern)
{
    int const bad = TAPIOCA_ERR_INVALID_ARGUMENT;
    int number = 0;
    int64_t bytes = 0;
    char const* text = nullptr;
    TAPIOCA_Step made = TAPIOCA_STEP_NULL;
    EXPECT_EQ(TAPIOCA_Sync(file), bad);
    EXPECT_EQ(TAPIOCA_Size(file, &bytes), bad);
    EXPECT_EQ(TAPIOCA_Close(&file), bad);
    EXPECT_EQ(TAPIOCA_Init(file, nullptr, nullptr, nullptr, 0), bad);
    EXPECT_EQ(TAPIOCA_Write(file, 0, nullptr, 0, 1, nullptr), bad);
    EXPECT_EQ(TAPIOCA_Read(file, 0, nullptr, 0, 1, nullptr), bad);
    EXPECT_EQ(TAPIOCA_Start(file), bad);
    EXPECT_EQ(TAPIOCA_Progress(file, &number), bad);
    EXPECT_EQ(TAPIOCA_Wait(file, nullptr), bad);
    EXPECT_EQ(TAPIOCA_Finalize(file), bad);
    EXPECT_EQ(TAPIOCA_Step_of(file, &made), bad);
    EXPECT_EQ(TAPIOCA_Declare(file, pattern, &made), bad);
    EXPECT_EQ(TAPIOCA_Pattern_add_extents(pattern, 0, nullptr, nullptr, nullptr), bad);
    EXPECT_EQ(TAPIOCA_Pattern_add_block(pattern, 1, &bytes, 1, 0, 1, 0, nullptr), bad);
    EXPECT_EQ(TAPIOCA_Pattern_add_subarray(pattern, 1, &bytes, &bytes, &bytes, nullptr, 1, 0, nullptr), bad);
    EXPECT_EQ(TAPIOCA_Pattern_variables(pattern, &number), bad);
    EXPECT_EQ(TAPIOCA_Pattern_bytes(pattern, 0, &bytes), bad);
    EXPECT_EQ(TAPIOCA_Pattern_bookkeeping_bytes(pattern, &bytes), bad);
    EXPECT_EQ(TAPIOCA_Step_write(step, 0, nullptr, 0), bad);
    EXPECT_EQ(TAPIOCA_Step_read(step, 0, nullptr, 0), bad);
    EXPECT_EQ(TAPIOCA_Step_finish(step, nullptr), bad);
    EXPECT_EQ(TAPIOCA_Step_start(step), bad);
    EXPECT_EQ(TAPIOCA_Step_progress(step, &number), bad);
    EXPECT_EQ(TAPIOCA_Step_wait(step, nullptr), bad);
    EXPECT_EQ(TAPIOCA_Step_received(step, 0, &bytes), bad);
    EXPECT_EQ(TAPIOCA_Step_rebase(step, 0), bad);
    EXPECT_EQ(TAPIOCA_Step_retarget(step, file), bad);
    EXPECT_EQ(TAPIOCA_Step_plan_text(step, &text), bad);
    EXPECT_EQ(TAPIOCA_Step_plan_json(step, &text), bad);
}

TEST(CArguments, NullHandlesAndPointersAreRefused)
{
    int const bad = TAPIOCA_ERR_INVALID_ARGUMENT;
    int64_t bytes = 0;
    TAPIOCA_Pattern pattern = TAPIOCA_PATTERN_NULL;
    TAPIOCA_File file = TAPIOCA_FILE_NULL;
    expect_refused(file, TAPIOCA_STEP_NULL, pattern);
    EXPECT_EQ(TAPIOCA_Close(nullptr), bad);
    EXPECT_EQ(TAPIOCA_Release(nullptr), bad);
    EXPECT_EQ(TAPIOCA_Pattern_create(nullptr), bad);
    EXPECT_EQ(TAPIOCA_Pattern_free(nullptr), bad);
    EXPECT_EQ(TAPIOCA_Block_of(1, &bytes, 1, 1, &bytes, &bytes), bad);
    EXPECT_EQ(TAPIOCA_Step_free(nullptr), bad);
    EXPECT_EQ(TAPIOCA_Last_failure(nullptr), bad);
    expect_code(TAPIOCA_Flush(file), bad, {"TAPIOCA_Flush: the file handle is null"});
    expect_code(TAPIOCA_Drain(file), bad, {"TAPIOCA_Drain: the file handle is null"});
    expect_code(TAPIOCA_Sync(file), bad, {"TAPIOCA_Sync: the file handle is null"});
}

TEST(CArguments, HandlesThatWereGivenBackAreRefused)
{
    Scratch const scratch;
    int const bad = TAPIOCA_ERR_INVALID_ARGUMENT;
    auto file = open(scratch.path("file"));
    TAPIOCA_Pattern pattern = TAPIOCA_PATTERN_NULL;
    TAPIOCA_Step step = TAPIOCA_STEP_NULL;
    EXPECT_OK(TAPIOCA_Pattern_create(&pattern));
    EXPECT_OK(TAPIOCA_Declare(file, pattern, &step));
    EXPECT_OK(TAPIOCA_Init(file, nullptr, nullptr, nullptr, 0));
    TAPIOCA_Step by_offset = TAPIOCA_STEP_NULL;
    EXPECT_OK(TAPIOCA_Step_of(file, &by_offset));
    EXPECT_OK(TAPIOCA_Finalize(file));
    expect_code(TAPIOCA_Step_rebase(by_offset, 0), bad, {"step handle is not valid"});

    auto old_pattern = pattern;
    EXPECT_OK(TAPIOCA_Pattern_free(&pattern));
    TAPIOCA_Step made = TAPIOCA_STEP_NULL;
    expect_code(TAPIOCA_Declare(file, old_pattern, &made), bad, {"pattern handle is not valid"});
    auto old_step = step;
    EXPECT_OK(TAPIOCA_Step_free(&step));
    auto old_file = file;
    EXPECT_OK(TAPIOCA_Close(&file));
    expect_refused(old_file, old_step, old_pattern);
    expect_code(TAPIOCA_Sync(old_file), bad, {"TAPIOCA_Sync: the file handle is not valid"});
    EXPECT_EQ(TAPIOCA_Release(&old_file), bad);
    EXPECT_EQ(TAPIOCA_Step_free(&old_step), bad);
    EXPECT_EQ(TAPIOCA_Pattern_free(&old_pattern), bad);

    // Nor do they stand for what is made in the same memory later.
    file = open(scratch.path("file"));
    EXPECT_OK(TAPIOCA_Pattern_create(&pattern));
    EXPECT_OK(TAPIOCA_Declare(file, pattern, &step));
    expect_refused(old_file, old_step, old_pattern);
    EXPECT_OK(TAPIOCA_Step_free(&step));
    EXPECT_OK(TAPIOCA_Pattern_free(&pattern));
    EXPECT_OK(TAPIOCA_Close(&file));
}

TEST(CArguments, AnIntercommunicatorIsRefused)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two groups";
    Scratch const scratch;
    auto const path = scratch.path("file");
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm between = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, rank(), &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank() % 2, 1, &between);
    TAPIOCA_File file = TAPIOCA_FILE_NULL;
    expect_code(TAPIOCA_Open(between, path.c_str(), TAPIOCA_MODE_CREATE, MPI_INFO_NULL, &file),
                TAPIOCA_ERR_INVALID_ARGUMENT, {path, "intercommunicator"});
    auto const error = same_error_on_all_ranks([&] { (void)File::open(between, path, Mode::create); });
    EXPECT_EQ(error.code, Errc::invalid_argument);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

TEST(CArguments, EveryCodeHasAText)
{
    for (int code = 0; code <= static_cast<int>(Errc::unsupported); ++code)
        EXPECT_EQ(std::string(TAPIOCA_Error_text(code)).find("not an error code"), std::string::npos) << code;
    EXPECT_STREQ(TAPIOCA_Error_text(TAPIOCA_SUCCESS), "success");
    EXPECT_STREQ(TAPIOCA_Error_text(-5), "not an error code of TAPIOCA");
}

}  // namespace
}  // namespace tapioca::test
