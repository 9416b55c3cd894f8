// The analysis of the workflow: reads the snapshots of `simulation`, with any number of ranks, and prints the energy
// and a histogram of the speeds for each. It compares every snapshot with its checksum.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "snapshot.hpp"

namespace {

constexpr auto usage =
    "usage: workflow_analysis [--follow SECONDS] DIR\n"
    "  reads the snapshots that `simulation` has written to DIR: step.0000, step.0001, ...\n"
    "  --follow SECONDS   runs at the same time as the simulation: waits so long for each step [0]\n";

struct Arguments {
    std::int64_t follow_s = 0;
    std::string directory;
};

Arguments parse(int argc, char** argv)
{
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        std::string const word = argv[i];
        if (word == "--follow") {
            auto const given = i + 1 < argc ? workflow::number(argv[++i], 1) : std::nullopt;
            if (!given) throw workflow::Failure(2, "--follow: expected a number of seconds, at least 1");
            arguments.follow_s = *given;
        } else if (word.starts_with("-") || !arguments.directory.empty()) {
            throw workflow::Failure(2, word + ": not an argument of analysis; see --help");
        } else {
            arguments.directory = word;
        }
    }
    if (arguments.directory.empty())
        throw workflow::Failure(2, "the directory of the snapshots is missing; see --help");
    return arguments;
}

/// Waits until the simulation says that the snapshot of `step` is complete, or the time is over. For rank 0.
bool is_complete(Arguments const& arguments, std::int64_t step)
{
    auto const path = workflow::done_path(arguments.directory, step);
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(arguments.follow_s);
    bool found = false;
    while (!(found = ::access(path.c_str(), F_OK) == 0) && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return found;
}

/// The same for all ranks; fails if it is not complete. Collective. Only rank 0 looks at the directory. The others
/// sleep, and so leave the cores to the simulation.
void await(Arguments const& arguments, std::int64_t step, int rank)
{
    int complete = rank == 0 && is_complete(arguments, step) ? 1 : 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(&complete, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    for (int done = 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE), done == 0;)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    auto const path = workflow::snapshot_path(arguments.directory, step);
    if (complete == 0 && arguments.follow_s == 0)
        throw workflow::Failure(1, path + " is not complete: run the simulation first, or give --follow SECONDS");
    if (complete == 0)
        throw workflow::Failure(1, path + " was not complete within " + std::to_string(arguments.follow_s) +
                                       " s: does the simulation still run? If steps take longer, give --follow more");
}

/// What a snapshot says of its particles. The sums are those of all ranks.
struct Result {
    double energy = 0;
    std::array<std::int64_t, 8> histogram{};  ///< of speeds: below 0.25, below 0.5, ..., from 1.75 on
};

Result analyse(workflow::Particles const& particles)
{
    Result result;
    auto const& f = particles.floats;
    for (std::size_t i = 0; i < particles.size(); ++i) {
        double const v2 = double(f[3][i]) * f[3][i] + double(f[4][i]) * f[4][i] + double(f[5][i]) * f[5][i];
        result.energy += v2 / 2 + f[6][i];
        ++result.histogram[std::min<std::size_t>(static_cast<std::size_t>(std::sqrt(v2) * 4), 7)];
    }
    MPI_Allreduce(MPI_IN_PLACE, &result.energy, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, result.histogram.data(), 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return result;
}

/// All ranks read the header.
workflow::Header read_header(tapioca::File& file, std::string const& path, std::int64_t step)
{
    workflow::Header header;
    tapioca::Pattern pattern;
    auto const variable = pattern.add({{0, sizeof header}});
    auto reading = file.declare(pattern);
    reading.read(variable, std::as_writable_bytes(std::span(&header, 1)));
    reading.finish();
    if (reading.received(variable) != sizeof header || header.magic != header.magic_number || header.step != step ||
        header.steps <= step || header.particles < 0)
        throw workflow::Failure(1, path + ": not the snapshot of step " + std::to_string(step) + " of this workflow");
    return header;
}

/// Reads and prints a snapshot. Returns the number of steps of the run. Collective. Fails if the snapshot
/// is not what was written.
std::int64_t read_snapshot(std::string const& directory, std::int64_t step, int rank, int ranks)
{
    auto const path = workflow::snapshot_path(directory, step);
    auto file = tapioca::File::open(MPI_COMM_WORLD, path, tapioca::Mode::read);
    auto const header = read_header(file, path, step);

    auto const mine = workflow::share_of(header.particles, rank, ranks);
    workflow::Particles particles(mine.end - mine.begin);
    auto reading = file.declare(workflow::particles_pattern(mine, header.particles));
    for (std::size_t v = 0; v < 7; ++v) reading.read(v, particles.floats[v]);
    reading.read(7, particles.pid);
    reading.read(8, particles.mask);
    reading.finish();
    std::uint64_t received = 0;
    for (std::size_t v = 0; v < 9; ++v) received += reading.received(v);
    file.close();

    std::array<std::uint64_t, 2> sums{received, workflow::checksum(particles, mine.begin)};
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (sums[0] != static_cast<std::uint64_t>(header.particles) * 38)
        throw workflow::Failure(1, path + ": the file ends before its last particle");
    if (sums[1] != header.checksum) throw workflow::Failure(1, path + ": the checksum of the particles is wrong");

    auto const result = analyse(particles);
    if (rank == 0) {
        std::printf("step %lld: %lld particles, energy %.6g, speeds", static_cast<long long>(step),
                    static_cast<long long>(header.particles), result.energy);
        for (auto const count : result.histogram) std::printf(" %lld", static_cast<long long>(count));
        std::printf(", checksum right\n");
        std::fflush(stdout);
    }
    return header.steps;
}

}  // namespace

int main(int argc, char** argv)
{
    if (std::any_of(argv, argv + argc, [](std::string_view word) { return word == "--help"; })) {
        std::fputs(usage, stdout);
        return 0;
    }
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int result = 0;
    try {
        auto const arguments = parse(argc, argv);
        std::int64_t steps = 1;
        for (std::int64_t step = 0; step < steps; ++step) {
            await(arguments, step, rank);
            steps = read_snapshot(arguments.directory, step, rank, ranks);  // the snapshot knows how many there are
        }
    } catch (tapioca::Error const& error) {  // the same on every rank
        if (rank == 0) std::fprintf(stderr, "analysis: %s\n", error.what());
        result = 1;
    } catch (workflow::Failure const& error) {  // the same
        if (rank == 0) std::fprintf(stderr, "analysis: %s\n", error.what());
        result = error.status;
    } catch (std::exception const& error) {  // this rank's own
        std::fprintf(stderr, "analysis: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return result;
}
