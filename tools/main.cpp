// tapioca: the command. Each verb is a function; `bench` starts tapioca-bench through the MPI it was built with.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <mpi.h>  // for the name of the MPI only
#include <sys/wait.h>
#include <unistd.h>

#include "info.hpp"
#include "plan.hpp"

namespace {

#if defined(OPEN_MPI)
constexpr bool open_mpi = true;
#else
constexpr bool open_mpi = false;
#endif

int fail(std::string const& what)
{
    fmt::print(stderr, "tapioca: {}\n", what);
    return 2;
}

char const* const usage =
    "tapioca " TAPIOCA_VERSION
    ": collective parallel I/O\n"
    "\n"
    "  tapioca bench [-n RANKS] [--io ompio|romio] [--mpiexec PROGRAM] WORKLOAD [OPTIONS]\n"
    "      starts RANKS ranks (default: one per core) and measures TAPIOCA beside MPI-IO and plain\n"
    "      system calls; WORKLOAD is hacc, interleaved or array1d; each has a --help\n"
    "  tapioca plan --platform NAME --nodes N --ppn K --workload W [OPTIONS]\n"
    "      the plan of a job that does not run: aggregators, tiers, costs; --explain, --compare, --json, --svg\n"
    "  tapioca info [--platform NAME] [--dir DIR] [--json]\n"
    "      what planning knows: this host, its memory tiers, the network, the file system of DIR\n"
    "  tapioca bench [-n RANKS] [--mpiexec PROGRAM] election [OPTIONS]\n"
    "      the cost of electing aggregators, beside communicators split one after the other\n"
    "  tapioca --version\n"
    "\n"
    "Examples\n"
    "  tapioca bench -n 4 hacc --particles 25000 --layout aos\n"
    "  tapioca bench -n 4 interleaved --block 64,1K,16K --dir /dev/shm --json cells.json\n"
    "  tapioca bench interleaved --help\n";

/// The launcher this was built with, or the first of its kind on the PATH.
std::string find_launcher()
{
    if (::access(TAPIOCA_MPIEXEC, X_OK) == 0) return TAPIOCA_MPIEXEC;
    return open_mpi ? "mpirun" : "mpiexec";
}

/// tapioca-bench lies beside this program.
std::string beside(std::string const& name)
{
    std::error_code error;
    auto const self = std::filesystem::read_symlink("/proc/self/exe", error);
    return error ? name : (self.parent_path() / name).string();
}

int execute(std::vector<std::string> const& command)
{
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (auto const& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::fflush(nullptr);
    ::execvp(arguments[0], arguments.data());
    return fail(fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
}

/// Runs a command and returns its exit status.
int run(std::vector<std::string> const& command)
{
    auto const child = ::fork();
    if (child == 0) std::_Exit(execute(command));
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) < 0) return fail(std::strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int bench(std::vector<std::string> const& words)
{
    auto const cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    int ranks = cores;
    std::string launcher = find_launcher();
    std::string io;
    std::vector<std::string> rest;
    for (std::size_t i = 0; i < words.size(); ++i) {
        bool const ours = rest.empty() && (words[i] == "-n" || words[i] == "--io" || words[i] == "--mpiexec");
        if (!ours) {
            rest.push_back(words[i]);
            continue;
        }
        if (i + 1 == words.size()) return fail(words[i] + " needs a value");
        auto const& value = words[++i];
        if (words[i - 1] == "--mpiexec") launcher = value;
        if (words[i - 1] == "--io") io = value;
        if (words[i - 1] == "-n") {
            char* end = nullptr;
            auto const number = std::strtol(value.c_str(), &end, 10);
            if (*end != '\0' || number < 1 || number > 100000)
                return fail(fmt::format("-n {}: expected a number of ranks", value));
            ranks = static_cast<int>(number);
        }
    }
    if (rest.empty() || rest[0] == "--help" || rest[0] == "-h") {
        fmt::print("{}", usage);
        return rest.empty() ? 2 : 0;
    }
    for (auto const& word : rest)
        if (word == "--help" || word == "-h") return execute({beside("tapioca-bench"), rest[0], "--help"});

    // What is wrong with the arguments is said once, here, and not by every rank.
    std::vector<std::string> trial{beside("tapioca-bench")};
    trial.insert(trial.end(), rest.begin(), rest.end());
    trial.emplace_back("--parse-only");
    if (int const status = run(trial); status != 0) return status;

    std::vector<std::string> command{launcher, "-n", std::to_string(ranks)};
    if (open_mpi) {
        if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
        if (ranks > cores) command.emplace_back("--oversubscribe");
        if (!io.empty()) {
            if (io != "ompio" && io != "romio") return fail(fmt::format("--io {}: expected ompio or romio", io));
            ::setenv("OMPI_MCA_io", io == "romio" ? "romio321" : "ompio", 1);
        }
    } else if (!io.empty() && io != "romio") {
        return fail(fmt::format("--io {}: MPICH's MPI-IO is romio", io));
    }
    command.push_back(beside("tapioca-bench"));
    command.insert(command.end(), rest.begin(), rest.end());
    if (::isatty(STDERR_FILENO)) command.emplace_back("--live");
    return execute(command);
}

}  // namespace

int main(int argc, char** argv)
{
    std::vector<std::string> const words(argv + 1, argv + argc);
    if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
        fmt::print("{}", usage);
        return words.empty() ? 2 : 0;
    }
    if (words[0] == "--version") {
        fmt::print("tapioca {} for {}\n", TAPIOCA_VERSION, open_mpi ? "Open MPI" : "MPICH");
        return 0;
    }
    if (words[0] == "bench") return bench({words.begin() + 1, words.end()});
    if (words[0] == "plan") return plan({words.begin() + 1, words.end()});
    if (words[0] == "info") return info({words.begin() + 1, words.end()});
    return fail(fmt::format("unknown command {}: try tapioca --help", words[0]));
}
