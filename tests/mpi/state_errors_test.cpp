// Calls at the wrong time and impossible declarations: the same error on all ranks, and the library still works
// afterwards.
#include <functional>
#include <optional>

#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

std::string last_rank()
{
    return "rank " + std::to_string(ranks() - 1);
}

TEST(Declare, ReportsABadExtentOfOneRankOnAll)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    struct Case {
        Extent extent;
        std::string part;
    };
    for (auto const& [extent, part] : std::initializer_list<Case>{
             {{-5, 10}, "offset -5"}, {{5, -10}, "length -10"}, {{INT64_MAX - 5, 10}, "passes 2^63"}}) {
        Pattern pattern;
        pattern.add({{0, 0}});
        pattern.add({last() ? extent : Extent{0, 0}});
        auto const error = same_error_on_all_ranks([&] { (void)file.declare(pattern); });
        EXPECT_EQ(error.code, Errc::invalid_argument);
        EXPECT_EQ(error.rank, ranks() - 1);
        expect_parts(error.text, {"tapioca: declare: " + last_rank(), "variable 1: extent 0", part, "file"});
    }
    Pattern array;
    array.add(Subarray{{10, 10}, {0, 0}, {10, last() ? 11 : 10}, {}, 8, 0});
    auto const error = same_error_on_all_ranks([&] { (void)file.declare(array); });
    expect_parts(error.text, {last_rank(), "leaves the array in dimension 1", "count 11"});
    file.close();
    expect_next_file_works(scratch);
}

TEST(Declare, WantsTheSameNumberOfVariablesOnAllRanks)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    if (last()) pattern.add({{1000, 10}});
    auto const error = same_error_on_all_ranks([&] { (void)file.declare(pattern); });
    EXPECT_EQ(error.code, Errc::mismatch);
    EXPECT_EQ(error.rank, ranks() - 1);
    expect_parts(error.text, {"declare", last_rank(), "from 1 to 2 variables"});
    file.close();
    expect_next_file_works(scratch);
}

TEST(Declare, RefusesAMemoryCapThatCannotBeKept)
{
    Scratch const scratch;
    Options options;
    options.memory = 500;
    options.direct = Direct::never;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
    Pattern pattern;
    pattern.add({{rank() * 100'000, 100'000}});
    auto const error = same_error_on_all_ranks([&] { (void)file.declare(pattern); });
    EXPECT_EQ(error.code, Errc::memory);
    expect_parts(error.text, {"declare", "TAPIOCA_MEMORY allows 500 B", "bookkeeping"});
    file.close();
    expect_next_file_works(scratch);
}

TEST(Closed, RefusesEveryCallButIsOpen)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    auto step = file.declare(pattern);
    auto other = File::open(MPI_COMM_WORLD, scratch.path("other"), Mode::create);
    auto other_step = other.declare(pattern);
    EXPECT_TRUE(file.is_open());
    file.close();
    EXPECT_FALSE(file.is_open());
    auto const data = stream(1, 10);
    step.write(0, data);
    for (auto const& [name, call] : std::initializer_list<std::pair<std::string, std::function<void()>>>{
             {"declare", [&] { (void)file.declare(pattern); }},
             {"sync", [&] { file.sync(); }},
             {"size", [&] { (void)file.size(); }},
             {"close", [&] { file.close(); }},
             {"start", [&] { step.finish(); }},
             {"start", [&] { step.start(); }},
             {"retarget", [&] { other_step.retarget(file); }}}) {
        auto const error = same_error_on_all_ranks(call);
        EXPECT_EQ(error.code, Errc::invalid_state);
        expect_parts(error.text, {"tapioca: " + name + ": ", scratch.path("file"), "closed"});
    }
    other.close();
    expect_next_file_works(scratch);
}

TEST(Moved, FilesAndStepsRefuseEveryCall)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    auto kept = std::move(file);
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    EXPECT_FALSE(file.is_open());
    for (auto const& call :
         std::initializer_list<std::function<void()>>{[&] { (void)file.declare(pattern); }, [&] { file.sync(); },
                                                      [&] { (void)file.size(); }, [&] { file.close(); }})
        expect_parts(same_error_on_all_ranks(call).text, {"moved from"});
    auto step = kept.declare(pattern);
    auto kept_step = std::move(step);
    auto data = stream(1, 10);
    for (auto const& call : std::initializer_list<std::function<void()>>{
             [&] { step.write(0, data); }, [&] { step.read(0, data); }, [&] { step.finish(); }, [&] { step.start(); },
             [&] { (void)step.progress(); }, [&] { step.wait(); }, [&] { (void)step.received(0); },
             [&] { step.rebase(0); }, [&] { step.retarget(kept); }, [&] { (void)step.plan(); },
             [&] { kept_step.retarget(file); }})
        expect_parts(same_error_on_all_ranks(call).text, {"moved from"});
    kept_step.write(0, data);
    kept_step.finish();
    kept.close();
    EXPECT_EQ(contents(scratch.path("file")).size(), static_cast<std::size_t>(10 * ranks()));
}

TEST(UnderWay, OneStepAtATimeAndNoCloseBeforeWait)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    auto second_file = File::open(MPI_COMM_WORLD, scratch.path("second"), Mode::create);
    Pattern pattern;
    pattern.add({{rank() * 10'000, 10'000}});
    auto step = file.declare(pattern);
    auto second = second_file.declare(pattern);
    auto const data = stream(static_cast<std::uint64_t>(rank()), 10'000);
    step.write(0, data);
    step.start();
    second.write(0, data);
    for (auto const& [name, call] : std::initializer_list<std::pair<std::string, std::function<void()>>>{
             {"close", [&] { file.close(); }},
             {"start", [&] { step.start(); }},
             {"start", [&] { second.finish(); }},
             {"rebase", [&] { step.rebase(5); }},
             {"retarget", [&] { step.retarget(second_file); }}}) {
        auto const error = same_error_on_all_ranks(call);
        EXPECT_EQ(error.code, Errc::invalid_state);
        expect_parts(error.text, {"tapioca: " + name + ": ", "under way", "wait()"});
    }
    EXPECT_EQ(step.wait().bytes, 10'000U);
    auto const error = same_error_on_all_ranks([&] { second.finish(); });
    expect_parts(error.text, {"variable 0 (10000 bytes) was never supplied"});  // the start that threw has let go of it
    second.write(0, data);
    EXPECT_EQ(second.finish().bytes, 10'000U);
    file.close();
    second_file.close();
    EXPECT_TRUE(contents(scratch.path("file")) == contents(scratch.path("second")));
    expect_next_file_works(scratch);
}

TEST(UnderWay, WaitAndProgressNeedAStart)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    auto step = file.declare(pattern);
    expect_parts(same_error_on_all_ranks([&] { step.wait(); }).text, {"wait", "no step was started"});
    expect_parts(same_error_on_all_ranks([&] { (void)step.progress(); }).text, {"progress", "no step was started"});
    file.close();
}

/// A step of 100,000 bytes on every rank through small buffers, on a communicator of its own.
class OwnCommunicator {
public:
    explicit OwnCommunicator(Scratch const& scratch)
    {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
        Options options;
        options.direct = Direct::never;
        options.buffersize = 4096;
        file.emplace(File::open(comm_, scratch.path("file"), Mode::create, options));
        pattern.add({{rank() * 100'000, 100'000}});
        step.emplace(file->declare(pattern));
        step->write(0, data);
        step->start();
    }
    OwnCommunicator(OwnCommunicator const&) = delete;
    OwnCommunicator& operator=(OwnCommunicator const&) = delete;
    ~OwnCommunicator() { MPI_Comm_free(&comm_); }

    Pattern pattern;
    std::vector<std::byte> data = stream(1, 100'000);
    std::optional<File> file;
    std::optional<Step> step;

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

TEST(UnderWay, AStepDestroyedBeforeWaitSpoilsItsCommunicatorOnly)
{
    Scratch const scratch;
    OwnCommunicator own(scratch);
    own.step.reset();
    for (auto const& [name, call] : std::initializer_list<std::pair<std::string, std::function<void()>>>{
             {"declare", [&] { (void)own.file->declare(own.pattern); }},
             {"sync", [&] { own.file->sync(); }},
             {"close", [&] { own.file->close(); }}}) {
        auto const error = same_error_on_all_ranks(call);
        EXPECT_EQ(error.code, Errc::invalid_state);
        expect_parts(error.text, {"tapioca: " + name + ": ", scratch.path("file"), "destroyed before wait()"});
    }
    expect_next_file_works(scratch);
}

TEST(UnderWay, AStepThatOneRankDestroysLeavesNobodyWaiting)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    Scratch const scratch;
    for (int const one : {0, ranks() - 1}) {
        OwnCommunicator own(scratch);
        auto const error = same_error_on_all_ranks([&] {
            if (rank() != one) {
                own.step->wait();
                return;
            }
            own.step.reset();
            throw Error(Errc::invalid_state, -1, 0, scratch.path("file"),
                        "tapioca: finish: " + scratch.path("file") +
                            ": a step of this communicator was destroyed before wait()");
        });
        EXPECT_EQ(error.code, Errc::invalid_state);
        EXPECT_NE(caught([&] { own.file->close(); }).code, Errc::ok);
        barrier();
    }
    expect_next_file_works(scratch);
}

/// What close() says of a step that was supplied and never run; it closes all the same.
void expect_forgotten(File& file, std::string const& part, int of_rank)
{
    auto const error = same_error_on_all_ranks([&] { file.close(); });
    EXPECT_EQ(error.code, Errc::invalid_state);
    EXPECT_EQ(error.rank, of_rank);
    expect_parts(error.text, {"tapioca: close: rank " + std::to_string(of_rank), part, "finish() was never called"});
    EXPECT_FALSE(file.is_open());
}

TEST(Forgotten, FinishIsMissedByClose)
{
    Scratch const scratch;
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    pattern.add({{1000 + rank() * 10, 10}});
    auto data = stream(1, 10);
    for (auto const mode : {Mode::create, Mode::update, Mode::read})
        for (bool const dropped : {false, true})
            for (bool const bad : {false, true}) {
                auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), mode);
                auto other = File::open(MPI_COMM_WORLD, scratch.path("other"), Mode::create);
                std::optional<Step> step(file.declare(pattern));
                if (last() && mode == Mode::read) step->read(bad ? 7 : 1, std::span(data));
                if (last() && mode != Mode::read) step->write(bad ? 7 : 1, data);
                if (dropped) step.reset();
                other.close();
                expect_forgotten(file, bad ? "a variable of a step" : "variable 1 of a step", ranks() - 1);
                barrier();
            }
    expect_next_file_works(scratch);
}

TEST(Forgotten, FinishIsMissedByTheFileThatTheStepCameTo)
{
    Scratch const scratch;
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    auto const data = stream(1, 10);
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    auto next = File::open(MPI_COMM_WORLD, scratch.path("next"), Mode::create);
    auto step = file.declare(pattern);
    step.write(0, data);
    step.retarget(next);
    file.close();
    expect_forgotten(next, "variable 0 of a step", 0);
}

TEST(Forgotten, IsNothingThatAnErrorToldOf)
{
    Scratch const scratch;
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    auto const data = stream(1, 10);
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    auto step = file.declare(pattern);
    auto second = file.declare(pattern);
    step.write(0, std::span(data).first(9));
    (void)same_error_on_all_ranks([&] { step.finish(); });
    step.write(0, data);
    step.start();
    second.write(0, data);
    (void)same_error_on_all_ranks([&] { second.finish(); });
    step.wait();
    file.close();
    EXPECT_EQ(contents(scratch.path("file")).size(), static_cast<std::size_t>(10 * ranks()));
    expect_next_file_works(scratch);
}

TEST(Forgotten, FinishIsMissedInAStagedFileToo)
{
    Scratch const scratch;
    Options options;
    options.stage = "ssd:" + scratch.directory();
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    auto const data = stream(1, 10);
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
    auto step = file.declare(pattern);
    step.write(0, data);
    step.finish();
    step.write(0, data);
    expect_forgotten(file, "variable 0 of a step", 0);
    EXPECT_EQ(contents(scratch.path("file")).size(), static_cast<std::size_t>(10 * ranks()));
    expect_next_file_works(scratch);
}

TEST(Forgotten, FinishAndCloseAreMissedByTheFileItself)
{
    Scratch const scratch;
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    auto const data = stream(1, 10);
    testing::internal::CaptureStderr();
    {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
        auto step = file.declare(pattern);
        step.write(0, data);
    }
    expect_parts(testing::internal::GetCapturedStderr(), {"tapioca: " + scratch.path("file") +
                                                          ": variable 0 of a step was supplied, but finish() was never "
                                                          "called, and neither was close()\n"});
    expect_next_file_works(scratch);
}

TEST(Retarget, AStepOfAClosedFileGoesOnWithOtherData)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    Pattern pattern;
    pattern.add({{rank() * 100, 100}});
    auto step = file.declare(pattern);
    file.close();
    std::vector<std::byte> old(100, std::byte{1});
    step.write(0, old);
    auto const error = same_error_on_all_ranks([&] { step.finish(); });
    EXPECT_EQ(error.code, Errc::invalid_state);
    old.assign(100, std::byte{2});  // its buffer may be used again
    auto next = File::open(MPI_COMM_WORLD, scratch.path("next"), Mode::create);
    step.retarget(next);
    std::vector<std::byte> const fresh(100, std::byte{3});
    step.write(0, fresh);
    EXPECT_EQ(step.finish().bytes, 100U);
    next.close();
    auto const written = contents(scratch.path("next"));
    EXPECT_EQ(std::count(written.begin(), written.end(), std::byte{3}), 100 * ranks());
}

TEST(Retarget, OneRankThatForgetsItIsFoundByTheCheck)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    Scratch const scratch;
    Options options;
    options.check = true;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
    auto next = File::open(MPI_COMM_WORLD, scratch.path("next"), Mode::create, options);
    Pattern pattern;
    pattern.add({{rank() * 100, 100}});
    auto step = file.declare(pattern);
    if (rank() != 1) step.retarget(next);
    std::vector<std::byte> const data(100);
    step.write(0, data);
    auto const error = same_error_on_all_ranks([&] { step.finish(); });
    EXPECT_EQ(error.code, Errc::mismatch);
    EXPECT_EQ(error.rank, 1);
    expect_parts(error.text, {"the file is ", "unlike rank 0's"});
    file.close();
    next.close();
    expect_next_file_works(scratch);
}

TEST(Retarget, WantsAFileOfTheSameCommunicator)
{
    Scratch const scratch;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    auto other = File::open(comm, scratch.path("other"), Mode::create);
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    auto step = file.declare(pattern);
    auto const error = same_error_on_all_ranks([&] { step.retarget(other); });
    EXPECT_EQ(error.code, Errc::invalid_argument);
    expect_parts(error.text, {"retarget", "another communicator"});
    other.close();
    file.close();
    MPI_Comm_free(&comm);
}

}  // namespace
}  // namespace tapioca::test
