// tapioca plan: shows the plan of a job without running it, as text, JSON or a picture.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <span>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "core/output.hpp"
#include "core/units.hpp"
#include "plan/second_level.hpp"
#include "plan/to_json.hpp"
#include "planner.hpp"
#include "settings/row.hpp"
#include "settings/settings.hpp"
#include "svg.hpp"
#include "verb.hpp"

namespace tools {

using namespace tapioca;

namespace {

struct Asked {
    std::string platform;
    int nodes = 0;
    int ppn = 0;
    std::string workload = "hacc:25000,aos";
    std::vector<std::string> storage;  // none or one: a type, whose stripes may be given
    std::string svg;
    std::vector<std::string> capacities;  // "hbm=32M"
    bool explain = false, json = false, compare = false, read = false;
    settings::Pairs settings;  // as hints, so that the library checks them
};

int fail(std::string const& what)
{
    return tools::fail("plan", what);
}

char const* const about =
    "Plans a job on a described machine without running it: which ranks aggregate, on which tier, at which cost.\n"
    "\n"
    "  tapioca plan --platform theta --nodes 1024 --ppn 16 --workload hacc:25000,aos --aggregators 192\n"
    "  tapioca plan --platform mira --nodes 512 --workload hacc:25000,soa --compare\n"
    "  tapioca plan --platform paper-toy --ppn 1 --workload sizes:10M,50M,20M,5M --model paper-2024 --aggregators 1 "
    "--explain";

struct Setting {
    char const *option, *name;
    char const* help;  ///< {words} and {default} are replaced by those of the setting
};
constexpr std::array<Setting, 8> settings_asked = {
    {{"--aggregators", "nbaggr", "number of aggregators, auto, poster or paper; data is then always gathered"},
     {"--buffersize", "buffersize", "bytes per buffer, such as 16M"},
     {"--buffers", "buffers", "buffers per aggregator"},
     {"--strategy", "strategy", "placement: {words} [{default}]"},
     {"--model", "model", "cost model: {words}"},
     {"--tier", "aggrtier", "tier of the buffers [the cheapest that has room]"},
     {"--persistency", "persistency", "persistency that the tier must have: {words}"},
     {"--memory", "memory", "memory limit of a process"}}};

std::string hint_of(Setting const& setting)
{
    return fmt::format("tapioca_{}", setting.name);
}

void add_setting(CLI::App& app, Asked& asked, Setting const& setting)
{
    auto const& row = *settings::find_row(setting.name);
    app.add_option_function<std::string>(
        setting.option,
        [&asked, &setting](std::string const& value) { asked.settings.emplace_back(hint_of(setting), value); },
        fmt::format(fmt::runtime(setting.help), fmt::arg("words", row.expected()), fmt::arg("default", row.otherwise)));
}

void add_options(CLI::App& app, Asked& asked)
{
    auto const* const set = std::getenv("TAPIOCA_PLATFORM");
    asked.platform = set ? set : "laptop";
    app.add_option("--platform", asked.platform,
                   "a platform file, or the name of a shipped one: " +
                       fmt::format("{}", fmt::join(machine::shipped_platforms(), ", ")))
        ->capture_default_str();
    app.add_option("--nodes", asked.nodes, "number of nodes of the job, which has the first nodes of the machine [all]")
        ->check(CLI::Range(1, 10'000'000));
    app.add_option("--ppn", asked.ppn, "ranks per node [one per core]")->check(CLI::Range(1, 100'000));
    app.add_option("--workload", asked.workload, workloads::texts())->capture_default_str();
    for (auto const& setting : settings_asked) add_setting(app, asked, setting);
    app.add_option("--tier-capacity", asked.capacities, "TIER=BYTES: capacity of a tier on every node, such as hbm=32M")
        ->allow_extra_args(false);
    app.add_flag("--read", asked.read, "draw and compare reading instead of writing");
    app.add_flag("--explain", asked.explain,
                 "show every aggregator's place, its costs and the next best candidates, and the levels of a write");
    app.add_flag("--compare", asked.compare, "print a table of all strategies");
    app.add_flag("--json", asked.json, "print the plan as JSON");
    app.add_option("--svg", asked.svg, "draw the plan into this file");
}

/// Applies "hbm=32M" in place of the platform file's value.
core::Status limit_tier(machine::Machine& machine, std::string const& text)
{
    auto const equals = text.find('=');
    auto const wrong = [&](std::string const& why) {
        return core::fail(Errc::invalid_argument, fmt::format("--tier-capacity {}: {}", text, why));
    };
    if (equals == std::string::npos) return wrong("expected TIER=BYTES, such as hbm=32M");
    auto const name = text.substr(0, equals);
    auto const bytes = core::parse_bytes(text.substr(equals + 1));
    if (!bytes || *bytes == 0) return wrong("expected a positive number of bytes such as 33554432 or 32M");
    std::vector<std::string> names;
    for (auto& tier : machine.tiers) {
        if (tier.name == name) {
            tier.capacity_bytes = {static_cast<double>(*bytes), machine::Origin::platform};
            return {};
        }
        names.push_back(tier.name);
    }
    return wrong(fmt::format("no node has the tier {}: there are {}", name, fmt::join(names, ", ")));
}

machine::Machine complete(machine::Machine machine)
{
    if (std::none_of(machine.tiers.begin(), machine.tiers.end(), machine::is_ordinary))
        machine.tiers.push_back(machine::ordinary_memory());
    for (auto& tier : machine.tiers) tier = machine::with_assumptions(tier);
    return machine;
}

core::Result<Options> options_of(settings::Pairs const& pairs)
{
    auto resolved = settings::resolve({}, pairs, {});
    if (!resolved) {
        auto& text = resolved.error().text;
        for (auto const& setting : settings_asked)  // as it was written
            if (auto const hint = hint_of(setting) + "="; text.starts_with(hint))
                text.replace(0, hint.size(), std::string(setting.option) + " ");
        return tl::unexpected(resolved.error());
    }
    return resolved->options;
}

double byte_hops(plan::Plan const& plan, plan::Route const& route, std::vector<plan::Weight> const& weights)
{
    double sum = 0;
    for (auto const& weight : weights)
        for (auto p = weight.begin; p < weight.end; ++p)
            sum += static_cast<double>(weight.bytes_in(p)) *
                   plan.job.machine->topology->distance(weight.node, route.aggregator_places[p].node);
    return sum;
}

int compare(Planner const& planner, Asked const& asked)
{
    fmt::print("{:<17} {:>6} {:>12} {:>14} {:>16} {:>11} {:>13} {:>14} {:>14} {:>14}\n", "strategy", "nodes",
               "crossing", "into one node", "via one gateway", "mean hops", "most C1, ms", "most cost, ms",
               "mean cost, ms", "predicted, ms");
    std::vector<plan::NamedStrategy> strategies(plan::strategies().begin(), plan::strategies().end());
    std::stable_partition(strategies.begin(), strategies.end(), [](auto const& row) { return row.strategy->baseline; });
    for (auto const& [name, strategy] : strategies) {
        auto pairs = asked.settings;
        pairs.emplace_back("tapioca_strategy", name);
        auto options = options_of(pairs);
        if (!options) return fail(options.error().text);
        options->direct = Direct::never;
        auto const plan = planner.plan(*options);
        if (!plan) return fail(plan.error().text);
        auto const& route = asked.read ? plan->read : plan->write;
        if (route.aggregator_places.empty()) return fail("one node with one tier leaves nothing to compare");
        auto const weights = planner.weigh(route.cuts, route.unit);
        std::set<int> nodes;
        double c1 = 0;
        double most = 0;
        double sum = 0;
        for (auto const& aggregator_place : route.aggregator_places) {
            nodes.insert(aggregator_place.node);
            c1 = std::max(c1, aggregator_place.cost.c1_s);
            most = std::max(most, aggregator_place.cost.total_s);
            sum += aggregator_place.cost.total_s;
        }
        fmt::print(
            "{:<17} {:>6} {:>12} {:>14} {:>16} {:>11.2f} {:>13.3f} {:>14.3f} {:>14.3f} {:>14.3f}\n", name, nodes.size(),
            core::format_bytes(route.network.crossing_bytes), core::format_bytes(route.network.most_in_bytes),
            route.passage.used > 0 ? core::format_bytes(static_cast<std::uint64_t>(route.passage.most_bytes)) : "-",
            byte_hops(*plan, route, weights) / static_cast<double>(std::max<std::uint64_t>(1, plan->job.pattern.bytes)),
            c1 * 1e3, most * 1e3, sum / static_cast<double>(route.aggregator_places.size()) * 1e3,
            route.aggregated_s * 1e3);
    }
    fmt::print(
        "\nmean hops: links that a byte crosses to its aggregator; C1 and cost: by model {}, of one aggregator; "
        "predicted: the step\n",
        options_of(asked.settings)->model.value_or("default"));
    return 0;
}

core::Status draw(Planner const& planner, plan::Plan const& plan, Asked const& asked)
{
    auto const& route = asked.read ? plan.read : plan.write;
    if (route.way == plan::Way::direct || route.aggregator_places.empty())
        return core::fail(Errc::unsupported,
                          "--svg: nothing is placed, since every rank accesses the file directly or there "
                          "is one node; with --aggregators N, data is always gathered");
    auto const& machine = *plan.job.machine;
    Picture picture;
    picture.machine = &machine;
    for (int node = 0; node < plan.job.nodes; ++node) picture.nodes.push_back(node);
    for (auto const& aggregator_place : route.aggregator_places)
        picture.aggregators.push_back({aggregator_place.node, machine.tiers[aggregator_place.tier].name});
    picture.fed.resize(route.aggregator_places.size());
    for (auto const& weight : planner.weigh(route.cuts, route.unit))
        for (auto p = weight.begin; p < weight.end; ++p)
            if (weight.bytes_in(p) > 0)
                picture.fed[p].emplace_back(weight.node, static_cast<double>(weight.bytes_in(p)));
    picture.title = fmt::format("{}: {} aggregator{} {}", machine.name, route.aggregators,
                                route.aggregators == 1 ? "" : "s", asked.read ? "reading" : "writing");
    picture.facts = {fmt::format("{} on {} nodes x {} rank{}", planner.workload().title, plan.job.nodes,
                                 plan.job.ranks / plan.job.nodes, plan.job.ranks == plan.job.nodes ? "" : "s"),
                     fmt::format("{}, model {}, buffers {} x {} in {}", plan::name(plan::strategy_of(plan.job)),
                                 plan::name(plan::model_of(plan.job)), route.buffers,
                                 core::format_bytes(route.round_bytes), fmt::join(route.tiers(plan.job), " and "))};
    auto const drawing = tools::draw(picture);
    auto status = core::write_output(asked.svg, std::as_bytes(std::span(drawing)));
    if (!status) status.error().text = "writing " + status.error().text;
    return status;
}

/// The machine that is described. Sets the numbers of nodes and ranks in `asked` that were not given.
core::Result<std::shared_ptr<machine::Machine const>> find_machine(Asked& asked)
{
    auto const file = machine::read_platform(asked.platform);
    if (!file) return tl::unexpected(file.error());
    auto parsed = machine::parse_platform(file->text, file->path);
    if (!parsed) return tl::unexpected(parsed.error());
    auto completed = complete(std::move(*parsed));
    for (auto const& text : asked.capacities)
        if (auto const status = limit_tier(completed, text); !status) return tl::unexpected(status.error());
    auto machine = std::make_shared<machine::Machine const>(std::move(completed));
    auto const most = machine->topology->nodes();
    if (asked.nodes == 0) asked.nodes = most;
    if (asked.nodes > most)
        return core::fail(Errc::invalid_argument,
                          fmt::format("--nodes {}: {} has {}", asked.nodes, machine->name, most));
    if (asked.ppn == 0) asked.ppn = std::max(1, machine->cores);
    if (static_cast<std::int64_t>(asked.nodes) * asked.ppn > 10'000'000)
        return core::fail(Errc::invalid_argument,
                          fmt::format("--nodes {} --ppn {}: more than ten million ranks", asked.nodes, asked.ppn));
    asked.platform = file->path;
    return machine;
}

/// All settings, the weakest first: the platform file, the environment, the command line.
core::Result<settings::Pairs> gather_settings(Asked const& asked, machine::Machine const& machine)
{
    settings::Settings site;
    if (auto const status = settings::add_defaults(site, machine.settings, "platform file"); !status)
        return core::fail(status.error().code, fmt::format("{}: [settings]: {}", asked.platform, status.error().text));
    settings::Pairs pairs;
    for (auto const& [name, value, origin] : site.lines()) pairs.emplace_back("tapioca_" + name, value);
    auto const environment = settings::resolve({}, {}, settings::read_environment());
    if (!environment) return tl::unexpected(environment.error());
    for (auto const& [name, value, origin] : environment->lines())
        if (name != "platform") pairs.emplace_back("tapioca_" + name, value);
    pairs.insert(pairs.end(), asked.settings.begin(), asked.settings.end());
    bool const numbered =
        std::any_of(pairs.begin(), pairs.end(), [](auto const& pair) { return pair.first == "tapioca_nbaggr"; });
    if (numbered) pairs.emplace_back("tapioca_direct", "never");
    return pairs;
}

/// Prints the plan, and draws it if asked to.
int show(Planner const& planner, Options const& options, Asked const& asked)
{
    auto const result = planner.plan(options);
    if (!result) return fail(result.error().text);
    if (!asked.svg.empty())
        if (auto const drawn = draw(planner, *result, asked); !drawn) return fail(drawn.error().text);
    if (asked.json) {
        fmt::print("{}\n", plan::to_json(*result).dump(2));
        return 0;
    }
    std::vector<std::string> set;
    for (auto const& [name, value] : asked.settings) set.push_back(fmt::format("{}={}", name.substr(8), value));
    fmt::print("{}", plan::explain(*result, set));
    if (!asked.svg.empty()) fmt::print("  drawn {}\n", asked.svg);
    if (asked.explain)
        fmt::print("\n{}\n{}{}", plan::explain_places(*result), plan::explain_levels(*result),
                   plan::explain_second_level(*result));
    return 0;
}

int run_plan(Words const& words)
{
    CLI::App app(about, "tapioca plan");
    Asked asked;
    add_options(app, asked);
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (CLI::CallForHelp const&) {
        fmt::print("{}", app.help());
        return 0;
    } catch (CLI::ParseError const& error) {
        return fail(error.what());
    }
    auto const machine = find_machine(asked);
    if (!machine) return fail(machine.error().text);
    auto pairs = gather_settings(asked, **machine);
    if (!pairs) return fail(pairs.error().text);
    asked.settings = std::move(*pairs);
    auto const options = options_of(asked.settings);
    if (!options) return fail(options.error().text);
    auto work = workloads::from_text(asked.workload, asked.nodes * asked.ppn);
    if (!work) return fail("--workload " + work.error().text);
    Planner const planner(*machine, asked.nodes, asked.ppn,
                          (*machine)->storage.value_or(machine::storage_profile("unknown")), std::move(*work));
    if (asked.compare && asked.json) return fail("--compare --json: the table has no JSON; --strategy S --json has");
    return asked.compare ? compare(planner, asked) : show(planner, *options, asked);
}

std::vector<Use> plan_uses()
{
    return {{"--platform NAME --nodes N --ppn K --workload W [OPTIONS]",
             "the plan of a job that does not run: aggregators, tiers, costs; --explain, --compare, --json, --svg"}};
}

}  // namespace

extern constexpr Verb plan = {.name = "plan", .uses = plan_uses, .run = run_plan};

}  // namespace tools
