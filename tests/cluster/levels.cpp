// levels DIR SSD [MIB] [COMPUTE_MS]: how long a program is held up by its writes when data stays on SSD, and when it is
// drained to DIR meanwhile; in turns. Each rank writes MIB per step, eight steps to one file, and computes in between.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <tapioca/tapioca.hpp>

namespace {

constexpr int steps = 8;
constexpr int turns = 5;

struct Times {
    double held_up = 0;  ///< in steps
    double closing = 0;
};

Times run(std::string const& path, tapioca::Options const& options, std::size_t bytes, int compute_ms)
{
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<char> data(bytes, static_cast<char>(rank));
    auto file = tapioca::File::open(MPI_COMM_WORLD, path, tapioca::Mode::create, options);
    tapioca::Pattern pattern;
    auto const mine = pattern.add({{static_cast<std::int64_t>(rank * bytes), static_cast<std::int64_t>(bytes)}});
    auto step = file.declare(pattern);
    Times times;
    for (int t = 0; t < steps; ++t) {
        std::memset(data.data(), t + rank, bytes);
        std::this_thread::sleep_for(std::chrono::milliseconds(compute_ms));
        MPI_Barrier(MPI_COMM_WORLD);
        auto const begin = MPI_Wtime();
        step.rebase(static_cast<std::int64_t>(t) * ranks * static_cast<std::int64_t>(bytes));
        step.write(mine, std::as_bytes(std::span(data)));
        step.finish();
        times.held_up += MPI_Wtime() - begin;
    }
    auto const begin = MPI_Wtime();
    file.close();
    times.closing = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &times, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return times;
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    if (argc < 3) {
        std::fprintf(stderr, "usage: levels DIR SSD [MIB] [COMPUTE_MS]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    std::string const directory = argv[1];
    auto const bytes = static_cast<std::size_t>(argc > 3 ? std::atoi(argv[3]) : 8) << 20;
    auto const compute_ms = argc > 4 ? std::atoi(argv[4]) : 1000;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    tapioca::Options alone;
    alone.target = std::string("ssd:") + argv[2];
    auto drained = alone;
    drained.target_drain = tapioca::TargetDrain::background;
    auto straight = tapioca::Options();
    std::vector<double> held[3];
    std::vector<double> closing[3];
    char const* const names[3] = {"first level alone", "drained meanwhile", "file system"};
    tapioca::Options const* const ways[3] = {&alone, &drained, &straight};
    for (int turn = 0; turn < turns; ++turn)
        for (int i = 0; i < 3; ++i) {
            auto const way = (turn + i) % 3;
            auto const times = run(directory + "/levels", *ways[way], bytes, compute_ms);
            held[way].push_back(times.held_up);
            closing[way].push_back(times.closing);
        }
    for (int way = 0; way < 3 && rank == 0; ++way)
        std::printf("%-18s  held up %8.1f ms (%.1f to %.1f)  close %8.1f ms  %5.2f of the first level alone\n",
                    names[way], median(held[way]) * 1e3, *std::min_element(held[way].begin(), held[way].end()) * 1e3,
                    *std::max_element(held[way].begin(), held[way].end()) * 1e3, median(closing[way]) * 1e3,
                    median(held[way]) / median(held[0]));
    MPI_Finalize();
    return 0;
}
