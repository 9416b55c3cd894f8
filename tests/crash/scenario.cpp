#include "crash/scenario.hpp"

#include <cstdlib>
#include <string_view>

namespace tapioca::test {

namespace {

/// A byte of the data of a call. The same as in support/mpi_test.cpp, which needs MPI.
std::byte byte_of(std::uint64_t seed, std::uint64_t index)
{
    auto x = seed * 0x9e3779b97f4a7c15U + index * 0xd1b54a32d192ed03U + 1;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93U;
    return static_cast<std::byte>(x >> 56);
}

/// The directory of a node is the working directory of its ranks.
void put_on_tier(Options& options, Random& random, CrashKind kind)
{
    options.target = "ssd:/proc/self/cwd";
    options.subfile.reset();
    if (random.chance(70)) options.ranks_per_node = random.pick(1, 2);
    options.target_through = random.one_of<std::uint64_t>({0, 0, 2000});
    if (kind.drains) {
        options.target_drain = TargetDrain::background;
        options.target_size = random.one_of<std::uint64_t>({10'000, 100'000, 300'000});
    } else {
        options.target_drain = random.one_of<TargetDrain>({TargetDrain::never, TargetDrain::close, TargetDrain::close});
    }
}

Options random_options(Random& random, std::string const& stage, CrashKind kind)
{
    Options options;
    options.stage = random.chance(60) || kind.loss ? "ssd:" + stage : "dram";
    options.stage_mapping = random.one_of<StageMapping>({StageMapping::process, StageMapping::node});
    options.stage_sync =
        random.one_of<StageSync>({StageSync::write, StageSync::collective, StageSync::sync, StageSync::sync});
    if (random.chance(40)) options.stage_size = random.one_of<std::uint64_t>({1, 1'200'000, 3'000'000});
    if (random.chance(40)) options.stage_drain = random.one_of<std::string>({"on", "100M"});
    if (random.chance(30)) options.direct = random.one_of<Direct>({Direct::never, Direct::always});
    options.buffersize = random.one_of<std::uint64_t>({4096, 65536});
    if (!kind.staged) {
        options.stage.reset();
        options.stage_sync = StageSync::sync;  // nothing else makes anything durable
        options.stage_drain.reset();
    }
    if (kind.subfiled) {
        options.subfile = random.one_of<std::string>({"node", "files:2", "files:2", "files:3", "nodes:2"});
        if (random.chance(40)) options.ranks_per_node = random.pick(1, 2);
    }
    if (kind.target) put_on_tier(options, random, kind);
    return options;
}

/// Blocks that all ranks write, each somebody else's in the next call: large requests, and overlaps.
Job turns(int ranks, std::int64_t block, int turn)
{
    Job job(static_cast<std::size_t>(ranks), std::vector<Declared>(1));
    for (int r = 0; r < ranks; ++r)
        job[static_cast<std::size_t>(r)][0].extents = {{(r + turn) % ranks * block + turn * 100, block}};
    return job;
}

CrashCall random_call(Random& random, std::vector<Job> const& jobs)
{
    CrashCall call;
    auto const what = random.pick(1, 100);
    if (what > 93) call.kind = CrashCall::Kind::flush;
    if (what > 96) call.kind = CrashCall::Kind::sync;
    if (what > 98) call.kind = CrashCall::Kind::size;
    if (what > 99) call.kind = CrashCall::Kind::pause;
    call.job = static_cast<std::size_t>(random.pick(0, static_cast<std::int64_t>(jobs.size()) - 1));
    auto const begin = begin_of(jobs[call.job]);
    call.base = random.one_of<std::int64_t>({0, 0, random.pick(0, 20'000), random.pick(-begin, 0)});
    call.in_background = random.chance(20);
    return call;
}

}  // namespace

CrashKind crash_kind()
{
    auto const* const words = std::getenv("CRASH_KIND");
    std::string_view const kind = words ? words : "";
    auto const has = [&](std::string_view word) { return kind.find(word) != kind.npos; };
    bool const target = has("target");
    bool const subfiled = has("subfiled") || target;
    return {has("dropin"), has("loss"), subfiled, !subfiled || has("staged"), target, has("drain")};
}

int node_of(Options const& options, int rank)
{
    return options.ranks_per_node ? rank / *options.ranks_per_node : 0;
}

Scenario scenario_of(std::uint64_t seed, int ranks, std::string const& stage, CrashKind kind)
{
    Random random(seed);
    Scenario scenario;
    scenario.options = random_options(random, stage, kind);
    scenario.create = random.chance(30);
    // That a file was emptied is promised as little as what is written then.
    if (kind.loss && !kind.subfiled && scenario.options.stage_sync == StageSync::sync) scenario.create = false;
    for (auto jobs = kind.dropin ? 0 : random.pick(1, 3); jobs > 0; --jobs)
        scenario.jobs.push_back(random_job(random, ranks));
    auto const block = random.one_of<std::int64_t>({700, 5'000, 70'000});
    for (int turn = 0; turn < 2; ++turn) scenario.jobs.push_back(turns(ranks, block, turn));
    for (auto calls = random.pick(3, 120); calls > 0; --calls) {
        auto call = random_call(random, scenario.jobs);
        // A rank alone does not reach what another node has.
        bool const reaches_all = !kind.target || node_of(scenario.options, ranks - 1) == 0;
        call.alone = kind.dropin && reaches_all && random.chance(40);
        // Between two collective calls ranks that write alone must keep out of each other's way.
        if (call.alone) call.job = 0;
        if (call.alone) call.base = 0;
        scenario.calls.push_back(call);
    }
    // That there is a set is promised only when something of it is.
    if (kind.loss && kind.subfiled && scenario.create) scenario.calls.front() = {CrashCall::Kind::sync};
    scenario.closes = random.chance(50);
    return scenario;
}

std::vector<Bytes> written_by(Scenario const& scenario, std::uint64_t seed, std::size_t call, std::size_t rank)
{
    std::vector<Bytes> all;
    for (auto const& variable : scenario.jobs[scenario.calls[call - 1].job][rank]) {
        Bytes data(static_cast<std::size_t>(variable.bytes()));
        auto const salt = seed * 7919 + call * 131 + rank * 17 + all.size();
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = byte_of(salt, i);
        all.push_back(std::move(data));
    }
    return all;
}

}  // namespace tapioca::test
