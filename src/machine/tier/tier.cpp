#include "machine/tier/tier.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/units.hpp"
#include "machine/tier/kinds.hpp"

namespace tapioca::machine {

namespace {

bool no_place(std::string const& text)
{
    return text.empty();
}

// One copy by one process, as far as nothing better is known.
constexpr std::array<Kind, 3> kinds = {{
    {"dram", "", no_place, dram_free_bytes, make_dram, 100e-9, 10e9, 10e9, Persistency::none},
    {"numa", "a NUMA node such as 1", is_numa_place, numa_free_bytes, make_numa, 150e-9, 8e9, 8e9, Persistency::none},
    {"ssd", "an absolute directory such as /scratch", is_ssd_place, ssd_free_bytes, make_ssd, 100e-6, 1e9, 1e9,
     Persistency::job},
}};

// Beside the kinds, what find_tiers() may find.
constexpr std::array known_names = {"dram", "hbm", "nvm", "cxl", "spm", "gpu", "numa", "ssd"};

Kind const* find_kind(std::string_view name)
{
    auto const* const kind = std::find_if(kinds.begin(), kinds.end(), [&](Kind const& k) { return k.name == name; });
    return kind == kinds.end() ? nullptr : &*kind;
}

TierTraits const* find_name(std::vector<TierTraits> const& tiers, std::string const& name)
{
    auto const tier = std::find_if(tiers.begin(), tiers.end(), [&](TierTraits const& t) { return t.name == name; });
    return tier == tiers.end() ? nullptr : &*tier;
}

/// The described tier whose figures hold at a place given by hand: that of the same name, or of the same NUMA node.
TierTraits const* find_like(std::vector<TierTraits> const& tiers, std::string const& name, Kind const& kind,
                            std::string const& place)
{
    if (auto const* const same = find_name(tiers, name)) return same;
    if (kind.name != "numa") return nullptr;
    auto const wanted = numa_nodes(place);
    for (auto const& tier : tiers) {
        auto const nodes = tier.kind == "numa" ? numa_nodes(tier.place) : std::vector<unsigned>();
        if (std::all_of(wanted.begin(), wanted.end(),
                        [&](unsigned node) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); }))
            return &tier;
    }
    return nullptr;
}

core::Result<TierTraits> place_by_hand(std::string const& wish, std::string const& name, Kind const& kind,
                                       std::string const& place, std::vector<TierTraits> const& tiers)
{
    if (kind.place.empty())
        return core::fail(Errc::setting, fmt::format("tier {}: {} has no place: write {}", wish, name, name));
    if (!kind.is_place(place))
        return core::fail(Errc::setting, fmt::format("tier {}: expected {} after {}:", wish, kind.place, name));
    auto traits = assumed_traits(std::string(kind.name), wish, place);
    if (auto const* const like = find_like(tiers, name, kind, place)) {
        traits = *like;
        traits.name = wish;
        traits.place = place;
    }
    traits.capacity_bytes = {static_cast<double>(free_bytes(traits)), Origin::measured};
    return traits;
}

tl::unexpected<core::Failure> unknown_tier(std::string const& wish, std::string const& name,
                                           std::vector<TierTraits> const& tiers)
{
    std::vector<std::string_view> there;
    there.reserve(tiers.size());
    for (auto const& tier : tiers) there.emplace_back(tier.name);
    if (auto const* const kind = find_kind(name); kind && !kind->place.empty())
        return core::fail(Errc::setting, fmt::format("tier {}: expected {} after {}:", wish, kind->place, name));
    auto const list = fmt::format("{}", fmt::join(there, ", "));
    if (std::find(known_names.begin(), known_names.end(), name) != known_names.end())
        return core::fail(Errc::setting, fmt::format("this node has no {}: it has {}", name, list));

    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    auto names = there;
    names.insert(names.end(), known_names.begin(), known_names.end());
    auto const best = core::nearest(lower, names);
    bool const close = core::edit_distance(lower, best) <= 2;
    return core::fail(Errc::setting,
                      close ? fmt::format("unknown tier {}: did you mean {}? This node has {}", wish, best, list)
                            : fmt::format("unknown tier {}: this node has {}", wish, list));
}

}  // namespace

std::string Tier::directory() const
{
    return shm_directory;
}

core::Status Tier::bind(int /*fd*/) const
{
    return {};
}

TierTraits assumed_traits(std::string const& kind_name, std::string name, std::string place)
{
    auto const& kind = *find_kind(kind_name);
    return {std::move(name),       kind_name, std::move(place), {kind.latency_s}, {kind.write_bandwidth},
            {kind.read_bandwidth}, {},        kind.persistency};
}

TierTraits with_assumptions(TierTraits traits)
{
    if (!find_kind(traits.kind)) return traits;
    auto const assumed = assumed_traits(traits.kind, traits.name, traits.place);
    for (auto const figure : {&TierTraits::latency_s, &TierTraits::write_bandwidth, &TierTraits::read_bandwidth})
        if ((traits.*figure).value <= 0) traits.*figure = assumed.*figure;
    return traits;
}

core::Result<std::unique_ptr<Tier>> make_tier(TierTraits const& traits)
{
    auto const* const kind = find_kind(traits.kind);
    if (!kind) return core::fail(Errc::setting, fmt::format("tier {}: unknown kind {}", traits.name, traits.kind));
    auto tier = kind->make(traits);
    if (tier) remove_leftovers((*tier)->directory());
    return tier;
}

core::Result<TierTraits> choose_tier(std::string const& wish, std::vector<TierTraits> const& tiers)
{
    if (auto const* const tier = find_name(tiers, wish)) return *tier;
    auto const colon = wish.find(':');
    auto const name = wish.substr(0, colon);
    auto const* const described = find_name(tiers, name);
    auto const* const kind = find_kind(described ? described->kind : name);
    if (colon == std::string::npos || !kind) return unknown_tier(wish, name, tiers);
    return place_by_hand(wish, name, *kind, wish.substr(colon + 1), tiers);
}

std::uint64_t free_bytes(TierTraits const& tier)
{
    auto const* const kind = find_kind(tier.kind);
    return kind ? kind->free_bytes(tier) : 0;
}

char const* name(Persistency persistency)
{
    switch (persistency) {
    case Persistency::none: return "none";
    case Persistency::job: return "job";
    case Persistency::permanent: return "permanent";
    }
    return "";
}

std::optional<Persistency> persistency_named(std::string_view text)
{
    for (auto const persistency : {Persistency::none, Persistency::job, Persistency::permanent})
        if (text == name(persistency)) return persistency;
    return std::nullopt;
}

char const* name(Origin origin)
{
    switch (origin) {
    case Origin::assumed: return "assumed";
    case Origin::hwloc: return "hwloc";
    case Origin::measured: return "measured";
    case Origin::platform: return "platform";
    }
    return "";
}

}  // namespace tapioca::machine
