// Repeated steps that try other ways: the bytes are the same, whichever way they went.
#include <filesystem>
#include <fstream>
#include <numeric>

#include <nlohmann/json.hpp>

#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

/// Blocks of 5,000 bytes dealt rank by rank, of which every third is left out if there are to be holes.
Pattern dealt(bool holes)
{
    Pattern pattern;
    std::vector<Extent> extents;
    for (int i = 0; i < 12; ++i)
        if (!holes || i % 3 != 1) extents.push_back({(std::int64_t{i} * ranks() + rank()) * 5000, 5000});
    pattern.add(extents);
    return pattern;
}

std::int64_t bytes_of(bool holes)
{
    return (holes ? 8 : 12) * 5000;
}

constexpr int runs = 17;

nlohmann::json last_account(std::string const& report)
{
    std::ifstream in(report);
    return nlohmann::json::parse(in).at("files").back();
}

TEST(Learning, EveryWayMovesTheSameBytes)
{
    Scratch const scratch;
    for (bool const holes : {false, true}) {
        Options options;
        options.learn = "always";
        options.report = scratch.path("report.json");
        auto const shift = std::int64_t{60'000} * ranks();
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        auto step = file.declare(dealt(holes));
        auto const bytes = static_cast<std::size_t>(bytes_of(holes));
        for (int i = 0; i < runs; ++i) {
            step.rebase(i * shift);
            auto const data = stream(static_cast<std::uint64_t>(100 * i + rank()), bytes);
            step.write(0, data);
            step.finish();
        }
        for (int i = 0; i < runs; ++i) {
            step.rebase(i * shift);
            std::vector<std::byte> data(bytes);
            step.read(0, std::span(data));
            EXPECT_EQ(step.finish().bytes, bytes);
            EXPECT_EQ(data, stream(static_cast<std::uint64_t>(100 * i + rank()), bytes)) << "step " << i;
        }
        auto const text = step.plan().explain();
        EXPECT_NE(text.find("learnt about writing"), std::string::npos) << text;
        file.close();
        if (rank() != 0) continue;
        auto const learnt = last_account(*options.report).at("predictions");
        ASSERT_EQ(learnt.size(), 2U);
        EXPECT_EQ(learnt[0]["op"], "write");
        int all = 0;
        for (auto const& way : learnt[0]["ways"]) all += way["runs"].get<int>();
        EXPECT_EQ(all, runs);
        EXPECT_GE(learnt[0]["ways"].size(), 2U) << learnt.dump(2);
    }
}

TEST(Learning, TriesOtherWaysWhereAPredictionWasOffAndElseOnlyThoseThatComeNear)
{
    Scratch const scratch;
    for (auto const* const wish : {"on", "off"}) {
        Options options;
        options.learn = wish;
        options.report = scratch.path("report.json");
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        auto step = file.declare(dealt(false));
        for (int i = 0; i < 40; ++i) {
            auto const data = stream(static_cast<std::uint64_t>(rank()), 60'000);
            step.write(0, data);
            step.finish();
        }
        file.close();
        if (rank() != 0) continue;
        auto const account = last_account(*options.report);
        auto const& first = account.at("predictions").at(0);
        EXPECT_EQ(account["largest_error"]["op"], "write") << account.dump(2);
        EXPECT_GE(account["largest_error"]["factor"].get<double>(), 1);
        EXPECT_TRUE(first.contains("measured_s"));
        EXPECT_EQ(first.contains("ways"), wish == std::string_view("on")) << account.dump(2);
        if (!first.contains("ways")) continue;
        auto const& chosen = first["ways"][0];
        auto const measured = chosen["measured_s"].get<double>();
        auto const predicted = chosen["predicted_s"].get<double>();
        bool const off = measured > 1.25 * predicted || predicted > 1.25 * measured;
        for (auto const& way : first["ways"])
            EXPECT_TRUE(off || way["predicted_s"].get<double>() < 1.25 * predicted) << first.dump(2);
    }
}

/// Runs a step so often. What the account says of it, on rank 0.
nlohmann::json run_often(Scratch const& scratch, std::string const& learn, int often)
{
    Options options;
    options.learn = learn;
    options.report = scratch.path("report.json");
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
    {
        auto step = file.declare(dealt(false));
        auto const data = stream(static_cast<std::uint64_t>(rank()), 60'000);
        for (int i = 0; i < often; ++i) {
            step.write(0, data);
            step.finish();
        }
    }
    file.close();
    MPI_Barrier(MPI_COMM_WORLD);
    return rank() == 0 ? last_account(*options.report) : nlohmann::json();
}

std::string text_of(std::string const& path)
{
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Learning, ALaterJobBeginsWithWhatAnEarlierOneHasFound)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    Scratch const scratch;
    auto const path = scratch.path("learnt.txt");
    // On a machine so busy that trying is not affordable for long, nothing is settled after so many runs.
    std::string text;
    nlohmann::json first;
    for (int i = 0; i < 10 && text.empty(); ++i) {
        first = run_often(scratch, path, 2000);
        text = text_of(path);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ASSERT_TRUE(text.starts_with("tapioca learnt 1\n")) << text;
    // What the first has kept is what the second goes first, whatever it thinks of it later.
    auto const second = run_often(scratch, path, 1);
    if (rank() != 0) return;
    auto const& ways = second.at("predictions").at(0).at("ways");
    ASSERT_EQ(ways.size(), 1U) << second.dump(2);
    EXPECT_EQ(ways[0]["way"], first.at("predictions").at(0).at("kept")) << second.dump(2);
    EXPECT_EQ(ways[0]["runs"], 1) << second.dump(2);
}

TEST(Learning, SomeRunsMayBeInTheBackground)
{
    Scratch const scratch;
    for (auto const* const wish : {"on", "always"}) {
        Options options;
        options.learn = wish;
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        auto step = file.declare(dealt(false));
        for (int i = 0; i < 40; ++i) {
            auto const data = stream(static_cast<std::uint64_t>(rank() + i), 60'000);
            step.write(0, data);
            if (i / 4 % 2 == 0) {
                step.finish();
            } else {
                step.start();
                step.wait();
            }
            std::vector<std::byte> back(60'000);
            step.read(0, std::span(back));
            step.finish();
            EXPECT_EQ(back, data) << "step " << i;
        }
        file.close();
    }
}

TEST(Learning, ARelativePathIsThatOfTheDirectoryInWhichTheFileWasOpened)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    Scratch const scratch;
    auto const before = std::filesystem::current_path();
    std::filesystem::current_path(scratch.path(""));
    std::string text;
    for (int i = 0; i < 10 && text.empty(); ++i) {
        Options options;
        options.learn = "./learnt.txt";
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        std::filesystem::current_path(before);
        {
            auto step = file.declare(dealt(false));
            auto const data = stream(static_cast<std::uint64_t>(rank()), 60'000);
            for (int run = 0; run < 2000; ++run) {
                step.write(0, data);
                step.finish();
            }
        }
        file.close();
        MPI_Barrier(MPI_COMM_WORLD);
        std::filesystem::current_path(scratch.path(""));
        text = text_of("./learnt.txt");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    std::filesystem::current_path(before);
    EXPECT_TRUE(text.starts_with("tapioca learnt 1\n")) << text;
}

TEST(Learning, AForeignFileIsLeftAsItIs)
{
    Scratch const scratch;
    auto const path = scratch.path("data.txt");
    if (rank() == 0) std::ofstream(path) << "somebody's data\n";
    MPI_Barrier(MPI_COMM_WORLD);
    (void)run_often(scratch, path, 400);
    EXPECT_EQ(text_of(path), "somebody's data\n");
}

TEST(Learning, OneRankWithoutDataLearnsToo)
{
    Scratch const scratch;
    Options options;
    options.learn = "always";
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
    Pattern pattern;
    std::int64_t const each = rank() == ranks() - 1 && ranks() > 1 ? 0 : 70'000;
    pattern.add({{rank() * std::int64_t{70'000}, each}});
    auto step = file.declare(pattern);
    auto const data = stream(static_cast<std::uint64_t>(rank()), static_cast<std::size_t>(each));
    for (int i = 0; i < 8; ++i) {
        if (each > 0) step.write(0, data);
        step.finish();
        std::vector<std::byte> back(static_cast<std::size_t>(each));
        if (each > 0) step.read(0, std::span(back));
        step.finish();
        EXPECT_EQ(back, data);
    }
    file.close();
}

}  // namespace
}  // namespace tapioca::test
