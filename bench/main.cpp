// tapioca-bench: the MPI program behind `tapioca bench`, for one's own launcher.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>

#include <fmt/core.h>

#include "arguments.hpp"
#include "core/output.hpp"
#include "phases.hpp"
#include "stage_method.hpp"
#include "table.hpp"

namespace {

using bench::Arguments;

/// The workloads of the chosen verb, one after the other.
std::vector<std::function<bench::Workload()>> workloads(Arguments const& a)
{
    std::vector<std::function<bench::Workload()>> list;
    if (a.verb == "hacc")
        for (auto const particles : a.particles)
            for (auto const& layout : a.layouts)
                list.emplace_back([=, &a] { return bench::hacc(MPI_COMM_WORLD, particles, layout == "aos", a.sizes); });
    if (a.verb == "interleaved")
        for (auto const block : a.blocks)
            list.emplace_back(
                [=, &a] { return bench::interleaved(MPI_COMM_WORLD, a.bytes, block, a.declare == "list"); });
    if (a.verb == "array1d")
        for (auto const& distribution : a.distributions)
            list.emplace_back([=, &a] { return bench::array1d(MPI_COMM_WORLD, a.array_bytes, distribution); });
    for (bool const strided : {true, false})
        if (a.verb == (strided ? "strided" : "segmented"))
            for (auto const block : a.call_blocks)
                list.emplace_back([=, &a] { return bench::blocks(MPI_COMM_WORLD, a.call_bytes, block, strided); });
    return list;
}

std::string title(bench::Workload const& w, Arguments const& a, int ranks)
{
    return fmt::format("{}: {:.3f} MB a rank, {} ranks, in {}, {} repetitions, {}", w.label(),
                       static_cast<double>(w.step_bytes) / 1e6 / ranks, ranks, a.setup.directory, a.setup.repetitions,
                       a.setup.fsync ? "with fsync" : "without fsync");
}

std::string phases_title(bench::PhasesOutcome const& o, Arguments const& a)
{
    auto const computing =
        o.compute_s > 0 ? fmt::format(", {} s of computing between them, not counted", o.compute_s) : "";
    auto const steps = a.steps > 0 ? fmt::format(", {} steps", o.workload.steps) : "";
    return fmt::format("{}{}{}\n  {:.3f} MB a rank, {} ranks, in {}, log in {}, {} repetitions, {}", o.workload.label(),
                       steps, computing, static_cast<double>(o.workload.file_bytes()) / 1e6 / o.ranks, o.ranks,
                       a.setup.directory, a.setup.method.stage.directory, a.setup.repetitions,
                       a.setup.fsync ? "with fsync" : "without fsync");
}

void print_mpi()
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(version, &length);
    auto const* const io = std::getenv("OMPI_MCA_io");
    std::string const line(version, std::string_view(version).find_first_of(",\n\0"));
    fmt::print("{}{}{}\n", line, io ? ", MPI-IO by " : "", io ? io : "");
    std::fflush(stdout);
}

void write_json(Arguments const& a, std::string const& text)
{
    if (a.json.empty()) return;
    auto const lines = text + '\n';
    auto const status = tapioca::core::write_output(a.json, std::as_bytes(std::span(lines)));
    if (!status) throw std::runtime_error("cannot write " + status.error().text);
}

/// A directory of this run's own for its files, whose names are known to others. Collective.
class OwnDirectory {
public:
    OwnDirectory(std::string const& parent, int rank) : rank_(rank)
    {
        std::array<char, 4096> name{};
        auto path = parent + "/tapioca-bench.XXXXXX";
        bool const made = rank == 0 && path.size() < name.size() && ::mkdtemp(path.data());
        int const error = errno;
        if (made) path.copy(name.data(), name.size() - 1);
        MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
        path_ = name.data();
        if (path_.empty() && rank == 0)
            throw std::runtime_error(fmt::format("making a directory in {}: {}", parent, std::strerror(error)));
        if (path_.empty()) MPI_Barrier(MPI_COMM_WORLD);  // rank 0 ends the job
    }
    OwnDirectory(OwnDirectory const&) = delete;
    OwnDirectory& operator=(OwnDirectory const&) = delete;
    ~OwnDirectory()
    {
        std::error_code ignored;
        if (rank_ == 0) std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string const& path() const { return path_; }

private:
    std::string path_;
    int rank_;
};

/// stage-out needs a fast tier that all ranks share. Where they do not, it is left out if nobody asked for it; else
/// false. Collective.
bool can_stage_out(Arguments& a, int rank)
{
    auto& methods = a.setup.methods;
    auto const at = std::find(methods.begin(), methods.end(), "stage-out");
    auto const& directory = a.setup.method.stage.directory;
    if (at == methods.end() || bench::is_shared(MPI_COMM_WORLD, directory)) return true;
    if (rank == 0)
        fmt::print(a.all_methods ? stdout : stderr, "stage-out{}: not all ranks share {}\n",
                   a.all_methods ? " is left out" : "", directory);
    if (a.all_methods) methods.erase(at);
    return a.all_methods;
}

/// Tells where the run is: one line to a workload, or one that is drawn again and again.
std::function<void(std::string const&, int)> progress(Arguments const& a, std::string const& line)
{
    return [&a, line](std::string const& method, int repetition) {
        if (!a.live && (repetition > 0 || method != a.setup.methods.front())) return;
        if (a.live)
            fmt::print(stderr, "\r\033[K{}: repetition {} of {}, {}", line, repetition + 1, a.setup.repetitions,
                       method);
        else
            fmt::print(stderr, "{} ...\n", line);
        std::fflush(stderr);
    };
}

int run_phases(Arguments& a, int rank, OwnDirectory const& files)
{
    if (!can_stage_out(a, rank)) return 1;
    std::vector<bench::PhasesOutcome> outcomes;
    auto const list = workloads(a);
    bool verified = true;
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto workload = list[i]();
        if (a.steps > 0) workload.steps = static_cast<int>(a.steps);
        auto setup = a.setup;
        setup.directory = files.path();
        setup.progress = progress(a, fmt::format("[{}/{}] {}", i + 1, list.size(), workload.label()));
        outcomes.push_back(bench::measure_phases(MPI_COMM_WORLD, workload, setup, a.compute_s.value_or(0)));
        for (auto const& cell : outcomes.back().cells) verified = verified && cell.verified;
        if (rank != 0) continue;
        if (a.live) fmt::print(stderr, "\r\033[K");
        fmt::print("\n{}", bench::table(phases_title(outcomes.back(), a), outcomes.back()));
        std::fflush(stdout);
    }
    if (rank == 0) {
        fmt::print("\n{}\n",
                   verified ? "every byte written was verified" : "WRONG DATA was found: see the rows marked");
        write_json(a, bench::to_json(outcomes));
    }
    return verified ? 0 : 1;
}

int run_election(Arguments& a, int rank, int ranks, OwnDirectory const& files)
{
    auto const workload = bench::hacc(MPI_COMM_WORLD, a.particles[0], a.layouts[0] == "aos");
    a.election.directory = files.path();
    a.election.repetitions = a.setup.repetitions;
    auto const costs = bench::elect(MPI_COMM_WORLD, workload, a.election);
    if (rank != 0) return 0;
    auto const what =
        fmt::format("electing aggregators: {}, {} ranks on {} nodes, {} repetitions, ms: median (least-most)",
                    workload.label(), ranks, costs.back().nodes, a.setup.repetitions);
    fmt::print("\n{}", bench::table(what, costs));
    write_json(a, bench::to_json(costs));
    return 0;
}

int run(Arguments& a)
{
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) print_mpi();
    OwnDirectory const files(a.setup.directory, rank);
    if (a.setup.dropin && !bench::dropin_is_loaded(files.path()))
        throw std::runtime_error("--dropin: libtapioca_mpiio.so is not loaded: use `tapioca bench`, or LD_PRELOAD");
    if (a.verb == "election") return run_election(a, rank, ranks, files);
    if (a.writes_whole_files()) return run_phases(a, rank, files);
    std::vector<bench::Cell> cells;
    auto const list = workloads(a);
    bool verified = true;
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto const workload = list[i]();
        auto setup = a.setup;
        setup.directory = files.path();
        setup.progress = progress(a, fmt::format("[{}/{}] {}", i + 1, list.size(), workload.label()));
        auto const outcome = bench::measure(MPI_COMM_WORLD, workload, setup);
        for (auto const& cell : outcome.cells) verified = verified && cell.verified;
        cells.insert(cells.end(), outcome.cells.begin(), outcome.cells.end());
        if (rank != 0) continue;
        if (a.live) fmt::print(stderr, "\r\033[K");
        fmt::print("\n{}", bench::table(title(workload, a, ranks), outcome, setup.link_bytes_per_s));
        if (a.explain) fmt::print("{}", outcome.breakdown.plan);
        std::fflush(stdout);
    }
    if (rank == 0) {
        fmt::print("\n{}\n",
                   verified ? "every byte written and read was verified" : "WRONG DATA was found: see the rows marked");
        write_json(a, bench::to_json(cells));
    }
    return verified ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    bench::Arguments a;
    if (auto const status = bench::parse(argc, argv, a)) return *status;

    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    int result = 1;
    try {
        result = run(a);
    } catch (tapioca::Error const& error) {  // the same on every rank
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0) fmt::print(stderr, "tapioca-bench: {}\n", error.what());
    } catch (std::exception const& error) {
        fmt::print(stderr, "tapioca-bench: {}\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return result;
}
