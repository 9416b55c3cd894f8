// tapioca-bench: the MPI program behind `tapioca bench`, for one's own launcher.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "election.hpp"
#include "phases.hpp"
#include "stage_method.hpp"
#include "table.hpp"

namespace {

struct Arguments {
    bench::Setup setup;
    bench::ElectionSetup election;
    bench::Sizes sizes;
    std::string json;
    bool live = false;  // redraw the progress line
    bool explain = false;
    bool write_only = false;
    bool parse_only = false;
    std::vector<std::int64_t> particles{25000};
    std::vector<std::string> layouts{"aos", "soa"};
    std::vector<std::int64_t> blocks{64, 1024, 16384};
    std::int64_t bytes = 8 << 20;
    std::int64_t array_bytes = 100000;
    std::vector<std::int64_t> call_blocks{4096};
    std::int64_t call_bytes = 16 << 20;
    std::int64_t steps = 0;  // of a whole file; 0: two steps, timed one by one
    std::optional<double> compute_s;
    bool all_methods = false;  // none were named
    std::string declare = "subarray";
    std::vector<std::string> distributions{"uniform", "random", "normal"};
};

/// "1gbit" in bytes per second.
double link_rate(std::string const& text)
{
    std::size_t end = 0;
    double value = 0;
    try {
        value = std::stod(text, &end);
    } catch (std::exception const&) {
        end = 0;
    }
    auto const unit = text.substr(end);
    double const factor = unit == "kbit" ? 1e3 : unit == "mbit" ? 1e6 : unit == "gbit" ? 1e9 : 0;
    if (end == 0 || !(value > 0) || factor == 0)
        throw CLI::ValidationError("--link", text + ": expected a rate such as 200mbit or 1gbit");
    return value * factor / 8;
}

/// What every verb has.
void add_general(CLI::App& verb, Arguments& a)
{
    verb.add_option("--dir", a.setup.directory, "directory for the files")
        ->capture_default_str()
        ->check(CLI::ExistingDirectory)
        ->option_text("DIR [/tmp]");
    verb.add_option("--reps", a.setup.repetitions, "repetitions, 1 to 1000")
        ->check(CLI::Range(1, 1000))
        ->option_text("N [7]");
    verb.add_option("--json", a.json, "write the cells as a JSON array to this file")->option_text("FILE");
    verb.add_flag("--live", a.live, "redraw one progress line instead of printing many");
    verb.add_flag("--parse-only", a.parse_only)->group("");  // for `tapioca bench`, before it starts the ranks
}

/// What the workloads have that are written and read.
void add_moving(CLI::App& verb, Arguments& a)
{
    auto* const steps =
        verb.add_option("--steps", a.steps, "write whole files of so many steps, also through the stage")
            ->check(CLI::Range(1, 1'000'000))
            ->option_text("N [4 with --compute]");
    auto* const compute = verb.add_option("--compute", a.compute_s, "the same, asleep so long between steps: held up?")
                              ->check(CLI::Range(0.0, 3600.0))
                              ->option_text("SECONDS");
    auto const link = [&a](std::string const& text) { a.setup.link_bytes_per_s = link_rate(text); };
    verb.add_option_function<std::string>("--link", link, "rate of the nodes' links: print what they allow")
        ->option_text("RATE, such as 1gbit")
        ->excludes(steps)
        ->excludes(compute);
    verb.add_option("--switches", a.setup.switches, "ranks sit behind so many, in equal parts: print what must cross")
        ->check(CLI::Range(1, 100000))
        ->option_text("N [1]")
        ->excludes(steps)
        ->excludes(compute);
    verb.add_flag("--write-only", a.write_only, "do not read");
    verb.add_flag("--explain", a.explain, "print TAPIOCA's plan for each workload")->excludes(steps)->excludes(compute);
}

/// A place on the fast tier: dram, or ssd:DIR.
bench::Stage parse_stage(std::string const& place)
{
    if (place == "dram") return {};
    constexpr std::string_view ssd = "ssd:";
    if (!place.starts_with(ssd)) throw CLI::ValidationError("--stage", place + ": expected dram or ssd:DIR");
    auto const directory = place.substr(ssd.size());
    if (::access(directory.c_str(), W_OK | X_OK) != 0)
        throw CLI::ValidationError("--stage", fmt::format("{}: {}", directory, std::strerror(errno)));
    return {place, directory, {}};
}

/// Which methods there are, and what they are told.
void add_methods(CLI::App& verb, Arguments& a, bool always_whole)
{
    auto names = bench::method_names();
    names.insert(names.end(), bench::stage_method_names().begin(), bench::stage_method_names().end());
    verb.add_option(
            "--methods", a.setup.methods,
            fmt::format("which of {}{}{}", fmt::join(bench::method_names(), ","),
                        always_whole ? "," : "; for whole files also ", fmt::join(bench::stage_method_names(), ",")))
        ->delimiter(',')
        ->check(CLI::IsMember(names).description(""))
        ->option_text("LIST [all]");
    verb.add_option("--limit-call", a.setup.method.limit_call, "bytes of one call of the limit")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
        ->option_text("BYTES [the whole piece]");
    auto const stage = [&a](std::string const& place) {
        auto drain = std::move(a.setup.method.stage.drain);
        a.setup.method.stage = parse_stage(place);
        a.setup.method.stage.drain = std::move(drain);
    };
    verb.add_option_function<std::string>("--stage", stage, "fast tier of the methods that have one: dram, or ssd:DIR")
        ->option_text("PLACE [dram]");
    verb.add_option("--stage-drain", a.setup.method.stage.drain,
                    "TAPIOCA's log drains in the background: on, or bytes/s")
        ->option_text("on|RATE [off]");
    verb.add_flag("--dropin", a.setup.dropin, "MPI-IO a second time, through the drop-in library");
    verb.add_flag("--fsync", a.setup.fsync,
                  always_whole ? "count fsync of the file in the end, for all methods"
                               : "count fsync after every written step (whole files: in the end), for all methods");
}

/// The workloads of the chosen verb, one after the other.
std::vector<std::function<bench::Workload()>> workloads(CLI::App const& app, Arguments const& a)
{
    std::vector<std::function<bench::Workload()>> list;
    if (app.got_subcommand("hacc"))
        for (auto const particles : a.particles)
            for (auto const& layout : a.layouts)
                list.emplace_back([=, &a] { return bench::hacc(MPI_COMM_WORLD, particles, layout == "aos", a.sizes); });
    if (app.got_subcommand("interleaved"))
        for (auto const block : a.blocks)
            list.emplace_back(
                [=, &a] { return bench::interleaved(MPI_COMM_WORLD, a.bytes, block, a.declare == "list"); });
    if (app.got_subcommand("array1d"))
        for (auto const& distribution : a.distributions)
            list.emplace_back([=, &a] { return bench::array1d(MPI_COMM_WORLD, a.array_bytes, distribution); });
    for (bool const strided : {true, false})
        if (app.got_subcommand(strided ? "strided" : "segmented"))
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
    std::ofstream out(a.json);
    out << text << '\n';
    out.close();
    if (!out) throw std::runtime_error("cannot write " + a.json);
}

bool writes_whole_files(CLI::App const& app, Arguments const& a)
{
    return a.steps > 0 || a.compute_s || app.got_subcommand("strided") || app.got_subcommand("segmented");
}

/// Completes the methods. What is wrong with them, if anything.
std::optional<std::string> choose_methods(CLI::App const& app, Arguments& a)
{
    auto const whole = writes_whole_files(app, a);
    if (a.compute_s && a.steps == 0) a.steps = 4;
    auto& methods = a.setup.methods;
    auto const& staged = bench::stage_method_names();
    for (auto const& name : methods)
        if (!whole && std::find(staged.begin(), staged.end(), name) != staged.end())
            return fmt::format("--methods {}: for whole files only; give --steps or --compute", name);
    for (auto const block : a.call_blocks)
        if (a.call_bytes / block > 1'000'000)
            return fmt::format("--bytes {} in blocks of {} are more than a million calls", a.call_bytes, block);
    a.all_methods = methods.empty();
    if (a.all_methods) methods = bench::method_names();
    if (a.all_methods && whole) methods.insert(methods.end(), staged.begin(), staged.end());
    if (a.setup.dropin) methods = bench::with_dropin(methods, whole);
    return {};
}

/// stage-out needs a fast tier that all ranks share. It is left out where it was not asked for. Collective.
void check_stage_out(Arguments& a, int rank)
{
    auto& methods = a.setup.methods;
    auto const at = std::find(methods.begin(), methods.end(), "stage-out");
    if (at == methods.end() || bench::is_shared(MPI_COMM_WORLD, a.setup.method.stage.directory)) return;
    auto const why = fmt::format("stage-out: not all ranks share {}", a.setup.method.stage.directory);
    if (!a.all_methods) throw std::runtime_error(why);
    if (rank == 0) fmt::print("{}: left out\n", why);
    methods.erase(at);
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

int run_phases(CLI::App const& app, Arguments& a, int rank)
{
    check_stage_out(a, rank);
    std::vector<bench::PhasesOutcome> outcomes;
    auto const list = workloads(app, a);
    bool verified = true;
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto workload = list[i]();
        if (a.steps > 0) workload.steps = static_cast<int>(a.steps);
        auto setup = a.setup;
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

int run_election(Arguments& a, int rank, int ranks)
{
    auto const workload = bench::hacc(MPI_COMM_WORLD, a.particles[0], a.layouts[0] == "aos");
    a.election.directory = a.setup.directory;
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

int run(CLI::App const& app, Arguments& a)
{
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) print_mpi();
    if (a.setup.dropin && !bench::dropin_is_loaded(a.setup.directory))
        throw std::runtime_error("--dropin: libtapioca_mpiio.so is not loaded: use `tapioca bench`, or LD_PRELOAD");
    if (app.got_subcommand("election")) return run_election(a, rank, ranks);
    if (writes_whole_files(app, a)) return run_phases(app, a, rank);
    std::vector<bench::Cell> cells;
    auto const list = workloads(app, a);
    bool verified = true;
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto const workload = list[i]();
        auto setup = a.setup;
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
    Arguments a;
    a.setup.directory = "/tmp";
    CLI::App app("Writes and reads shared files through TAPIOCA, MPI-IO and plain system calls, side by side.");
    app.name("tapioca-bench");
    app.require_subcommand(1);
    auto const bytes = [](CLI::Option* option, std::int64_t most, char const* text) {
        option->transform(CLI::AsSizeValue(false))->check(CLI::Range(std::int64_t{1}, most))->option_text(text);
    };
    auto* const hacc = app.add_subcommand("hacc", "HACC-IO: nine variables, 38 bytes a particle");
    hacc->add_option("--particles", a.particles, "particles per rank")
        ->delimiter(',')
        ->check(CLI::Range(1, 50'000'000))
        ->option_text("N,... [25000]");
    hacc->add_option("--layout", a.layouts, "aos, soa or both")
        ->delimiter(',')
        ->check(CLI::IsMember({"aos", "soa"}))
        ->option_text("LIST [aos,soa]");
    hacc->add_option("--sizes", a.sizes.distribution, "of particles over ranks: uniform or normal")
        ->check(CLI::IsMember({"uniform", "normal"}))
        ->option_text("KIND [uniform]");
    hacc->add_option("--seed", a.sizes.seed, "of normal sizes")->option_text("N [1]");
    hacc->add_option("--heavy", a.sizes.heavy, "half of the ranks that has the larger share: first, last or none")
        ->check(CLI::IsMember({"first", "last", "none"}))
        ->option_text("HALF [none]");
    hacc->add_option("--share", a.sizes.share, "its share of the data")
        ->check(CLI::Range(0.0, 1.0))
        ->option_text("F [0.75]");
    auto* const interleaved = app.add_subcommand("interleaved", "blocks of a few bytes dealt rank by rank");
    bytes(interleaved->add_option("--block", a.blocks, "bytes of a block")->delimiter(','), std::int64_t{1} << 30,
          "BYTES,... [64,1K,16K]");
    bytes(interleaved->add_option("--bytes", a.bytes, "bytes per rank"), std::int64_t{1} << 40, "BYTES [8M]");
    interleaved->add_option("--declare", a.declare, "subarray, or list: an irregular deal as a list of extents")
        ->check(CLI::IsMember({"subarray", "list"}))
        ->option_text("KIND [subarray]");
    auto* const array1d = app.add_subcommand("array1d", "one contiguous piece per rank");
    bytes(array1d->add_option("--bytes", a.array_bytes, "bytes of the largest piece"), std::int64_t{1} << 40,
          "BYTES [100000]");
    array1d->add_option("--distribution", a.distributions, "of sizes over ranks: uniform, random, normal")
        ->delimiter(',')
        ->check(CLI::IsMember({"uniform", "random", "normal"}))
        ->option_text("LIST [all]");
    auto* const election =
        app.add_subcommand("election", "the cost of electing aggregators, for partitions of HACC-IO");
    election->add_option("--partitions", a.election.partitions, "numbers of partitions")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096))
        ->option_text("N,... [1,2,4,8,16,32,64]");
    election->add_option("--ranks-per-node", a.election.ranks_per_node, "pretend such nodes; 0: those there are")
        ->check(CLI::Range(0, 100000))
        ->option_text("N [a quarter of the ranks]");
    election->add_option("--particles", a.particles, "particles per rank")
        ->expected(1)
        ->check(CLI::Range(1, 50'000'000))
        ->option_text("N [25000]");
    election->add_option("--layout", a.layouts, "aos or soa")
        ->expected(1)
        ->check(CLI::IsMember({"aos", "soa"}))
        ->option_text("LAYOUT [aos]");
    auto* const strided = app.add_subcommand("strided", "whole files: every call writes one block in each rank's part");
    auto* const segmented =
        app.add_subcommand("segmented", "whole files: every call writes all ranks' blocks in a row");
    for (auto* const verb : {strided, segmented}) {
        bytes(verb->add_option("--block", a.call_blocks, "bytes of a rank in a call")->delimiter(','),
              std::int64_t{1} << 30, "BYTES,... [4K]");
        bytes(verb->add_option("--bytes", a.call_bytes, "bytes per rank"), std::int64_t{1} << 40, "BYTES [16M]");
    }
    for (auto* const verb : {hacc, interleaved, array1d, strided, segmented, election}) add_general(*verb, a);
    for (auto* const verb : {hacc, interleaved, array1d}) add_moving(*verb, a);
    for (auto* const verb : {hacc, interleaved, array1d}) add_methods(*verb, a, false);
    for (auto* const verb : {strided, segmented}) add_methods(*verb, a, true);
    CLI11_PARSE(app, argc, argv);
    if (auto const wrong = choose_methods(app, a)) {
        fmt::print(stderr, "{}\n", *wrong);
        return 2;
    }
    a.setup.read = !a.write_only;
    if (!a.json.empty() && !std::ofstream(a.json, std::ios::app)) {
        fmt::print(stderr, "--json: cannot write {}\n", a.json);
        return 2;
    }
    if (a.parse_only) return 0;

    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    int result = 1;
    try {
        result = run(app, a);
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
