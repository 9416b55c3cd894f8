#include "facts.hpp"

#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/units.hpp"
#include "text.hpp"

namespace tools {

namespace {

using namespace tapioca::machine;
using Json = nlohmann::ordered_json;

std::string bytes(double value)
{
    return tapioca::core::format_bytes(static_cast<std::uint64_t>(value));
}

std::string plural(int n, char const* what)
{
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string host_text(Host const& host)
{
    return fmt::format("host      {}: {}, {}, {}, {} of memory\n", host.name, plural(host.sockets, "socket"),
                       plural(host.cores, "core"), plural(host.numa_nodes, "NUMA node"), bytes(host.memory_bytes));
}

std::string tiers_text(Facts const& facts)
{
    std::set<Origin> origins;
    auto const mark = [&](Figure const& figure, std::string const& text) {
        origins.insert(figure.origin);
        return fmt::format("{} {}", text, name(figure.origin)[0]);
    };
    Rows rows = {{"name", "latency  ", "write  ", "read  ", "free  ", "persistency", "place"}};
    for (auto const& t : facts.tiers)
        rows.push_back({t.name, mark(t.latency_s, seconds(t.latency_s.value)),
                        mark(t.write_bandwidth, rate(t.write_bandwidth.value)),
                        mark(t.read_bandwidth, rate(t.read_bandwidth.value)),
                        mark(t.capacity_bytes, t.capacity_bytes.value > 0 ? bytes(t.capacity_bytes.value) : "unknown"),
                        std::string(tapioca::core::name(t.persistency)), shown_place(t)});
    std::vector<std::string> legend;
    legend.reserve(origins.size());
    for (auto const origin : origins) legend.push_back(fmt::format("{} {}", name(origin)[0], name(origin)));
    return fmt::format("tiers     of {}\n{}{}figures: {}\n",
                       facts.platform_tiers ? "the platform's nodes" : "this host", table(rows, 2), indent,
                       fmt::join(legend, ", "));
}

std::string platform_text(Machine const& machine)
{
    return fmt::format("platform  {}{}\n{}{}\n", machine.name,
                       machine.cores > 0 ? fmt::format(", {} a node", plural(machine.cores, "core")) : "", indent,
                       machine.origin);
}

std::string network_text(Machine const& machine)
{
    auto const& topology = *machine.topology;
    auto const dimensions = topology.dimensions();
    auto text = fmt::format("network   {} of {}{}\n", topology.kind(), plural(topology.nodes(), "node"),
                            dimensions.size() > 1 ? fmt::format(", {}", fmt::join(dimensions, " x ")) : "");
    Rows rows = {{"level", "latency", "bandwidth"}};
    for (auto const& level : topology.levels())
        rows.push_back({level.name, seconds(level.latency_s), rate(level.bandwidth)});
    text += table(rows, 0);
    auto const& gateways = machine.gateways;
    if (gateways.hops.empty()) return text + "gateways  unknown\n";
    auto const [least, most] = std::minmax_element(gateways.hops.begin(), gateways.hops.end());
    text +=
        fmt::format("gateways  {}{}, {} to {} hops away, {} and {} a link{}\n",
                    gateways.nodes.empty() ? "unknown nodes" : plural(static_cast<int>(gateways.nodes.size()), "node"),
                    gateways.block > 0 ? fmt::format(", blocks of {}", gateways.block) : "", *least, *most,
                    seconds(gateways.link.latency_s), rate(gateways.link.bandwidth),
                    gateways.block_bandwidth > 0 ? fmt::format(", {} a block", rate(gateways.block_bandwidth)) : "");
    return text;
}

std::string target_text(Facts const& facts)
{
    auto const& s = facts.storage;
    auto text = fmt::format("target    {}: {}{}, blocks of {}, {}\n",
                            facts.directory.empty() ? "the platform's file system" : facts.directory, s.name,
                            s.remote ? " on other machines" : "", bytes(static_cast<double>(s.block_bytes)),
                            s.stripe_count > 0 ? fmt::format("{} of {}", plural(s.stripe_count, "stripe"),
                                                             bytes(static_cast<double>(s.stripe_bytes)))
                                               : "no stripes known");
    Rows const rows = {
        {facts.directory.empty() ? "planned" : "assumed", "streams", "one alone", "all", "a call"},
        {"write", std::to_string(s.write_streams), rate(s.write_bw),
         rate(s.write_streams > 1 ? s.parallel_write_bw : s.write_bw), seconds(s.call_s)},
        {"read", std::to_string(s.read_streams), rate(s.read_bw), rate(s.read_bw * s.read_streams), seconds(s.call_s)}};
    return text + table(rows, 0);
}

Json json_of(Figure const& figure)
{
    return {{"value", figure.value}, {"origin", name(figure.origin)}};
}

Json json_of(Level const& level)
{
    return {{"name", level.name}, {"latency_s", level.latency_s}, {"bandwidth", level.bandwidth}};
}

Json json_of(TierTraits const& tier)
{
    return {{"name", tier.name},
            {"kind", tier.kind},
            {"place", tier.place},
            {"latency_s", json_of(tier.latency_s)},
            {"write_bandwidth", json_of(tier.write_bandwidth)},
            {"read_bandwidth", json_of(tier.read_bandwidth)},
            {"capacity_bytes", json_of(tier.capacity_bytes)},
            {"persistency", tapioca::core::name(tier.persistency)}};
}

Json json_of(Machine const& machine)
{
    Json json = {{"name", machine.name},
                 {"origin", machine.origin},
                 {"cores", machine.cores},
                 {"topology", machine.topology->kind()},
                 {"nodes", machine.topology->nodes()},
                 {"dimensions", machine.topology->dimensions()},
                 {"levels", Json::array()}};
    for (auto const& level : machine.topology->levels()) json["levels"].push_back(json_of(level));
    if (!machine.gateways.hops.empty())
        json["gateways"] = {
            {"nodes", machine.gateways.nodes},       {"block", machine.gateways.block},
            {"hops", machine.gateways.hops},         {"through", machine.gateways.through},
            {"servers", machine.gateways.servers},   {"block_bandwidth", machine.gateways.block_bandwidth},
            {"link", json_of(machine.gateways.link)}};
    return json;
}

Json json_of(Storage const& s)
{
    return {{"name", s.name},
            {"remote", s.remote},
            {"block_bytes", s.block_bytes},
            {"stripe_bytes", s.stripe_bytes},
            {"stripe_count", s.stripe_count},
            {"write_streams", s.write_streams},
            {"read_streams", s.read_streams},
            {"write_bandwidth", s.write_bw},
            {"parallel_write_bandwidth", s.parallel_write_bw},
            {"read_bandwidth", s.read_bw},
            {"call_s", s.call_s}};
}

}  // namespace

std::string to_text(Facts const& facts)
{
    auto text = host_text(facts.host);
    if (facts.platform) text += platform_text(*facts.platform);
    text += '\n' + tiers_text(facts) + '\n';
    text += facts.platform ? network_text(*facts.platform) : "network   one host: no network\n";
    return text + '\n' + target_text(facts);
}

std::string to_json(Facts const& facts)
{
    Json json;
    json["host"] = {{"name", facts.host.name},
                    {"sockets", facts.host.sockets},
                    {"cores", facts.host.cores},
                    {"numa_nodes", facts.host.numa_nodes},
                    {"memory_bytes", static_cast<std::uint64_t>(facts.host.memory_bytes)}};
    json["tiers"] = Json::array();
    for (auto const& tier : facts.tiers) json["tiers"].push_back(json_of(tier));
    json["platform"] = facts.platform ? json_of(*facts.platform) : Json();
    json["target"] = json_of(facts.storage);
    json["target"]["directory"] = facts.directory;
    return json.dump(2) + '\n';
}

}  // namespace tools
