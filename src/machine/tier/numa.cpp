// numa: memory of selected NUMA nodes: HBM, NVM, CXL, or any node by number.
#include <algorithm>
#include <charconv>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include "machine/tier/free.hpp"
#include "machine/tier/hwloc.hpp"
#include "machine/tier/kinds.hpp"
#include "machine/tier/numa.hpp"

namespace tapioca::machine {

namespace {

struct BitmapDeleter {
    void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

/// The numbers in "1,3".
std::vector<unsigned> numa_nodes(std::string const& place)
{
    std::vector<unsigned> nodes;
    for (char const *at = place.data(), *const end = at + place.size(); at < end;) {
        unsigned node = 0;
        auto const [rest, error] = std::from_chars(at, end, node);
        if (error != std::errc{} || (rest != end && *rest != ',') || rest + 1 == end) return {};
        nodes.push_back(node);
        at = rest + 1;
    }
    return nodes;
}

bool is_numa_place(std::string const& text)
{
    auto const nodes = numa_nodes(text);
    return !nodes.empty() && *std::max_element(nodes.begin(), nodes.end()) < 4096;
}

bool includes_nodes(std::string const& place, std::string const& part)
{
    auto const nodes = numa_nodes(place);
    auto const wanted = numa_nodes(part);
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](unsigned node) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); });
}

std::uint64_t numa_free_bytes(TierTraits const& tier)
{
    auto const nodes = numa_nodes(tier.place);
    auto free = nodes.empty() ? static_cast<std::uint64_t>(tier.capacity_bytes.value) : 0;
    for (auto const node : nodes) {
        auto const of_node = node_free_bytes(node);
        if (!of_node) {  // a machine that is only described
            free = static_cast<std::uint64_t>(tier.capacity_bytes.value);
            break;
        }
        free += *of_node;
    }
    return std::min({free, cgroup_free_bytes(), directory_free_bytes(shm_directory)});
}

class Numa final : public Tier {
public:
    Numa(TierTraits traits, Hwloc topology, Bitmap nodes)
        : Tier(std::move(traits)), topology_(std::move(topology)), nodes_(std::move(nodes))
    {
    }
    [[nodiscard]] core::Result<TierMapping> create(std::uint64_t bytes, Pages pages) const override
    {
        auto const bind = [this](std::byte* data, std::uint64_t length) { return this->bind(data, length); };
        return create_file({shm_directory, bytes, numa_free_bytes(traits_), traits_.name, shm_advice, pages, bind});
    }
    [[nodiscard]] core::Result<TierMapping> attach(std::string const& name, std::uint64_t bytes,
                                                   Pages pages) const override
    {
        return attach_file(name, bytes, pages);
    }
    [[nodiscard]] core::Status bind(int fd) const override
    {
        constexpr auto all = std::uint64_t{1} << 40;  // for a file that has no bytes yet
        void* const pages = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (pages == MAP_FAILED) return core::fail_errno(errno, fmt::format("{} tier: mmap", traits_.name));
        auto status = bind(static_cast<std::byte*>(pages), all);
        ::munmap(pages, all);
        return status;
    }

private:
    /// The policy of a shared mapping is kept with its file, so it applies to fallocate() and to processes that attach.
    [[nodiscard]] core::Status bind(std::byte* data, std::uint64_t bytes) const
    {
        constexpr int flags = HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_STRICT;
        if (hwloc_set_area_membind(topology_.get(), data, bytes, nodes_.get(), HWLOC_MEMBIND_BIND, flags) == 0)
            return {};
        auto failed = core::fail_errno(errno, fmt::format("{} tier: the system refuses to bind memory to NUMA node {}",
                                                          traits_.name, traits_.place));
        failed.value().text += ": choose another with TAPIOCA_AGGRTIER";
        return failed;
    }

    Hwloc topology_;
    Bitmap nodes_;
};

core::Result<std::unique_ptr<Tier>> make_numa(TierTraits const& described)
{
    auto traits = described;
    if (traits.place.empty())  // a platform file may leave it to hwloc
        for (auto const& found : find_tiers())
            if (found.name == traits.name) traits.place = found.place;
    if (traits.place.empty())
        return core::fail(Errc::setting, fmt::format("{0} tier: hwloc finds no {0} on this node: name its NUMA nodes, "
                                                     "such as TAPIOCA_AGGRTIER=numa:1",
                                                     traits.name));
    auto topology = load_hwloc();
    if (!topology) return core::fail_errno(errno, fmt::format("{} tier: hwloc does not load", traits.name));
    Bitmap wanted(hwloc_bitmap_alloc());
    for (auto const node : numa_nodes(traits.place)) hwloc_bitmap_set(wanted.get(), node);
    auto const* const there = hwloc_topology_get_topology_nodeset(topology.get());
    if (hwloc_bitmap_iszero(wanted.get()) || !hwloc_bitmap_isincluded(wanted.get(), there)) {
        std::vector<int> nodes;
        for (int node = hwloc_bitmap_first(there); node >= 0; node = hwloc_bitmap_next(there, node))
            nodes.push_back(node);
        return core::fail(Errc::setting, fmt::format("{} tier: this node has no NUMA node {}: it has {}", traits.name,
                                                     traits.place, fmt::join(nodes, ", ")));
    }
    return std::make_unique<Numa>(traits, std::move(topology), std::move(wanted));
}

/// All names in the table except the last, which is empty.
constexpr auto found_as = [] {
    std::array<std::string_view, numa_memories.size() - 1> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = numa_memories[i].name;
    return names;
}();
constexpr std::string_view described_as[] = {"hbm"};

}  // namespace

TierKind const numa_tier = {
    .name = "numa",
    .help = "memory of certain NUMA nodes",
    .place = "a NUMA node such as 1",
    .place_prefix = "NUMA ",
    .described_as = described_as,
    .found_as = found_as,
    .latency_s = 150e-9,
    .write_bandwidth = 8e9,
    .read_bandwidth = 8e9,
    .free_bytes = numa_free_bytes,
    .make = make_numa,
    .is_place = is_numa_place,
    .includes = includes_nodes,
    .sample = [](std::string const&) { return std::string("0"); },
};

}  // namespace tapioca::machine
