// tapioca: the command. Each verb is a function; `bench` and `calibrate` start MPI programs.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "info.hpp"
#include "launch.hpp"
#include "log.hpp"
#include "plan.hpp"
#include "run.hpp"

namespace {

char const* const usage =
    "tapioca " TAPIOCA_VERSION
    ": collective parallel I/O\n"
    "\n"
    "  tapioca bench [-n RANKS] [--io ompio|romio] [--mpiexec PROGRAM] WORKLOAD [OPTIONS]\n"
    "      starts RANKS ranks (default: one per core) and measures TAPIOCA beside MPI-IO and plain\n"
    "      system calls; WORKLOAD is hacc, interleaved or array1d; each has a --help. With --dropin\n"
    "      MPI-IO also through the library that `tapioca run` loads. strided and segmented write whole\n"
    "      files in small calls, also through logs on a fast tier: --stage dram or ssd:DIR\n"
    "  tapioca run [--report FILE] [--set NAME=VALUE]... [--dry-run] -- LAUNCHER ARGUMENTS PROGRAM ARGUMENTS\n"
    "      runs a program that uses MPI-IO, unchanged, with TAPIOCA in its ranks: -- mpiexec -n 64 ./app\n"
    "  tapioca plan --platform NAME --nodes N --ppn K --workload W [OPTIONS]\n"
    "      the plan of a job that does not run: aggregators, tiers, costs; --explain, --compare, --json, --svg\n"
    "  tapioca info [--platform NAME] [--dir DIR] [--json]\n"
    "      what planning knows: this host, its memory tiers, the network, the file system of DIR\n"
    "  tapioca calibrate [-n RANKS] [--mpiexec PROGRAM] [--platform NAME] [--dir DIR] [--tier TIER]...\n"
    "                    [--output FILE] [--force] [--quick]\n"
    "      measures links, tiers and the file system of DIR, and writes a file for TAPIOCA_PLATFORM\n"
    "  tapioca log list|dump|verify|read|recover|discard [OPTIONS] PATH\n"
    "      the logs of staged files (TAPIOCA_STAGE): what is in them, and what to do after a crash\n"
    "  tapioca bench [-n RANKS] [--mpiexec PROGRAM] election [OPTIONS]\n"
    "      the cost of electing aggregators, beside communicators split one after the other\n"
    "  tapioca --version\n"
    "\n"
    "Examples\n"
    "  tapioca bench -n 4 hacc --particles 25000 --layout aos\n"
    "  tapioca bench -n 4 interleaved --block 64,1K,16K --dir /dev/shm --json cells.json\n"
    "  tapioca bench -n 4 strided --block 4K,64K --stage dram\n"
    "  tapioca bench interleaved --help\n"
    "  tapioca run -- mpiexec -n 64 ./app\n";

bool wants_help(std::vector<std::string> const& words)
{
    return std::any_of(words.begin(), words.end(), [](auto const& word) { return word == "--help" || word == "-h"; });
}

int bench(std::vector<std::string> const& words)
{
    auto how = take_launch(words, true);
    if (!how) return fail(how.error().text);
    auto& rest = how->rest;
    if (rest.size() > 1 && rest[0] == "--dropin") std::swap(rest[0], rest[1]);  // the workload comes first
    if (rest.empty() || rest[0] == "--help" || rest[0] == "-h") {
        fmt::print("{}", usage);
        return rest.empty() ? 2 : 0;
    }
    if (wants_help(rest)) return start_alone("tapioca-bench", {rest[0], "--help"});
    return launch("tapioca-bench", *how);
}

int calibrate(std::vector<std::string> const& words)
{
    auto const how = take_launch(words, false);
    if (!how) return fail(how.error().text);
    if (wants_help(how->rest)) return start_alone("tapioca-calibrate", {"--help"});
    return launch("tapioca-calibrate", *how);
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
        fmt::print("tapioca {} for {}\n", TAPIOCA_VERSION, mpi_name());
        return 0;
    }
    if (words[0] == "bench") return bench({words.begin() + 1, words.end()});
    if (words[0] == "calibrate") return calibrate({words.begin() + 1, words.end()});
    if (words[0] == "run") return run({words.begin() + 1, words.end()});
    if (words[0] == "plan") return plan({words.begin() + 1, words.end()});
    if (words[0] == "log") return log({words.begin() + 1, words.end()});
    if (words[0] == "info") return info({words.begin() + 1, words.end()});
    return fail(fmt::format("unknown command {}: try tapioca --help", words[0]));
}
