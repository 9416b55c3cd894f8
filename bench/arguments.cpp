#include "arguments.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "core/output.hpp"
#include "machine/tier/tier.hpp"

namespace bench {

namespace core = tapioca::core;
namespace machine = tapioca::machine;

namespace {

/// Converts "1gbit" to bytes per second.
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

/// Options of every verb.
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
    verb.add_flag("--parse-only", a.parse_only)->group("");  // used by `tapioca bench` before it starts the ranks
}

/// Options of the workloads that are written and read.
void add_moving(CLI::App& verb, Arguments& a)
{
    auto* const steps =
        verb.add_option("--steps", a.steps, "write whole files of this many steps, also through the stage")
            ->check(CLI::Range(1, 1'000'000))
            ->option_text("N [4 with --compute]");
    auto* const compute =
        verb.add_option("--compute", a.compute_s, "the same, asleep this long between steps: how long is it held up?")
            ->check(CLI::Range(0.0, 3600.0))
            ->option_text("SECONDS");
    auto const link = [&a](std::string const& text) { a.setup.link_bytes_per_s = link_rate(text); };
    verb.add_option_function<std::string>("--link", link, "rate of the nodes' links; prints what they allow")
        ->option_text("RATE, such as 1gbit")
        ->excludes(steps)
        ->excludes(compute);
    verb.add_option("--switches", a.setup.switches,
                    "number of switches that share the ranks equally; prints what must cross them")
        ->check(CLI::Range(1, 100000))
        ->option_text("N [1]")
        ->excludes(steps)
        ->excludes(compute);
    verb.add_flag("--write-only", a.write_only, "do not read");
    verb.add_flag("--explain", a.explain, "print TAPIOCA's plan for each workload")
        ->option_text(" ")
        ->excludes(steps)
        ->excludes(compute);
}

/// A tier of this node, as TAPIOCA_STAGE names it.
StageSetup parse_stage(std::string const& place)
{
    auto const tier = machine::choose_tier(place, machine::find_tiers()).and_then(machine::make_tier);
    if (!tier) throw CLI::ValidationError("--stage", tier.error().text);
    return {place, (*tier)->directory(), {}};
}

/// What is wrong with a value of --stage-drain; empty if it is valid.
std::string check_drain(std::string const& value)
{
    auto rate = value;
    try {
        if (value == "on" || value == "off" || CLI::AsSizeValue(false)(rate).empty()) return {};
    } catch (CLI::Error const&) {  // not a number
    }
    return value + ": expected on, off or bytes per second such as 500M";
}

/// Options that choose and configure methods.
void add_methods(CLI::App& verb, Arguments& a, bool always_whole)
{
    auto names = method_names();
    names.insert(names.end(), stage_method_names().begin(), stage_method_names().end());
    verb.add_option("--methods", a.setup.methods,
                    fmt::format("which of {}{}\n{}", fmt::join(method_names(), ","),
                                always_whole ? "," : "; for whole files also", fmt::join(stage_method_names(), ",")))
        ->delimiter(',')
        ->check(CLI::IsMember(names).description(""))
        ->option_text("LIST [all]");
    verb.add_option("--limit-call", a.setup.method.limit_call, "bytes per call when the limit is measured")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
        ->option_text("BYTES [the whole piece]");
    auto const stage = [&a](std::string const& place) {
        auto drain = std::move(a.setup.method.stage.drain);
        a.setup.method.stage = parse_stage(place);
        a.setup.method.stage.drain = std::move(drain);
    };
    verb.add_option_function<std::string>("--stage", stage, "fast tier for the methods that use one, such as ssd:DIR")
        ->option_text("TIER [dram]");
    verb.add_option("--stage-drain", a.setup.method.stage.drain,
                    "drain TAPIOCA's log in the background: on, or bytes per second")
        ->check(CLI::Validator(check_drain, ""))
        ->option_text("on|RATE [off]");
    verb.add_flag(
        "--ways", a.ways,
        "run every way that the planner could have taken, and compare it with the one that it takes (regret)");
    verb.add_option("--subfile", a.setup.method.subfile,
                    "measure TAPIOCA a second time, with a file for each group of ranks: node, nodes:2, files:4, ...")
        ->option_text("LAYOUT [off]");
    verb.add_flag("--dropin", a.setup.dropin, "measure MPI-IO a second time, through the drop-in library");
    verb.add_flag("--fsync", a.setup.fsync,
                  always_whole ? "include fsync of the file at the end, for all methods"
                               : "include fsync after every written step (whole files: at the end), for all methods");
}

/// Adds one of the table's workloads. The returned function sets kind and workloads in `a` if that verb was given.
std::function<core::Status()> add_workload(CLI::App& app, Arguments& a, workloads::WorkloadKind const& kind)
{
    auto* const verb = app.add_subcommand(std::string(kind.name), std::string(kind.about));
    auto const chosen = kind.options(*verb);
    add_general(*verb, a);
    if (kind.whole_files)
        verb->add_flag("--write-only", a.write_only, "with --ways: do not read");
    else
        add_moving(*verb, a);
    add_methods(*verb, a, kind.whole_files);
    return [=, &a, &kind]() -> core::Status {
        if (!verb->parsed()) return {};
        auto list = chosen();
        if (!list) return tl::unexpected(list.error());
        a.kind = &kind;
        a.workloads = std::move(*list);
        return {};
    };
}

void add_election(CLI::App& app, Arguments& a)
{
    auto* const election =
        app.add_subcommand("election", "the cost of electing aggregators, for partitions of HACC-IO");
    election->add_option("--partitions", a.election.partitions, "numbers of partitions")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096))
        ->option_text("N,... [1,2,4,8,16,32,64]");
    election
        ->add_option("--ranks-per-node", a.election.ranks_per_node,
                     "treat every group of this many ranks as a node; 0: the real nodes")
        ->check(CLI::Range(0, 100000))
        ->option_text("N [a quarter of the ranks]");
    election->add_option("--particles", a.election.particles, "particles per rank")
        ->check(CLI::Range(1, 50'000'000))
        ->option_text("N [25000]");
    election->add_option("--layout", a.election.layout, "aos or soa")
        ->check(CLI::IsMember({"aos", "soa"}))
        ->option_text("LAYOUT [aos]");
    add_general(*election, a);
}

/// The function that it returns stores the set-up in `a` if this verb was given.
std::function<core::Status()> add_halo(CLI::App& app, Arguments& a)
{
    auto* const verb = app.add_subcommand(
        "halo", "blocks of an array with ghost cells in memory, written and read from where they lie");
    auto const setup = std::make_shared<HaloSetup>();
    verb->add_option("--edge", setup->edges, "length of a rank's block in each dimension, in doubles")
        ->delimiter(',')
        ->check(CLI::Range(1, 1 << 28))
        ->option_text("N,... [16,32,64,128]");
    verb->add_option("--dimensions", setup->dimensions, "dimensions of the array")
        ->check(CLI::Range(1, 4))
        ->option_text("N [3]");
    verb->add_option("--ghosts", setup->ghosts, "ghost cells at each end of each dimension")
        ->check(CLI::Range(0, 1000))
        ->option_text("N [1]");
    verb->add_flag("--write-only", a.write_only, "do not report reading");
    add_general(*verb, a);
    return [=, &a]() -> core::Status {
        if (!verb->parsed()) return {};
        for (auto const edge : setup->edges)
            if (std::pow(static_cast<double>(edge + 2 * setup->ghosts), setup->dimensions) > 1e9)
                return core::fail(
                    tapioca::Errc::invalid_argument,
                    fmt::format("--edge {}: a block of {} dimensions has more than 8 GB", edge, setup->dimensions));
        a.halo = *setup;
        return {};
    };
}

/// The same for the workflow.
std::function<core::Status()> add_workflow(CLI::App& app, Arguments& a)
{
    auto* const verb = app.add_subcommand(
        "workflow", "particles that a simulation writes and an analysis reads: by MPI-IO and by three ways of TAPIOCA");
    auto const setup = std::make_shared<WorkflowSetup>();
    verb->add_option("--particles", setup->particles, "particles per rank, 38 bytes each, in a step")
        ->check(CLI::Range(1, 50'000'000))
        ->option_text("N [25600]");
    verb->add_option("--layout", setup->layout, "aos or soa")
        ->check(CLI::IsMember({"aos", "soa"}))
        ->option_text("LAYOUT [aos]");
    verb->add_option("--steps", setup->steps, "steps in a file")->check(CLI::Range(1, 100'000))->option_text("N [1]");
    verb->add_option("--ssd", setup->ssd, "directory on the SSD of every node")
        ->check(CLI::ExistingDirectory)
        ->option_text("DIR [/tmp]");
    auto const methods = workflow_methods();
    verb->add_option("--methods", setup->methods,
                     fmt::format("which of {}\n(file system, aggregation on SSD, SSD target)", fmt::join(methods, ",")))
        ->delimiter(',')
        ->check(CLI::IsMember(methods).description(""))
        ->option_text("LIST [all]");
    auto const between = [setup](std::string const& name) {
        setup->between = name == "drop" ? Between::drop : name == "fill" ? Between::fill : Between::none;
    };
    verb->add_option_function<std::string>(
            "--between", between,
            "the nodes' caches of files between writing and reading:\nnone: left as they are, drop: emptied, "
            "fill: filled with other data")
        ->check(CLI::IsMember({"none", "drop", "fill"}).description(""))
        ->option_text("WHAT [none]");
    verb->add_option("--fill", setup->fill_bytes, "with --between fill: bytes on each node, in --dir")
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 50))
        ->option_text("BYTES [1G]");
    verb->add_flag("--same-ranks", setup->same_ranks, "every rank reads what it wrote, not what the next node wrote");
    verb->add_option("--ranks-per-node", setup->ranks_per_node, "treat every group of this many ranks as a node")
        ->check(CLI::Range(1, 65536))
        ->option_text("N [the real nodes]");
    verb->add_flag("--fsync", setup->fsync, "include fsync of the file in writing");
    add_general(*verb, a);
    return [=, &a]() -> core::Status {
        if (verb->parsed()) a.workflow = *setup;
        return {};
    };
}

/// The methods that are compared, and the check of every byte, are those of plain files. Returns what is wrong with the
/// environment, if anything.
std::optional<std::string> check_environment()
{
    for (auto const& [name, instead] : {std::pair("TAPIOCA_SUBFILE", "--subfile LAYOUT"),
                                        std::pair("TAPIOCA_TARGET", "the workload `workflow` with --ssd DIR")}) {
        std::string const value = std::getenv(name) ? std::getenv(name) : "";
        if (!value.empty() && value != "off")
            return fmt::format("{}={}: the benchmark writes plain files: unset it; {} measures what it stands for",
                               name, core::printable(value), instead);
    }
    return {};
}

/// Completes the methods. Returns what is wrong with them, if anything.
std::optional<std::string> choose_methods(Arguments& a)
{
    auto const whole = a.writes_whole_files();
    if (a.ways && (a.steps > 0 || a.compute_s || !a.setup.methods.empty() || a.setup.fsync))
        return "--ways: has its own methods and steps; leave out --methods, --steps, --compute and --fsync";
    if (a.compute_s && a.steps == 0) a.steps = 4;
    auto& methods = a.setup.methods;
    auto const& staged = stage_method_names();
    for (auto const& name : methods)
        if (!whole && std::find(staged.begin(), staged.end(), name) != staged.end())
            return fmt::format("--methods {}: for whole files only; give --steps or --compute", name);
    a.all_methods = methods.empty();
    if (a.all_methods) methods = method_names();
    if (a.all_methods && whole) methods.insert(methods.end(), staged.begin(), staged.end());
    if (!a.setup.method.subfile.empty()) {
        if (whole || a.ways) return "--subfile: for steps only; leave out --steps, --compute and --ways";
        auto const ours = std::find(methods.begin(), methods.end(), "tapioca");
        methods.insert(ours == methods.end() ? ours : ours + 1, subfile_method);
    }
    if (a.setup.dropin) methods = with_dropin(methods, whole);
    return {};
}

}  // namespace

std::optional<int> parse(int argc, char** argv, Arguments& a)
{
    a.setup.directory = "/tmp";
    CLI::App app("Writes and reads shared files through TAPIOCA, MPI-IO and plain system calls, side by side.");
    app.name("tapioca-bench");
    app.require_subcommand(1);
    std::vector<std::function<core::Status()>> choices;
    for (auto const* const kind : workloads::kinds())
        if (kind->options) choices.push_back(add_workload(app, a, *kind));
    add_election(app, a);
    choices.push_back(add_halo(app, a));
    choices.push_back(add_workflow(app, a));
    try {
        app.parse(argc, argv);
    } catch (CLI::ParseError const& error) {
        return app.exit(error);
    }
    auto wrong = check_environment();
    for (auto const& choose : choices)
        if (auto const status = choose(); !status) wrong = status.error().text;
    if (!wrong) wrong = choose_methods(a);
    if (!wrong && !a.json.empty()) {
        auto const file = core::open_output(a.json);
        if (file)
            ::close(*file);
        else
            wrong = "--json: cannot write " + file.error().text;
    }
    if (wrong) {
        fmt::print(stderr, "{}\n", *wrong);
        return 2;
    }
    a.setup.read = !a.write_only;
    return a.parse_only ? std::optional(0) : std::nullopt;
}

}  // namespace bench
