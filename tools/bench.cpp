// tapioca bench: starts tapioca-bench on its own ranks.
#include <algorithm>

#include <fmt/core.h>

#include "launch.hpp"
#include "verb.hpp"
#include "workloads/workload.hpp"

namespace tools {

namespace {

std::vector<Use> bench_uses()
{
    return {
        {"[-n RANKS] [--io ompio|romio] [--mpiexec PROGRAM] WORKLOAD [OPTIONS]",
         fmt::format("starts RANKS ranks (default: one per core) and measures TAPIOCA beside MPI-IO and plain system "
                     "calls; WORKLOAD is {}; each has a --help. With --dropin MPI-IO also through the library that "
                     "`tapioca run` loads. {} write whole files in small calls, also through logs on a fast tier: "
                     "--stage TIER, such as dram or ssd:DIR",
                     workloads::benchmarked(false, "or"), workloads::benchmarked(true, "and"))},
        {"[-n RANKS] [--mpiexec PROGRAM] election [OPTIONS]",
         "the cost of electing aggregators, beside communicators split one after the other"},
        {"[-n RANKS] [--mpiexec PROGRAM] halo [OPTIONS]",
         "arrays with ghost cells, written and read from where they lie in memory and packed by hand"},
        {"[-n RANKS] [--io ompio|romio] [--mpiexec PROGRAM] workflow [--ssd DIR] [OPTIONS]",
         "particles that a simulation writes and an analysis reads: MPI-IO beside the file system, aggregation on SSD "
         "and SSD target"}};
}

int run_bench(Words const& words)
{
    auto how = take_launch(words, true);
    if (!how) return fail("", how.error().text);
    auto& rest = how->rest;
    if (rest.size() > 1 && rest[0] == "--dropin") std::swap(rest[0], rest[1]);  // the workload comes first
    if (rest.empty() || rest[0] == "--help" || rest[0] == "-h") {
        fmt::print("{}", usage());
        return rest.empty() ? 2 : 0;
    }
    if (wants_help(rest)) return start_alone("tapioca-bench", {rest[0], "--help"});
    return launch("tapioca-bench", *how);
}

}  // namespace

extern constexpr Verb bench = {.name = "bench",
                               .uses = bench_uses,
                               .run = run_bench,
                               .examples =
                                   "  tapioca bench -n 4 hacc --particles 25000 --layout aos\n"
                                   "  tapioca bench -n 4 interleaved --block 64,1K,16K --dir /dev/shm --json "
                                   "cells.json\n"
                                   "  tapioca bench -n 4 strided --block 4K,64K --stage dram\n"
                                   "  tapioca bench interleaved --help\n"};

}  // namespace tools
