// find_tiers: what hwloc knows about this node's memory; on an ordinary machine plain dram, without loading hwloc.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/units.hpp"
#include "machine/tier/hwloc.hpp"
#include "machine/tier/kinds.hpp"
#include "machine/tier/numa.hpp"

namespace tapioca::machine {

namespace {

bool is_ordinary_machine()
{
    if (std::getenv("HWLOC_XMLFILE") || std::getenv("HWLOC_SYNTHETIC")) return false;
    // Does not use directory_iterator, because that of GCC's library ends the program when it runs out of memory.
    int nodes = 0;
    std::unique_ptr<DIR, int (*)(DIR*)> const entries(::opendir("/sys/devices/system/node"), &::closedir);
    while (auto const* const entry = entries ? ::readdir(entries.get()) : nullptr) {
        std::string_view const name = entry->d_name;
        nodes += name.starts_with("node") && name.find_first_not_of("0123456789", 4) == name.npos;
    }
    return nodes <= 1;
}

std::string const& ordinary()
{
    static auto const& name = *new std::string(dram_tier.name);
    return name;
}

/// The tier that hwloc itself names for a NUMA node; empty if it names none.
std::string label_of(hwloc_obj_t node)
{
    for (char const* const text :
         {const_cast<char const*>(node->subtype), hwloc_obj_get_info_by_name(node, "MemoryTier")})
        if (text != nullptr) {
            if (std::string_view(text).starts_with("DRAM")) return ordinary();
            for (auto const& memory : numa_memories)
                for (auto const label : memory.in_hwloc)
                    if (!label.empty() && std::string_view(text).starts_with(label)) return std::string(memory.name);
        }
    return {};
}

/// The nodes of each tier. Nodes without a label are dram if they have processors that no node before them has.
std::map<std::string, std::vector<hwloc_obj_t>> sort_nodes(hwloc_topology_t topology)
{
    std::map<std::string, std::vector<hwloc_obj_t>> tiers;
    std::vector<hwloc_obj_t> nodes;
    for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));)
        nodes.push_back(node);
    std::sort(nodes.begin(), nodes.end(), [](auto* a, auto* b) { return a->os_index < b->os_index; });
    auto* const taken = hwloc_bitmap_alloc();
    for (auto* const node : nodes) {
        auto label = label_of(node);
        bool const has_own = !hwloc_bitmap_iszero(node->cpuset) && !hwloc_bitmap_intersects(node->cpuset, taken);
        if (label.empty()) label = has_own ? ordinary() : fmt::format("{}:{}", numa_tier.name, node->os_index);
        if (label == ordinary()) hwloc_bitmap_or(taken, taken, node->cpuset);
        tiers[label].push_back(node);
    }
    hwloc_bitmap_free(taken);
    return tiers;
}

/// An attribute as seen from the processors nearest to a node; the worst value of `nodes`. 0: not known for all.
double attribute(hwloc_topology_t topology, std::vector<hwloc_obj_t> const& nodes, hwloc_memattr_id_t id,
                 bool worst_is_most)
{
    double worst = 0;
    for (auto* const node : nodes) {
        hwloc_uint64_t value = 0;
        hwloc_location from = {};
        if (hwloc_memattr_get_best_initiator(topology, id, node, 0, &from, &value) != 0 || value == 0) return 0;
        auto const figure = static_cast<double>(value);
        worst = worst == 0 ? figure : worst_is_most ? std::max(worst, figure) : std::min(worst, figure);
    }
    return worst;
}

/// Takes `exact` if hwloc has it, otherwise `general`, otherwise keeps the assumed value.
void take_figure(Figure& figure, double exact, double general, double unit)
{
    if (auto const value = exact > 0 ? exact : general; value > 0) figure = {value * unit, Origin::hwloc};
}

void take_figures(TierTraits& tier, hwloc_topology_t topology, std::vector<hwloc_obj_t> const& nodes)
{
    constexpr double ns = 1e-9;
    constexpr auto mib_per_s = static_cast<double>(core::MiB);
    auto const get = [&](hwloc_memattr_id_e id, bool most = false) { return attribute(topology, nodes, id, most); };
    auto const bandwidth = get(HWLOC_MEMATTR_ID_BANDWIDTH);
    take_figure(tier.latency_s, get(HWLOC_MEMATTR_ID_LATENCY, true), get(HWLOC_MEMATTR_ID_READ_LATENCY, true), ns);
    take_figure(tier.write_bandwidth, get(HWLOC_MEMATTR_ID_WRITE_BANDWIDTH), bandwidth, mib_per_s);
    take_figure(tier.read_bandwidth, get(HWLOC_MEMATTR_ID_READ_BANDWIDTH), bandwidth, mib_per_s);
}

/// By which factor `nodes` are farther from the processors of a dram node than its own memory: the worst of them, each
/// from where it is nearest. 0: hwloc has no distances.
double relative_distance(hwloc_topology_t topology, std::vector<hwloc_obj_t> const& nodes,
                         std::vector<hwloc_obj_t> const& dram)
{
    unsigned count = 1;
    hwloc_distances_s* matrix = nullptr;
    if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, &matrix, HWLOC_DISTANCES_KIND_MEANS_LATENCY,
                                    0) != 0 ||
        count == 0)
        return 0;
    auto const ratio = [&](hwloc_obj_t from, hwloc_obj_t to) {
        hwloc_uint64_t own = 0;
        hwloc_uint64_t there = 0;
        hwloc_uint64_t ignored = 0;
        bool const known = hwloc_distances_obj_pair_values(matrix, from, from, &own, &ignored) == 0 &&
                           hwloc_distances_obj_pair_values(matrix, from, to, &there, &ignored) == 0 && own > 0;
        return known ? static_cast<double>(there) / static_cast<double>(own) : 0.0;
    };
    double worst = 0;
    for (auto* const node : nodes) {
        double nearest = 0;
        for (auto* const from : dram)
            if (auto const far = ratio(from, node); far > 0 && (nearest == 0 || far < nearest)) nearest = far;
        worst = std::max(worst, nearest);
    }
    hwloc_distances_release(topology, matrix);
    return worst;
}

/// The free bytes, or all bytes for a machine that is only described.
void take_capacity(TierTraits& tier, hwloc_topology_t topology, std::vector<hwloc_obj_t> const& nodes)
{
    double total = 0;
    for (auto* const node : nodes) total += static_cast<double>(node->attr->numanode.local_memory);
    tier.capacity_bytes = {total, Origin::hwloc};
    if (hwloc_topology_is_thissystem(topology))
        tier.capacity_bytes = {static_cast<double>(free_bytes(tier)), Origin::measured};
}

TierTraits describe_numa(std::string const& name, std::vector<hwloc_obj_t> const& nodes, TierTraits const& dram)
{
    std::vector<unsigned> numbers;
    numbers.reserve(nodes.size());
    for (auto* const node : nodes) numbers.push_back(node->os_index);
    auto tier = assumed_traits(numa_tier, name, fmt::format("{}", fmt::join(numbers, ",")));
    auto const& last = numa_memories.back();
    auto const* const times =
        std::find_if(numa_memories.begin(), &last, [&](NumaMemory const& memory) { return memory.name == name; });
    tier.latency_s.value = dram.latency_s.value * times->latency;
    tier.write_bandwidth.value = dram.write_bandwidth.value * times->write;
    tier.read_bandwidth.value = dram.read_bandwidth.value * times->read;
    return tier;
}

}  // namespace

std::vector<TierTraits> find_tiers()
{
    std::vector<TierTraits> tiers = {assumed_traits(dram_tier, ordinary(), "")};
    auto const topology = is_ordinary_machine() ? nullptr : load_hwloc();
    if (!topology) {
        tiers[0].capacity_bytes = {static_cast<double>(free_bytes(tiers[0])), Origin::measured};
        return tiers;
    }
    auto nodes = sort_nodes(topology.get());
    take_figures(tiers[0], topology.get(), nodes[ordinary()]);
    take_capacity(tiers[0], topology.get(), nodes[ordinary()]);
    auto const dram = tiers[0];
    for (auto const& [name, of_tier] : nodes) {
        if (name == ordinary()) continue;
        auto tier = describe_numa(name, of_tier, dram);
        if (auto const far = relative_distance(topology.get(), of_tier, nodes[ordinary()]); far > 0)
            tier.latency_s = {dram.latency_s.value * far, Origin::hwloc};
        take_figures(tier, topology.get(), of_tier);
        take_capacity(tier, topology.get(), of_tier);
        tiers.push_back(std::move(tier));
    }
    std::stable_sort(tiers.begin(), tiers.end(), [](TierTraits const& a, TierTraits const& b) {
        return a.write_bandwidth.value > b.write_bandwidth.value;
    });
    return tiers;
}

}  // namespace tapioca::machine
