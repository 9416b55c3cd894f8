#include "findings.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

#include "core/units.hpp"
#include "text.hpp"

namespace calibrate {

namespace {

namespace machine = tapioca::machine;

/// Rounds to four digits, the precision of the measurement.
double rounded(double value)
{
    return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
}

machine::Figure measured(double value)
{
    return {rounded(value), machine::Origin::measured};
}

std::string plural(std::size_t n, char const* what)
{
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// For comments, which end at the end of the line.
std::string one_line(std::string text)
{
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = '?';
    return text;
}

/// True if more ranks might have reached a higher rate.
bool is_open(TargetFigures const& target, int streams)
{
    return streams > 1 && streams == target.rows.back().count;
}

std::string links_text(Findings const& f)
{
    auto const& topology = *f.around.machine->topology;
    Rows rows = {{"level", "latency a hop", "bandwidth", "pairs"}};
    for (std::size_t i = 0; i < f.links.size(); ++i) {
        auto const& link = f.links[i];
        rows.push_back({topology.levels()[i].name, seconds(link.latency_s), rate(link.bandwidth),
                        link.pairs > 0 ? std::to_string(link.pairs) : "none: not measured"});
    }
    return fmt::format("links     {} of {}, {} in this job with {}\n{}", topology.kind(),
                       plural(static_cast<std::size_t>(topology.nodes()), "node"), f.around.where.size(),
                       plural(static_cast<std::size_t>(f.ranks), "rank"), table(rows, 1));
}

std::string tiers_text(Findings const& f)
{
    Rows rows = {{"name", "latency", "in", "out", "nodes"}};
    for (std::size_t i = 0; i < f.tiers.size(); ++i) {
        auto const& tier = f.tiers[i];
        auto const& name = f.around.machine->tiers[i].name;
        if (tier.nodes > 0)
            rows.push_back({name, seconds(tier.latency_s), rate(tier.write_bandwidth), rate(tier.read_bandwidth),
                            std::to_string(tier.nodes)});
        else
            rows.push_back({name, "-", "-", "-", "not measured: " + tier.why});
    }
    return fmt::format("tiers     one process copies in and out\n{}", table(rows, 1));
}

std::string target_text(Findings const& f)
{
    auto const& target = f.target;
    Rows rows = {{"streams", "write", "read"}};
    for (auto const& row : target.rows) rows.push_back({std::to_string(row.count), rate(row.write), rate(row.read)});
    auto const number = [&](int streams) {
        return fmt::format("{}{}", streams, is_open(target, streams) ? " (all there were)" : "");
    };
    return fmt::format(
        "target    {}: {}, a file of {} in pieces of 1 MiB\n{}{}enough: {} to write, {} to read; a call {}\n",
        f.directory, target.storage.name, tapioca::core::format_bytes(target.bytes), table(rows, 0), indent,
        number(target.storage.write_streams), number(target.storage.read_streams), seconds(target.call_s));
}

machine::Storage measured_storage(TargetFigures const& target)
{
    auto storage = target.storage;
    storage.each_node = false;  // all ranks took part
    storage.write_bw = rounded(storage.write_bw);
    storage.read_bw = rounded(storage.read_bw);
    storage.parallel_write_bw = storage.contended_write_bw = storage.write_bw * storage.write_streams;
    return storage;
}

}  // namespace

std::string summary(Findings const& findings)
{
    return links_text(findings) + '\n' + tiers_text(findings) + '\n' + target_text(findings);
}

machine::Machine measured_machine(Findings const& findings, std::string const& host, std::string const& when)
{
    auto result = *findings.around.machine;
    auto levels = result.topology->levels();
    for (std::size_t i = 0; i < levels.size(); ++i)
        if (findings.links[i].pairs > 0) {
            levels[i].latency_s = rounded(findings.links[i].latency_s);
            levels[i].bandwidth = rounded(findings.links[i].bandwidth);
        }
    result.topology = result.topology->with_levels(std::move(levels));
    for (std::size_t i = 0; i < result.tiers.size(); ++i) {
        auto& tier = result.tiers[i];
        auto const& figures = findings.tiers[i];
        auto least = UINT64_MAX;
        for (auto const& node : findings.around.free_bytes)
            if (node[i] > 0) least = std::min(least, node[i]);
        constexpr auto unit = tapioca::core::MiB;
        if (least != UINT64_MAX)
            tier.capacity_bytes.value = static_cast<double>(least >= unit ? least / unit * unit : least);
        if (figures.nodes == 0) continue;
        tier.latency_s = measured(figures.latency_s);
        tier.write_bandwidth = measured(figures.write_bandwidth);
        tier.read_bandwidth = measured(figures.read_bandwidth);
    }
    std::stable_sort(result.tiers.begin(), result.tiers.end(),
                     [](auto const& a, auto const& b) { return a.write_bandwidth.value > b.write_bandwidth.value; });
    result.storage = measured_storage(findings.target);
    result.name = fmt::format("measured on {}, {}", host, when);
    return result;
}

std::string platform_text(Findings const& findings, std::string const& host, std::string const& when)
{
    auto const& machine = *findings.around.machine;
    auto const& storage = findings.target.storage;
    auto text = fmt::format("# Written by tapioca calibrate: {} on {}; the target is {}.\n",
                            plural(static_cast<std::size_t>(findings.ranks), "rank"),
                            plural(findings.around.where.size(), "node"), one_line(findings.directory));
    for (std::size_t i = 0; i < findings.links.size(); ++i)
        if (findings.links[i].pairs == 0)
            text += fmt::format("# Not measured, for want of nodes: level {}.\n",
                                one_line(machine.topology->levels()[i].name));
    for (std::size_t i = 0; i < findings.tiers.size(); ++i)
        if (findings.tiers[i].nodes == 0)
            text += fmt::format("# Not measured: tier {}.\n", one_line(machine.tiers[i].name));
    if (is_open(findings.target, storage.write_streams)) text += "# More writers than these ranks were not tried.\n";
    if (is_open(findings.target, storage.read_streams)) text += "# More readers than these ranks were not tried.\n";
    return text + machine::to_toml(measured_machine(findings, host, when));
}

}  // namespace calibrate
