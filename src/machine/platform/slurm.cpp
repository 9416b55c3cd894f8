// What Slurm knows about the network: a tree of switches above the job's hosts.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <fmt/core.h>

#include "machine/machine.hpp"
#include "machine/platform/figures.hpp"
#include "machine/platform/switches.hpp"

namespace tapioca::machine {

namespace {

using HostNames = std::vector<std::string>;  // switches above a host, from the top

/// In "root.s1.n12", n12 is a host under switch s1 under root. Host names may contain dots, too.
HostNames path_of(std::string const& address, std::string const& host)
{
    std::string_view switches = address;
    auto const name = host.substr(0, host.find('.'));
    if (switches == host || switches == name) return {};
    if (auto const end = "." + host; switches.ends_with(end))
        switches.remove_suffix(end.size());
    else
        switches = switches.substr(0, switches.rfind('.') == std::string_view::npos ? 0 : switches.rfind('.'));
    HostNames path;
    while (!switches.empty()) {
        auto const dot = switches.find('.');
        path.emplace_back(switches.substr(0, dot));
        switches = dot == std::string_view::npos ? std::string_view{} : switches.substr(dot + 1);
    }
    return path;
}

/// The switch above each switch and host of a topology.conf.
struct Parents {
    std::map<std::string, std::string> of_switch, of_host;
};

struct ConfLine {
    int number = 0;
    std::string text;
};

/// Removes comments, and joins lines that a backslash continues.
std::vector<ConfLine> conf_lines(std::string const& text)
{
    std::vector<ConfLine> lines;
    bool continued = false;
    int number = 0;
    for (std::size_t at = 0; at < text.size();) {
        auto const end = std::min(text.find('\n', at), text.size());
        auto line = text.substr(at, end - at);
        at = end + 1;
        ++number;
        line.erase(std::min(line.find('#'), line.size()));
        while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
        bool const continues = line.ends_with('\\');
        if (continues) line.back() = ' ';
        if (continued)
            lines.back().text += ' ' + line;
        else
            lines.push_back({number, line});
        continued = continues;
    }
    return lines;
}

std::map<std::string, std::string> conf_keys(std::string const& line)
{
    std::map<std::string, std::string> keys;
    std::size_t at = 0;
    while (at < line.size()) {
        auto const begin = line.find_first_not_of(" \t\r", at);
        if (begin == std::string::npos) break;
        auto const end = std::min(line.find_first_of(" \t\r", begin), line.size());
        auto const equals = std::min(line.find('=', begin), end);
        auto key = line.substr(begin, equals - begin);
        std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::tolower(c); });
        keys[key] = equals < end ? line.substr(equals + 1, end - equals - 1) : "";
        at = end;
    }
    return keys;
}

core::Result<Parents> parse_conf(std::string const& text)
{
    constexpr std::size_t most_names = 2'000'000;
    std::size_t count = 0;
    Parents parents;
    for (auto const& line : conf_lines(text)) {
        auto const keys = conf_keys(line.text);
        if (keys.count("switchname") == 0) continue;  // a line of another plugin, or an include
        for (auto const& [key, above] : {std::pair{"switches", &parents.of_switch}, {"nodes", &parents.of_host}}) {
            auto const found = keys.find(key);
            if (found == keys.end()) continue;
            auto const names = expand_hosts(found->second);
            if (!names)
                return core::fail(Errc::setting, fmt::format("topology.conf:{}: {}", line.number, names.error().text));
            count += names->size();
            if (count > most_names)
                return core::fail(Errc::setting,
                                  fmt::format("topology.conf:{}: more than {} names in all", line.number, most_names));
            for (auto const& name : *names) above->emplace(name, keys.at("switchname"));
        }
    }
    return parents;
}

core::Result<std::vector<HostNames>> conf_paths(std::string const& text, std::vector<std::string> const& hosts)
{
    auto const parents = parse_conf(text);
    if (!parents) return tl::unexpected(parents.error());
    std::vector<HostNames> paths;
    for (auto const& host : hosts) {
        HostNames path;
        auto above = parents->of_host.find(host);
        if (above == parents->of_host.end()) above = parents->of_host.find(host.substr(0, host.find('.')));
        if (above != parents->of_host.end()) {
            path.push_back(above->second);
            for (auto up = parents->of_switch.find(path.back()); up != parents->of_switch.end();
                 up = parents->of_switch.find(path.back())) {
                path.push_back(up->second);
                if (path.size() > parents->of_switch.size() + 1)
                    return core::fail(Errc::setting,
                                      fmt::format("topology.conf: switch {} is above itself", up->second));
            }
            std::reverse(path.begin(), path.end());
        }
        paths.push_back(std::move(path));
    }
    return paths;
}

/// Turns names into numbers, and drops the levels above a common switch, which make no difference.
std::vector<std::vector<int>> tree_of(std::vector<HostNames> const& names)
{
    std::map<std::string, int> numbers;
    std::vector<Path> paths;
    for (auto const& way : names) {
        auto& path = paths.emplace_back();
        for (auto const& name : way)
            path.push_back(numbers.emplace(name, static_cast<int>(numbers.size())).first->second);
    }
    auto levels = number_switches(std::move(paths));
    auto const common = [](std::vector<int> const& level) {
        return std::all_of(level.begin(), level.end(), [&](int number) { return number == level.front(); });
    };
    while (levels.size() > 1 && common(levels[levels.size() - 2])) levels.pop_back();
    return levels;
}

}  // namespace

core::Result<Machine> describe_hosts(std::vector<std::string> const& hosts, std::vector<std::string> const& addresses,
                                     std::string const& topology_conf)
{
    if (hosts.empty()) return core::fail(Errc::invalid_argument, "a machine has at least one host");
    std::vector<HostNames> paths;
    std::string source = "Slurm's topology addresses";
    std::string passed_over;
    if (addresses.size() == hosts.size())
        for (std::size_t i = 0; i < hosts.size(); ++i) paths.push_back(path_of(addresses[i], hosts[i]));
    auto const nothing = [&] { return std::all_of(paths.begin(), paths.end(), [](auto& p) { return p.empty(); }); };
    if (nothing() && !topology_conf.empty()) {
        auto found = conf_paths(topology_conf, hosts);
        if (found)
            paths = std::move(*found);
        else
            passed_over = ", " + found.error().text;  // the user cannot fix it
        source = "Slurm's topology.conf";
    }

    Machine machine;
    machine.name = "this job's hosts";
    if (std::set<std::string>(hosts.begin(), hosts.end()).size() == hosts.size()) machine.hosts = hosts;
    auto switches = nothing() ? std::vector<std::vector<int>>{} : tree_of(paths);
    if (switches.size() > most_levels) {
        passed_over = fmt::format(", {} levels of switches are too many", switches.size());
        switches.clear();
    }
    if (switches.size() < 2) {
        source = "hosts' names";
        machine.topology = make_flat(static_cast<int>(hosts.size()), assumed_level("link"));
    } else {
        std::vector<Level> levels;
        for (std::size_t level = 0; level < switches.size(); ++level)
            levels.push_back(assumed_level(fmt::format("level {}", level + 1)));
        machine.topology = make_fat_tree(std::move(switches), std::move(levels));
    }
    machine.links_assumed = true;
    machine.origin = fmt::format("{}{}; latency and bandwidth assumed", source, passed_over);
    return machine;
}

}  // namespace tapioca::machine
