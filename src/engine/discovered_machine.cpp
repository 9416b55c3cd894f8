#include "engine/discovered_machine.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>

#include <fmt/core.h>
#include <unistd.h>

#include "core/host.hpp"

namespace tapioca::engine {

namespace {

/// What the first rank of a node reports, as lines of text: its host name, its Slurm address, then one line per tier.
struct Node {
    std::string host;
    std::string address;
    std::vector<machine::TierTraits> tiers;
    std::string slurm_topology;  ///< of rank 0's node, if it may be needed
};

// First character of a report that is not a failure.
constexpr char found_here = '+';
constexpr char failed_here = '-';

std::string pack(machine::Figure const& figure)
{
    return fmt::format("{:.17g}\t{}", figure.value, static_cast<int>(figure.origin));
}

std::string pack(Node const& node)
{
    auto text = fmt::format("{}\n{}\n{}\n{}", node.host, node.address, node.slurm_topology.size(), node.slurm_topology);
    for (auto const& t : node.tiers)
        text +=
            fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", t.name, t.kind, t.place, static_cast<int>(t.persistency),
                        pack(t.latency_s), pack(t.write_bandwidth), pack(t.read_bandwidth), pack(t.capacity_bytes));
    return text;
}

/// The front of `rest` up to the character `end`, both of which are removed from it. Not a stream, whose functions turn
/// a failed allocation into the end of the text: this rank would then know another machine than the others.
std::string take(std::string_view& rest, char end)
{
    auto const at = std::min(rest.find(end), rest.size());
    std::string part(rest.substr(0, at));
    rest.remove_prefix(std::min(at + 1, rest.size()));
    return part;
}

Node unpack(std::string_view rest)
{
    auto const figure = [&](char end) {
        auto const digits = take(rest, '\t');
        double value = 0;  // not strtod, which depends on the program's locale
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return machine::Figure{value, static_cast<machine::Origin>(std::atoi(take(rest, end).c_str()))};
    };
    Node node;
    node.host = take(rest, '\n');
    node.address = take(rest, '\n');
    auto const bytes = std::strtoul(take(rest, '\n').c_str(), nullptr, 10);
    node.slurm_topology = rest.substr(0, bytes);
    rest.remove_prefix(node.slurm_topology.size());
    while (!rest.empty()) {
        machine::TierTraits tier;
        tier.name = take(rest, '\t');
        tier.kind = take(rest, '\t');
        tier.place = take(rest, '\t');
        tier.persistency = static_cast<Persistency>(std::atoi(take(rest, '\t').c_str()));
        tier.latency_s = figure('\t');
        tier.write_bandwidth = figure('\t');
        tier.read_bandwidth = figure('\t');
        tier.capacity_bytes = figure('\n');
        node.tiers.push_back(std::move(tier));
    }
    return node;
}

machine::TierTraits* named(std::vector<machine::TierTraits>& tiers, std::string const& name)
{
    auto const at = std::find_if(tiers.begin(), tiers.end(), [&](auto const& t) { return t.name == name; });
    return at == tiers.end() ? nullptr : &*at;
}

core::Result<Node> look_here(std::vector<machine::TierTraits> const& described, std::string const& wish)
{
    auto const* const address = std::getenv("SLURM_TOPOLOGY_ADDR");
    Node node{core::host_name(), address ? address : "", machine::tiers_here(described), {}};
    if (!wish.empty() && !named(node.tiers, wish)) {
        for (auto const& tier : described)  // tiers that the node lacks
            if (tier.name == wish)
                if (auto const made = machine::make_tier(tier); !made) return tl::unexpected(made.error());
        auto tier = machine::choose_tier(wish, node.tiers);
        if (!tier) return tl::unexpected(tier.error());
        node.tiers.push_back(std::move(*tier));
    }
    if (!wish.empty())
        if (auto const tier = machine::make_tier(*named(node.tiers, wish)); !tier) return tl::unexpected(tier.error());
    return node;
}

std::string slurm_topology()
{
    std::ifstream file("/etc/slurm/topology.conf");
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Distributes rank 0's platform file to all ranks: the text, or the failure to read it.
core::Result<machine::PlatformText> spread(comm::Team const& team, std::string const& name)
{
    core::Result<machine::PlatformText> file;
    if (team.rank() == 0) file = machine::read_platform(name);
    auto const status = comm::agree(team.all(), file ? core::Status() : tl::unexpected(file.error()));
    if (!status) return tl::unexpected(status.error());
    file->path = comm::broadcast(team.all(), file->path);
    file->text = comm::broadcast(team.all(), file->text);
    return file;
}

/// On all ranks: what the first rank of each node finds there, or the failure of one of them. Collective.
core::Result<std::vector<Node>> look_everywhere(comm::Team const& team, machine::Machine const& machine,
                                                DiscoverySettings const& wish)
{
    std::string mine;
    if (team.node_rank() == 0) {
        auto node = look_here(machine.tiers, wish.tier);
        if (node) {
            if (team.rank() == 0 && team.ranks_per_node() == 0 && !machine.topology)
                node->slurm_topology = slurm_topology();
            mine = found_here + pack(*node);
        } else {
            if (!wish.tier_as_given.empty())
                node.error().text = fmt::format("{}: {}", wish.tier_as_given, node.error().text);
            auto const failure = core::pack(node.error());
            mine = failed_here + std::string(reinterpret_cast<char const*>(failure.data()), failure.size());
        }
    }
    std::vector<Node> nodes;
    for (auto const& text : team.gather_texts(mine)) {
        if (text[0] == failed_here) {
            auto failure = core::unpack(std::as_bytes(std::span(text).subspan(1)));
            failure.rank = team.nodes()[nodes.size()][0];
            return tl::unexpected(std::move(failure));
        }
        nodes.push_back(unpack(std::string_view(text).substr(1)));
    }
    return nodes;
}

/// The machine's node for each of the team's nodes. For a machine that is not described, it follows from the host names
/// and from Slurm. Collective.
core::Result<std::vector<int>> locate(comm::Team const& team, std::vector<Node> const& nodes, machine::Machine& machine)
{
    bool const pretended = team.ranks_per_node() > 0;
    std::vector<std::string> hosts;
    std::vector<std::string> addresses;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        hosts.push_back(pretended ? fmt::format("{}-{}", nodes[i].host, i) : nodes[i].host);
        if (!pretended && !nodes[i].address.empty()) addresses.push_back(nodes[i].address);
    }
    if (!machine.topology) {
        if (addresses.size() != hosts.size()) addresses.clear();
        auto described = machine::describe_hosts(hosts, addresses, nodes[0].slurm_topology);
        if (!described) return tl::unexpected(described.error());
        machine = std::move(*described);
    }
    if (pretended) machine.hosts.clear();
    return machine::find_hosts(machine, hosts);
}

/// How much of each of the machine's tiers every node has.
std::vector<std::vector<std::uint64_t>> free_bytes(std::vector<Node>& nodes, machine::Machine const& machine,
                                                   bool pretended)
{
    std::vector<std::vector<std::uint64_t>> result;
    for (auto& node : nodes) {
        std::vector<std::uint64_t> free;
        for (auto const& tier : machine.tiers) {
            auto const* const here = named(node.tiers, tier.name);
            free.push_back(here ? static_cast<std::uint64_t>(here->capacity_bytes.value) : 0);
        }
        result.push_back(std::move(free));
    }
    // Ordinary memory is allocated in the same size on all nodes, and several pretended nodes may be on one machine.
    // Only what all ranks know is used, because they must come to the same plan.
    std::map<std::string, std::uint64_t> nodes_of;
    for (auto const& node : nodes) ++nodes_of[node.host];
    std::uint64_t per_machine = 1;
    if (pretended)
        for (auto const& [host, count] : nodes_of) per_machine = std::max(per_machine, count);
    for (std::size_t tier = 0; tier < machine.tiers.size(); ++tier) {
        if (!machine::is_ordinary(machine.tiers[tier])) continue;
        auto least = result[0][tier];
        for (auto const& free : result) least = std::min(least, free[tier]);
        for (auto& free : result) free[tier] = least / per_machine;
    }
    return result;
}

}  // namespace

bool DiscoveredMachine::NodeTier::holds(std::vector<std::uint64_t> const& needed) const
{
    for (std::size_t node = 0; node < needed.size(); ++node)
        if (needed[node] > (node < bytes.size() ? bytes[node] : 0)) return false;
    return true;
}

core::Result<DiscoveredMachine> look_around(comm::Team const& team, DiscoverySettings const& wish)
{
    machine::Machine machine;
    if (!wish.platform.empty()) {
        auto const file = spread(team, wish.platform);
        if (!file) return tl::unexpected(file.error());
        auto parsed = machine::parse_platform(file->text, file->path);
        if (!parsed) return tl::unexpected(parsed.error());
        machine = std::move(*parsed);
    }
    auto nodes = look_everywhere(team, machine, wish);
    if (!nodes) return tl::unexpected(nodes.error());
    auto where = locate(team, *nodes, machine);
    if (!where) return tl::unexpected(where.error());

    DiscoveredMachine result;
    result.where = std::move(*where);
    machine.tiers.clear();
    for (auto const& node : *nodes)
        for (auto const& tier : node.tiers)
            if (!named(machine.tiers, tier.name)) machine.tiers.push_back(tier);
    result.free_bytes = free_bytes(*nodes, machine, team.ranks_per_node() > 0);
    auto& here = (*nodes)[static_cast<std::size_t>(team.my_node())].tiers;
    for (auto const& tier : machine.tiers) {
        auto const* const own = named(here, tier.name);
        result.tiers.push_back({own ? std::optional(*own) : std::nullopt, {}, {}});
    }
    result.machine = std::make_shared<machine::Machine const>(std::move(machine));
    return result;
}

std::shared_ptr<DiscoveredMachine> Discovery::known(DiscoverySettings const& wish) const
{
    for (auto const& [known, around] : known_)
        if (known == wish) return around;
    return nullptr;
}

core::Result<std::shared_ptr<DiscoveredMachine>> Discovery::look_around(DiscoverySettings const& wish)
{
    agreement_.meet();
    auto found = engine::look_around(team_, wish);
    if (!found) return tl::unexpected(found.error());
    known_.emplace_back(wish, std::make_shared<DiscoveredMachine>(std::move(*found)));
    return known_.back().second;
}

}  // namespace tapioca::engine
