// The simulation of the workflow: particles oscillate around the origin. After every time step, all ranks write them to
// a new file, a snapshot, and say that it is complete. `analysis` reads the snapshots, afterwards or at the same time.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "snapshot.hpp"

namespace {

constexpr auto usage =
    "usage: workflow_simulation [--particles N] [--steps N] [--compute MILLISECONDS] DIR\n"
    "  writes a snapshot per time step to DIR: step.0000, step.0001, ...\n"
    "  --particles N    particles of each rank [25600]\n"
    "  --steps N        time steps [4]\n"
    "  --compute MS     time that a step takes to compute, without the snapshot [0]\n";

struct Arguments {
    std::int64_t particles = 25600;
    std::int64_t steps = 4;
    std::int64_t compute_ms = 0;
    std::string directory;
};

Arguments parse(int argc, char** argv)
{
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        std::string const word = argv[i];
        auto const value = [&](std::int64_t least) {
            auto const given = i + 1 < argc ? workflow::number(argv[++i], least) : std::nullopt;
            if (!given)
                throw workflow::Failure(2, word + ": expected a number from " + std::to_string(least) + " to 10^9");
            return *given;
        };
        if (word == "--particles")
            arguments.particles = value(0);
        else if (word == "--steps")
            arguments.steps = value(1);
        else if (word == "--compute")
            arguments.compute_ms = value(0);
        else if (word.starts_with("-") || !arguments.directory.empty())
            throw workflow::Failure(2, word + ": not an argument of simulation; see --help");
        else
            arguments.directory = word;
    }
    if (arguments.directory.empty())
        throw workflow::Failure(2, "the directory for the snapshots is missing; see --help");
    return arguments;
}

/// Places and speeds at the beginning. They depend only on the number of the particle, so that the snapshots are the
/// same with any number of ranks.
void place(workflow::Particles& particles, std::int64_t first)
{
    for (std::size_t i = 0; i < particles.size(); ++i) {
        particles.pid[i] = first + static_cast<std::int64_t>(i);
        auto random = static_cast<std::uint64_t>(particles.pid[i]) + 1;
        for (std::size_t v = 0; v < 6; ++v) {
            random = random * 6364136223846793005 + 1442695040888963407;
            particles.floats[v][i] = static_cast<float>(random >> 40) / static_cast<float>(1 << 23) - 1;
        }
    }
}

/// One time step of oscillators, each by itself.
void advance(workflow::Particles& particles)
{
    constexpr float dt = 0.125F;
    auto& f = particles.floats;
    for (std::size_t i = 0; i < particles.size(); ++i) {
        f[6][i] = 0;
        for (std::size_t v = 0; v < 3; ++v) {
            f[v + 3][i] -= dt * f[v][i];
            f[v][i] += dt * f[v + 3][i];
            f[6][i] += f[v][i] * f[v][i] / 2;
        }
        particles.mask[i] = f[6][i] > 0.5F ? 1 : 0;
    }
}

/// Says that the snapshot of `step` is complete, to everyone who looks. Called by one process after the snapshot was
/// closed.
void tell(std::string const& directory, std::int64_t step)
{
    auto const path = workflow::done_path(directory, step);
    int const fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0666);
    if (fd < 0 || ::close(fd) != 0) throw std::runtime_error(path + ": " + std::strerror(errno));
}

/// Makes the directory. An older run's snapshots in it would be taken for this run's, so they are refused. Collective.
void prepare(std::string const& directory, int rank)
{
    constexpr int older_run = -1;
    std::error_code error;
    if (rank == 0) std::filesystem::create_directories(directory, error);
    int problem = error.value();
    if (rank == 0 && problem == 0 && std::filesystem::exists(workflow::snapshot_path(directory, 0), error))
        problem = older_run;
    MPI_Bcast(&problem, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (problem == older_run)
        throw workflow::Failure(1,
                                directory + " has snapshots of another run: remove them or choose another directory");
    if (problem != 0) throw workflow::Failure(1, directory + ": " + std::strerror(problem));
}

void simulate(Arguments const& arguments, int rank, int ranks)
{
    auto const total = arguments.particles * ranks;
    auto const mine = workflow::share_of(total, rank, ranks);
    workflow::Particles particles(mine.end - mine.begin);
    place(particles, mine.begin);
    auto pattern = workflow::particles_pattern(mine, total);
    auto const header_variable =
        pattern.add({{0, rank == 0 ? std::int64_t{sizeof(workflow::Header)} : 0}});  // rank 0 writes it

    std::optional<tapioca::Step> snapshot;
    for (std::int64_t step = 0; step < arguments.steps; ++step) {
        advance(particles);
        std::this_thread::sleep_for(std::chrono::milliseconds(arguments.compute_ms));

        workflow::Header header{.step = step, .steps = arguments.steps, .particles = total};
        auto const sum = workflow::checksum(particles, mine.begin);
        MPI_Reduce(&sum, &header.checksum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);

        auto const path = workflow::snapshot_path(arguments.directory, step);
        auto file = tapioca::File::open(MPI_COMM_WORLD, path, tapioca::Mode::create);
        if (snapshot)
            snapshot->retarget(file);  // the same plan, on the next file
        else
            snapshot = file.declare(pattern);
        for (std::size_t v = 0; v < 7; ++v) snapshot->write(v, particles.floats[v]);
        snapshot->write(7, particles.pid);
        snapshot->write(8, particles.mask);
        if (rank == 0) snapshot->write(header_variable, std::as_bytes(std::span(&header, 1)));
        snapshot->finish();
        file.close();  // returns when all ranks have closed it
        if (rank == 0) tell(arguments.directory, step);
    }
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
        prepare(arguments.directory, rank);
        simulate(arguments, rank, ranks);
    } catch (tapioca::Error const& error) {  // the same on every rank
        if (rank == 0) std::fprintf(stderr, "simulation: %s\n", error.what());
        result = 1;
    } catch (workflow::Failure const& error) {  // the same
        if (rank == 0) std::fprintf(stderr, "simulation: %s\n", error.what());
        result = error.status;
    } catch (std::exception const& error) {  // this rank's own
        std::fprintf(stderr, "simulation: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return result;
}
