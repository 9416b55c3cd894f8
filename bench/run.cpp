#include "run.hpp"

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
#include "ways.hpp"
#include "workloads/hacc.hpp"

namespace bench {

namespace {

std::string title(BenchWorkload const& w, Arguments const& a, int ranks)
{
    return fmt::format("{}: {:.3f} MB a rank, {} ranks, in {}, {} repetitions, {}", w.label,
                       static_cast<double>(w.step_bytes) / 1e6 / ranks, ranks, a.setup.directory, a.setup.repetitions,
                       a.setup.fsync ? "with fsync" : "without fsync");
}

std::string phases_title(PhasesOutcome const& o, Arguments const& a)
{
    auto const computing =
        o.compute_s > 0 ? fmt::format(", {} s of computing between them, not counted", o.compute_s) : "";
    auto const steps = a.steps > 0 ? fmt::format(", {} steps", o.workload.steps) : "";
    return fmt::format("{}{}{}\n  {:.3f} MB a rank, {} ranks, in {}, log in {}, {} repetitions, {}", o.workload.label,
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

/// A directory for the files of this run, whose names others can guess. Collective.
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

/// stage-out needs a fast tier that all ranks share. If they do not share it, stage-out is left out if it was not asked
/// for; otherwise returns false. Collective.
bool can_stage_out(Arguments& a, int rank)
{
    auto& methods = a.setup.methods;
    auto const at = std::find(methods.begin(), methods.end(), "stage-out");
    auto const& directory = a.setup.method.stage.directory;
    if (at == methods.end() || is_shared(MPI_COMM_WORLD, directory)) return true;
    if (rank == 0)
        fmt::print(a.all_methods ? stdout : stderr, "stage-out{}: not all ranks share {}\n",
                   a.all_methods ? " is left out" : "", directory);
    if (a.all_methods) methods.erase(at);
    return a.all_methods;
}

/// Reports the progress of the run: one line per workload, or one that is redrawn.
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

/// Makes the workloads one after the other, and prints the result of measure(workload, setup) on rank 0. Collective.
template <class Measure>
void for_each_workload(Arguments const& a, int rank, OwnDirectory const& files, Measure measure)
{
    for (std::size_t i = 0; i < a.workloads.size(); ++i) {
        auto workload = make(MPI_COMM_WORLD, a.workloads[i]);
        if (a.steps > 0) workload.steps = static_cast<int>(a.steps);
        auto setup = a.setup;
        setup.directory = files.path();
        setup.progress = progress(a, fmt::format("[{}/{}] {}", i + 1, a.workloads.size(), workload.label));
        std::string const text = measure(workload, setup);
        if (rank != 0) continue;
        if (a.live) fmt::print(stderr, "\r\033[K");
        fmt::print("\n{}", text);
        std::fflush(stdout);
    }
}

/// Reports on rank 0 whether everything was verified, and writes the JSON. Returns the exit status.
int conclude(Arguments const& a, int rank, bool verified, char const* done, std::string const& json)
{
    if (rank == 0) {
        fmt::print("\n{}\n", verified ? fmt::format("every byte {} was verified", done)
                                      : "WRONG DATA was found: see the rows marked");
        write_json(a, json);
    }
    return verified ? 0 : 1;
}

template <class BenchOutcome>
bool is_verified(BenchOutcome const& outcome)
{
    return std::all_of(outcome.cells.begin(), outcome.cells.end(), [](auto const& cell) { return cell.verified; });
}

int run_phases(Arguments& a, int rank, OwnDirectory const& files)
{
    if (!can_stage_out(a, rank)) return 1;
    std::vector<PhasesOutcome> outcomes;
    bool verified = true;
    for_each_workload(a, rank, files, [&](BenchWorkload const& workload, Setup const& setup) {
        outcomes.push_back(measure_phases(MPI_COMM_WORLD, workload, setup, a.compute_s.value_or(0)));
        auto const& outcome = outcomes.back();
        verified = verified && is_verified(outcome);
        return rank == 0 ? table(phases_title(outcome, a), outcome) : "";
    });
    return conclude(a, rank, verified, "written", rank == 0 ? to_json(outcomes) : "");
}

int run_steps(Arguments& a, int rank, int ranks, OwnDirectory const& files)
{
    std::vector<Cell> cells;
    bool verified = true;
    for_each_workload(a, rank, files, [&](BenchWorkload const& workload, Setup const& setup) {
        auto const outcome = measure(MPI_COMM_WORLD, workload, setup);
        verified = verified && is_verified(outcome);
        cells.insert(cells.end(), outcome.cells.begin(), outcome.cells.end());
        if (rank != 0) return std::string();
        return table(title(workload, a, ranks), outcome, setup.link_bytes_per_s) +
               (a.explain ? outcome.breakdown.plan : "");
    });
    return conclude(a, rank, verified, "written and read", rank == 0 ? to_json(cells) : "");
}

int run_ways(Arguments const& a, int rank, OwnDirectory const& files)
{
    std::vector<WaysOutcome> outcomes;
    bool verified = true;
    for_each_workload(a, rank, files, [&](BenchWorkload const& workload, Setup const& setup) {
        std::string text;
        for (auto& outcome : measure_ways(MPI_COMM_WORLD, workload, setup)) {
            verified = verified && outcome.verified;
            if (!text.empty()) text += '\n';
            text += table(outcome);
            outcomes.push_back(std::move(outcome));
        }
        return text;
    });
    if (rank == 0) fmt::print("\n{}", summary(outcomes));
    return conclude(a, rank, verified, a.setup.read ? "written and read" : "written",
                    rank == 0 ? to_json(outcomes) : "");
}

int run_election(Arguments& a, int rank, int ranks, OwnDirectory const& files)
{
    auto const workload = make(
        MPI_COMM_WORLD, [&](int size) { return workloads::make_hacc(size, a.election.particles, a.election.layout); });
    a.election.directory = files.path();
    a.election.repetitions = a.setup.repetitions;
    auto const costs = elect(MPI_COMM_WORLD, workload, a.election);
    if (rank != 0) return 0;
    auto const what =
        fmt::format("electing aggregators: {}, {} ranks on {} nodes, {} repetitions, ms: median (least-most)",
                    workload.label, ranks, costs.back().nodes, a.setup.repetitions);
    fmt::print("\n{}", table(what, costs));
    write_json(a, to_json(costs));
    return 0;
}

int run_halo(Arguments& a, int rank, int ranks, OwnDirectory const& files)
{
    a.halo->directory = files.path();
    a.halo->repetitions = a.setup.repetitions;
    a.halo->read = !a.write_only;
    auto const costs = measure_halos(MPI_COMM_WORLD, *a.halo);
    bool const verified = std::all_of(costs.begin(), costs.end(), [](auto const& cost) { return cost.verified; });
    auto const what = fmt::format(
        "blocks of {} dimension{} with {} ghost cell{} at each end, {} ranks, {} repetitions, ms a step: median "
        "(least-most)",
        a.halo->dimensions, a.halo->dimensions == 1 ? "" : "s", a.halo->ghosts, a.halo->ghosts == 1 ? "" : "s", ranks,
        a.setup.repetitions);
    if (rank == 0) fmt::print("\n{}", table(what, costs));
    return conclude(a, rank, verified, "read", rank == 0 ? to_json(costs) : "");
}

int run_workflow(Arguments& a, int rank, OwnDirectory const& files)
{
    auto& setup = *a.workflow;
    setup.directory = files.path();
    setup.repetitions = a.setup.repetitions;
    setup.progress = progress(a, "workflow");
    auto const outcome = measure_workflow(MPI_COMM_WORLD, setup);
    bool const verified =
        std::all_of(outcome.costs.begin(), outcome.costs.end(), [](auto const& cost) { return cost.verified; });
    auto const what = fmt::format(
        "workflow of {}, {} step{}: {:.3f} MB a rank and step, {} ranks on {} node{}\n  in {}, SSD in {}, {} "
        "repetitions, "
        "{}",
        outcome.label, setup.steps, setup.steps == 1 ? "" : "s", static_cast<double>(outcome.bytes_per_rank) / 1e6,
        outcome.ranks, outcome.nodes, outcome.nodes == 1 ? "" : "s", a.setup.directory, setup.ssd, setup.repetitions,
        setup.fsync ? "with fsync" : "without fsync");
    if (rank == 0 && a.live) fmt::print(stderr, "\r\033[K");
    if (rank == 0) fmt::print("\n{}", table(what, outcome));
    return conclude(a, rank, verified, "written and read", rank == 0 ? to_json(outcome) : "");
}

int run(Arguments& a)
{
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) print_mpi();
    OwnDirectory const files(a.setup.directory, rank);
    if (a.setup.dropin && !dropin_is_loaded(files.path()))
        throw std::runtime_error("--dropin: libtapioca_mpiio.so is not loaded: use `tapioca bench`, or LD_PRELOAD");
    if (a.halo) return run_halo(a, rank, ranks, files);
    if (a.workflow) return run_workflow(a, rank, files);
    if (!a.kind) return run_election(a, rank, ranks, files);
    if (a.ways) return run_ways(a, rank, files);
    if (a.writes_whole_files()) return run_phases(a, rank, files);
    return run_steps(a, rank, ranks, files);
}

}  // namespace

int run(int argc, char** argv)
{
    Arguments a;
    if (auto const status = parse(argc, argv, a)) return *status;

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

}  // namespace bench
