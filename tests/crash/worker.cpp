// crash_worker SEED TARGET STAGE DIRECTORY: writes a staged file as the seed says, to be killed meanwhile. Each rank
// writes its process id to DIRECTORY/pid.RANK, and to DIRECTORY/progress.RANK which calls it has begun and which have
// returned. What it wrote outlives the process, since it went to the kernel. Rank CRASH_RANK kills itself in the
// middle, or does what CRASH_WAY says: segv, abort (MPI's), exit. CRASH_PAUSE
// is the time between two calls in us.
//
// crash_worker open TARGET: opens the file and closes it; says why if it cannot.
#include <mpi.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <tapioca/tapioca.hpp>

#include "crash/scenario.hpp"

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

void run(std::uint64_t seed, std::string const& target, std::string const& stage, std::string const& directory)
{
    auto const scenario = scenario_of(seed, ranks, stage);
    Diary const diary(directory);
    tell_process(directory);
    MPI_Barrier(MPI_COMM_WORLD);
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
        case CrashCall::Kind::flush: file.flush(); break;
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

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int result = 0;
    if (argc == 3 && std::strcmp(argv[1], "open") == 0)
        result = open_only(argv[2]);
    else if (argc >= 5)  // more is a mark to find the process by
        run(std::strtoull(argv[1], nullptr, 10), argv[2], argv[3], argv[4]);
    else
        result = 2;
    MPI_Finalize();
    return result;
}
