// What a run reports about itself: plans in words and as JSON, reports, sizes; and the settings that affect it.
#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t each = 100'000;

Pattern blocks()
{
    Pattern pattern;
    pattern.add({{rank() * each, each}});
    return pattern;
}

void write_and_read(File& file)
{
    auto step = file.declare(blocks());
    auto const data = stream(static_cast<std::uint64_t>(rank()), each);
    step.write(0, data);
    step.finish();
    std::vector<std::byte> back(each);
    step.read(0, back);
    step.finish();
    EXPECT_TRUE(back == data);
}

Options small_buffers()
{
    Options options;
    options.direct = Direct::never;
    options.buffersize = 8192;
    options.nbaggr = 1;
    return options;
}

TEST(Report, AccountsForEveryFileOfTheProcess)
{
    Scratch const scratch;
    auto options = small_buffers();
    options.report = scratch.path("report.json");
    for (auto const* const name : {"first", "second"}) {
        auto file = File::open(MPI_COMM_WORLD, scratch.path(name), Mode::create, options);
        write_and_read(file);
        file.close();
    }
    barrier();
    std::ifstream in(*options.report);
    auto const report = Json::parse(in, nullptr, false);
    ASSERT_FALSE(report.is_discarded());
    EXPECT_TRUE(report.contains("tapioca"));
    ASSERT_EQ(report["files"].size(), 2U);
    auto const all = static_cast<std::uint64_t>(each * ranks());
    for (auto const& file : report["files"]) {
        EXPECT_EQ(file["mode"], "create");
        EXPECT_EQ(file["ranks"], ranks());
        ASSERT_EQ(file["plans"].size(), 1U);
        auto const& plan = file["plans"][0];
        EXPECT_EQ(plan["bytes"], all);
        EXPECT_EQ(plan["write"]["way"], "aggregated");
        EXPECT_EQ(plan["write"]["buffer_bytes"], 8192);
        EXPECT_EQ(plan["write"]["aggregators"], Json::array({0}));
        bool found = false;
        for (auto const& option : file["options"])
            if (option["name"] == "buffersize") {
                found = true;
                EXPECT_EQ(option["value"], "8192");
                EXPECT_EQ(option["origin"], "code");
            }
        EXPECT_TRUE(found);
        for (auto const* const direction : {"write", "read"}) {
            auto const& account = file[direction];
            EXPECT_EQ(account["steps"], 1);
            EXPECT_EQ(account["bytes"], all);
            EXPECT_EQ(account["target_bytes"], all);
            EXPECT_EQ(account["rounds"], (all + 8191) / 8192);
            EXPECT_GE(account["target_calls"], account["rounds"]);
            for (auto const* const part : {"copying", "waiting", "draining"}) {
                EXPECT_GE(account["seconds"][part]["max"].get<double>(),
                          account["seconds"][part]["mean"].get<double>());
                EXPECT_GE(account["seconds"][part]["mean"].get<double>(), 0);
                EXPECT_LT(account["seconds"][part]["max"].get<double>(), 60);
            }
        }
        EXPECT_GT(file["planning_seconds"]["max"].get<double>(), 0);
        EXPECT_GT(file["most_bookkeeping_bytes"].get<std::uint64_t>(), 0U);
    }
    EXPECT_EQ(report["files"][0]["path"], scratch.path("first"));
    EXPECT_EQ(report["files"][1]["path"], scratch.path("second"));
}

TEST(Report, TellsWhatWentToWhichLevelAndHowLongItWaitedForRoom)
{
    Scratch const scratch;
    std::filesystem::create_directory(scratch.path("tier"));
    constexpr int steps = 6;
    auto const* const per_node = std::getenv("TAPIOCA_RANKS_PER_NODE");
    auto const of_step = each * (per_node ? std::atoi(per_node) : ranks());  // of rank 0's group
    auto const all = static_cast<std::uint64_t>(steps * of_step);
    for (auto const drain : {TargetDrain::close, TargetDrain::background}) {
        Options options;
        options.target = "ssd:" + scratch.path("tier");
        options.target_through = 0;
        options.target_drain = drain;
        options.target_size = static_cast<std::uint64_t>(2 * of_step + 2 * 4096);  // two steps
        options.report = scratch.path(drain == TargetDrain::close ? "close.json" : "background.json");
        auto file = File::open(MPI_COMM_WORLD, scratch.path("a"), Mode::create, options);
        auto step = file.declare(blocks());
        auto const data = stream(static_cast<std::uint64_t>(rank()), each);
        for (int t = 0; t < steps; ++t) {
            step.rebase(t * each * ranks());
            step.write(0, data);
            step.finish();
        }
        file.close();
        barrier();
        std::ifstream in(*options.report);
        auto const report = Json::parse(in, nullptr, false);
        ASSERT_FALSE(report.is_discarded());
        auto const& levels = report["files"][0]["subfiles"]["levels"];
        EXPECT_EQ(levels["tier_bytes"].get<std::uint64_t>() + levels["file_system_bytes"].get<std::uint64_t>(), all);
        EXPECT_GT(levels["drained_bytes"], 0);
        EXPECT_GT(levels["draining_seconds"], 0.0);
        EXPECT_GT(levels["waiting_seconds"], 0.0) << "six steps, and room for two";
        if (drain == TargetDrain::close) {
            EXPECT_EQ(levels["tier_bytes"], all / 3);  // what is drained at the end makes no room
        } else {
            EXPECT_EQ(levels["tier_bytes"], all) << "a full level slows down, and nothing goes past it";
        }
        barrier();
    }
}

TEST(Report, OfFilesThatRanksOpenAloneHasANamePerRank)
{
    Scratch const scratch;
    Options options;
    options.report = scratch.path("report.json");
    auto file = File::open(MPI_COMM_SELF, scratch.path("self" + std::to_string(rank())), Mode::create, options);
    file.close();
    barrier();
    auto const name = rank() == 0 ? "report.json" : "report.rank" + std::to_string(rank()) + ".json";
    std::ifstream in(scratch.path(name));
    EXPECT_FALSE(Json::parse(in, nullptr, false).is_discarded()) << name;
}

TEST(Report, ThatCannotBeWrittenIsNoReasonToFail)
{
    Scratch const scratch;
    Options options;
    options.report = scratch.path("no/such/directory/report.json");
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
    write_and_read(file);
    file.close();
    EXPECT_EQ(contents(scratch.path("file")).size(), static_cast<std::size_t>(each * ranks()));
}

TEST(Plan, IsTheSameOnEveryRankInWordsAndAsJson)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, small_buffers());
    auto const plan = file.declare(blocks()).plan();
    expect_parts(plan.explain(), {"plan for " + std::to_string(ranks()) + " rank", "write 1 aggregator on rank 0",
                                  "8 KiB", "direct=never asked for", "buffersize=8192 (code)", "read"});
    auto const json = Json::parse(plan.json(), nullptr, false);
    ASSERT_FALSE(json.is_discarded());
    EXPECT_EQ(json["ranks"], ranks());
    for (auto const* const key : {"write", "read", "options", "file_system", "block_bytes", "bytes", "pieces"})
        EXPECT_TRUE(json.contains(key)) << key;
    auto const digest = std::hash<std::string>{}(plan.explain() + plan.json());
    EXPECT_EQ(digest, from_rank_0(digest));
    file.close();
}

TEST(Plan, SaysOnEveryRankWhatBecameOfAWishForStripes)
{
    Scratch const scratch;
    auto options = small_buffers();
    options.striping_unit = 1 << 20;
    options.striping_factor = 4;
    for (auto const* const why : {"stripes", "keeps its stripes"}) {  // a new file, and one that is there
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        auto const plan = file.declare(blocks()).plan();
        expect_parts(plan.explain(), {"striping_unit=1048576 (code)"});
        auto const json = Json::parse(plan.json(), nullptr, false);
        if (json["file_system"] != "lustre" && json["file_system"] != "ceph")
            expect_parts(plan.explain(), {"note: striping_unit and striping_factor: ", why});
        auto const digest = std::hash<std::string>{}(plan.explain() + plan.json());
        EXPECT_EQ(digest, from_rank_0(digest));
        file.close();
    }
}

TEST(Plan, TakesHintsFromMpiInfoAndTheEnvironmentAboveThem)
{
    Scratch const scratch;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tapioca_buffersize", "16K");
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_Info_set(info, "tapioca_buffers", "3");
    MPI_Info_set(info, "some_other_hint", "x");
    ::setenv("TAPIOCA_BUFFERS", "4", 1);
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, small_buffers(), info);
    ::unsetenv("TAPIOCA_BUFFERS");
    MPI_Info_free(&info);
    auto const json = Json::parse(file.declare(blocks()).plan().json());
    EXPECT_EQ(json["write"]["buffer_bytes"], 16384);
    EXPECT_EQ(json["write"]["buffers"], 4);
    for (auto const& option : json["options"]) {
        auto const origin = option["name"] == "buffers" ? "environment" : option["name"] == "direct" ? "code" : "hint";
        EXPECT_EQ(option["origin"], origin) << option["name"];
    }
    write_and_read(file);
    file.close();
}

TEST(Settings, DevnullGathersButDoesNotWrite)
{
    Scratch const scratch;
    for (auto const direct : {Direct::never, Direct::always}) {
        auto options = small_buffers();
        options.direct = direct;
        options.devnull = true;
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        auto step = file.declare(blocks());
        auto const data = stream(1, each);
        step.write(0, data);
        EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(each));
        EXPECT_EQ(file.size(), 0U);
        file.close();
        EXPECT_EQ(contents(scratch.path("file")).size(), 0U);
    }
}

TEST(Settings, MemoryCapMakesBuffersSmallerAndTheFileTheSame)
{
    Scratch const scratch;
    Options options;
    options.direct = Direct::never;
    options.buffersize = 1 << 20;
    options.memory = 40'000;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("capped"), Mode::create, options);
    auto step = file.declare(blocks());
    auto const json = Json::parse(step.plan().json());
    EXPECT_LE(json["write"]["buffer_bytes"].get<int>() * json["write"]["buffers"].get<int>(), 40'000);
    EXPECT_NE(json["write"]["notes"].dump().find("TAPIOCA_MEMORY"), std::string::npos);
    write_and_read(file);
    file.close();
    auto plain = File::open(MPI_COMM_WORLD, scratch.path("plain"), Mode::create);
    write_and_read(plain);
    plain.close();
    EXPECT_TRUE(contents(scratch.path("capped")) == contents(scratch.path("plain")));
}

TEST(Settings, DirectOrNotTheFileIsTheSame)
{
    Scratch const scratch;
    std::int64_t const sizes[] = {4, 8, 2};  // of a value of each variable, which has the arrays of all ranks in turn
    auto const before = [](std::int64_t of_rank) { return 1000 * of_rank + 7 * of_rank * (of_rank - 1) / 2; };
    Pattern pattern;
    std::vector<std::vector<std::byte>> data;
    std::int64_t begin = 24;
    for (auto const size : sizes) {
        pattern.add({{begin + before(rank()) * size, (1000 + 7 * rank()) * size}});
        data.push_back(stream(data.size() * 100 + static_cast<std::uint64_t>(rank()), pattern.bytes(data.size())));
        begin += before(ranks()) * size;
    }
    for (auto const direct : {Direct::never, Direct::always, Direct::automatic}) {
        Options options;
        options.direct = direct;
        auto file =
            File::open(MPI_COMM_WORLD, scratch.path(std::to_string(static_cast<int>(direct))), Mode::create, options);
        auto step = file.declare(pattern);
        for (std::size_t v = 0; v < data.size(); ++v) step.write(v, data[v]);
        step.finish();
        auto const way = Json::parse(step.plan().json())["write"]["way"];
        EXPECT_TRUE(direct == Direct::automatic || way == (direct == Direct::always ? "direct" : "aggregated"));
        file.close();
    }
    auto const never = contents(scratch.path("1"));
    EXPECT_EQ(never.size(), static_cast<std::size_t>(begin));
    EXPECT_TRUE(never == contents(scratch.path("2")));
    EXPECT_TRUE(never == contents(scratch.path("0")));
}

TEST(File, SizeAndSyncAreKnownToAllRanks)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    EXPECT_EQ(file.size(), 0U);
    file.sync();
    write_and_read(file);
    file.sync();
    EXPECT_EQ(file.size(), static_cast<std::uint64_t>(each * ranks()));
    file.close();
    auto again = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::update);
    EXPECT_EQ(again.size(), static_cast<std::uint64_t>(each * ranks()));
    again.close();
    auto empty = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    EXPECT_EQ(empty.size(), 0U) << "create empties an existing file";
    empty.close();
}

}  // namespace
}  // namespace tapioca::test
