// crash_worker SEED TARGET STAGE DIRECTORY: writes a staged file as the seed says, to be killed meanwhile. Each rank
// writes its process id to DIRECTORY/pid.RANK, and to DIRECTORY/progress.RANK which calls it has begun and which have
// returned. What it wrote outlives the process, since it went to the kernel. Rank CRASH_RANK kills itself in the
// middle, or does what CRASH_WAY says: segv, abort (MPI's), exit. CRASH_PAUSE
// is the time between two calls in us. CRASH_KIND says which kind of job it is: scenario.hpp.
//
// The ranks of a job on a tier work in the directory TARGET's/nodeN of their node.
//
// crash_worker open TARGET: opens the file and closes it; says why if it cannot.
// crash_worker fill SEED TARGET FROM: all ranks write the bytes of FROM, with the options of the seed.
// crash_worker read TARGET TO: ranks, of which each is a node by itself, read the file; rank 0 makes a plain file of
// it.
#include <mpi.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <tapioca/tapioca.hpp>

#include "crash/scenario.hpp"
#include "support/file_model.hpp"

namespace {

using namespace tapioca;
using namespace tapioca::test;

int rank = 0;
int ranks = 1;

/// Where this rank tells how far it came.
class Diary {
public:
    explicit Diary(std::string const& directory)
        : fd_(::open((directory + "/progress." + std::to_string(rank)).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600))
    {
    }
    void begin(std::size_t call) const { tell('b', call); }
    void end(std::size_t call) const { tell('r', call); }

private:
    void tell(char what, std::size_t call) const
    {
        char line[32];
        auto const bytes = std::snprintf(line, sizeof line, "%c %zu\n", what, call);
        if (::write(fd_, line, static_cast<std::size_t>(bytes)) != bytes) std::abort();
    }
    int fd_;
};

/// The process id, whole from the moment there is a file of that name.
void tell_process(std::string const& directory)
{
    auto const path = directory + "/pid." + std::to_string(rank);
    auto* const file = std::fopen((path + ".new").c_str(), "w");
    std::fprintf(file, "%d\n", static_cast<int>(::getpid()));
    std::fclose(file);
    std::rename((path + ".new").c_str(), path.c_str());
}

void die()
{
    auto const* const way = std::getenv("CRASH_WAY");
    std::string const name = way ? way : "kill";
    if (name == "abort") MPI_Abort(MPI_COMM_WORLD, 3);
    if (name == "exit") std::exit(0);
    ::kill(::getpid(), name == "segv" ? SIGSEGV : SIGKILL);
    ::pause();
}

void write(Scenario const& scenario, std::uint64_t seed, std::size_t number, Step& step)
{
    auto const& call = scenario.calls[number - 1];
    auto data = written_by(scenario, seed, number, static_cast<std::size_t>(rank));
    for (std::size_t v = 0; v < data.size(); ++v) step.write(v, data[v]);
    step.rebase(call.base);
    if (call.in_background) {
        step.start();
        step.progress();
        step.wait();
    } else {
        step.finish();
    }
}

/// The same with MPI-IO, whose settings come from the environment.
class MpiIo {
public:
    MpiIo(Scenario const& scenario, std::uint64_t seed, std::string const& target) : scenario_(scenario), seed_(seed)
    {
        auto const& options = scenario.options;
        if (options.stage) set("STAGE", *options.stage);
        if (options.subfile) set("SUBFILE", *options.subfile);
        if (options.ranks_per_node) set("RANKS_PER_NODE", std::to_string(*options.ranks_per_node));
        if (options.target) set_target(options);
        set("STAGE_MAPPING", scenario.options.stage_mapping == StageMapping::node ? "node" : "process");
        auto const sync = *scenario.options.stage_sync;
        set("STAGE_SYNC", sync == StageSync::write ? "write" : sync == StageSync::collective ? "collective" : "sync");
        if (scenario.options.stage_size) set("STAGE_SIZE", std::to_string(*scenario.options.stage_size));
        if (scenario.options.stage_drain) set("STAGE_DRAIN", *scenario.options.stage_drain);
        set("BUFFERSIZE", std::to_string(*scenario.options.buffersize));
        if (scenario.create && rank == 0) {
            if (options.subfile)
                (void)MPI_File_delete(target.c_str(), MPI_INFO_NULL);
            else
                (void)::truncate(target.c_str(), 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        check(MPI_File_open(MPI_COMM_WORLD, target.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file_));
    }
    void call(std::size_t number)
    {
        auto const& call = scenario_.calls[number - 1];
        MPI_Offset size = 0;
        switch (call.kind) {
        case CrashCall::Kind::write: write(number); break;
        case CrashCall::Kind::flush:
        case CrashCall::Kind::sync: check(MPI_File_sync(file_)); break;
        case CrashCall::Kind::size: check(MPI_File_get_size(file_, &size)); break;
        case CrashCall::Kind::pause: ::usleep(2000); break;
        }
    }
    void close() { check(MPI_File_close(&file_)); }

private:
    static void set(char const* name, std::string const& value)
    {
        ::setenv((std::string("TAPIOCA_") + name).c_str(), value.c_str(), 1);
    }
    static void set_target(Options const& options)
    {
        set("TARGET", *options.target);
        set("TARGET_DRAIN", *options.target_drain == TargetDrain::never        ? "never"
                            : *options.target_drain == TargetDrain::background ? "background"
                                                                               : "close");
        set("TARGET_THROUGH", std::to_string(*options.target_through));
        if (options.target_size) set("TARGET_SIZE", std::to_string(*options.target_size));
    }
    static void check(int error)
    {
        if (error == MPI_SUCCESS) return;
        std::fprintf(stderr, "terminate called: an MPI-IO call failed with %d\n", error);
        std::abort();
    }
    void write(std::size_t number)
    {
        auto const& call = scenario_.calls[number - 1];
        auto const data = written_by(scenario_, seed_, number, static_cast<std::size_t>(rank)).front();
        auto const& extent = scenario_.jobs[call.job][static_cast<std::size_t>(rank)].front().extents.front();
        auto const write_at = call.alone ? &MPI_File_write_at : &MPI_File_write_at_all;
        check(write_at(file_, call.base + extent.offset, data.data(), static_cast<int>(data.size()), MPI_BYTE,
                       MPI_STATUS_IGNORE));
    }

    Scenario const& scenario_;
    std::uint64_t seed_;
    MPI_File file_ = MPI_FILE_NULL;
};

void run_mpiio(Scenario const& scenario, std::uint64_t seed, std::string const& target, Diary const& diary)
{
    diary.begin(0);
    MpiIo file(scenario, seed, target);
    diary.end(0);
    for (std::size_t number = 1; number <= scenario.calls.size(); ++number) {
        diary.begin(number);
        file.call(number);
        diary.end(number);
    }
    if (scenario.closes) file.close();
    if (!scenario.closes) ::sleep(20);
}

/// Goes to the directory of this rank's node.
void go_to(int node, std::string const& target)
{
    auto const directory = std::filesystem::path(target).parent_path() / ("node" + std::to_string(node));
    std::filesystem::current_path(directory);
}

void run(std::uint64_t seed, std::string const& target, std::string const& stage, std::string const& directory)
{
    auto const scenario = scenario_of(seed, ranks, stage, crash_kind());
    Diary const diary(directory);
    tell_process(directory);
    if (crash_kind().target) go_to(node_of(scenario.options, rank), target);
    MPI_Barrier(MPI_COMM_WORLD);
    if (crash_kind().dropin) return run_mpiio(scenario, seed, target, diary);
    diary.begin(0);
    auto file = File::open(MPI_COMM_WORLD, target, scenario.create ? Mode::create : Mode::update, scenario.options);
    diary.end(0);
    auto const* const dying = std::getenv("CRASH_RANK");
    bool const dies = dying && std::atoi(dying) == rank;
    std::vector<Step> steps;
    for (auto const& job : scenario.jobs)
        steps.push_back(file.declare(pattern_of(job[static_cast<std::size_t>(rank)])));
    for (std::size_t number = 1; number <= scenario.calls.size(); ++number) {
        if (dies && number > scenario.calls.size() / 2) die();
        if (auto const* const pause = std::getenv("CRASH_PAUSE")) ::usleep(static_cast<useconds_t>(std::atoi(pause)));
        diary.begin(number);
        auto const& call = scenario.calls[number - 1];
        switch (call.kind) {
        case CrashCall::Kind::write: write(scenario, seed, number, steps[call.job]); break;
        case CrashCall::Kind::flush: crash_kind().target ? file.drain() : file.flush(); break;
        case CrashCall::Kind::sync: file.sync(); break;
        case CrashCall::Kind::size: (void)file.size(); break;
        case CrashCall::Kind::pause: ::usleep(2000); break;
        }
        diary.end(number);
    }
    steps.clear();
    if (scenario.closes) file.close();
    // Without close() the driver's kill is what ends it, so wait for that.
    if (!scenario.closes) ::sleep(20);
}

int open_only(std::string const& target)
try {
    File::open(MPI_COMM_WORLD, target, Mode::update).close();
    return 0;
} catch (Error const& error) {
    if (rank == 0) std::printf("%d %s\n", error.code() == Errc::invalid_state, error.what());
    return 1;
}

/// The part of `bytes` bytes that this rank has.
Pattern part_of(std::int64_t bytes)
{
    auto const begin = bytes * rank / ranks;
    Pattern pattern;
    pattern.add({{begin, bytes * (rank + 1) / ranks - begin}});
    return pattern;
}

void fill(std::uint64_t seed, std::string const& target, std::string const& from)
{
    auto const options = scenario_of(seed, ranks, "", crash_kind()).options;
    go_to(node_of(options, rank), target);
    auto file = File::open(MPI_COMM_WORLD, target, Mode::create, options);
    auto const all = contents(from);
    auto const size = static_cast<std::int64_t>(all.size());
    auto const begin = size * rank / ranks;
    auto const part = std::span(all).subspan(static_cast<std::size_t>(begin),
                                             static_cast<std::size_t>(size * (rank + 1) / ranks - begin));
    {
        auto step = file.declare(part_of(size));
        step.write(0, part);
        step.finish();
    }
    file.close();
}

int read(std::string const& target, std::string const& to)
try {
    go_to(rank, target);
    Options options;
    options.ranks_per_node = 1;
    auto file = File::open(MPI_COMM_WORLD, target, Mode::read, options);
    auto const size = static_cast<std::int64_t>(file.size());
    Bytes all(static_cast<std::size_t>(size));
    {
        // Every rank reads all of it, so that all get what others have.
        Pattern pattern;
        pattern.add({{0, size}});
        auto step = file.declare(pattern);
        step.read(0, all);
        step.finish();
    }
    file.close();
    if (rank == 0) std::ofstream(to, std::ios::binary).write(reinterpret_cast<char const*>(all.data()), size);
    return 0;
} catch (Error const& error) {
    if (rank == 0) std::printf("%s\n", error.what());
    return 1;
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int result = 0;
    if (argc == 3 && std::strcmp(argv[1], "open") == 0)
        result = open_only(argv[2]);
    else if (argc == 5 && std::strcmp(argv[1], "fill") == 0)
        fill(std::strtoull(argv[2], nullptr, 10), argv[3], argv[4]);
    else if (argc == 4 && std::strcmp(argv[1], "read") == 0)
        result = read(argv[2], argv[3]);
    else if (argc >= 5)  // more is a mark to find the process by
        run(std::strtoull(argv[1], nullptr, 10), argv[2], argv[3], argv[4]);
    else
        result = 2;
    MPI_Finalize();
    return result;
}
