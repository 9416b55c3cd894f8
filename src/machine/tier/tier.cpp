#include "machine/tier/tier.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/output.hpp"
#include "core/units.hpp"
#include "machine/tier/kinds.hpp"

namespace tapioca::machine {

namespace {

/// Names that may be asked for anywhere: those of the kinds, and those that find_tiers() may return.
std::vector<std::string_view> known_names()
{
    std::vector<std::string_view> names;
    for (auto const* const kind : tier_kinds()) {
        names.insert(names.end(), kind->found_as.begin(), kind->found_as.end());
        names.push_back(kind->name);
    }
    return names;
}

TierTraits const* find_name(std::vector<TierTraits> const& tiers, std::string const& name)
{
    auto const tier = std::find_if(tiers.begin(), tiers.end(), [&](TierTraits const& t) { return t.name == name; });
    return tier == tiers.end() ? nullptr : &*tier;
}

/// The described tier whose figures apply at a place given by the user: the tier of the same name, or one that includes
/// the place.
TierTraits const* find_like(std::vector<TierTraits> const& tiers, std::string const& name, TierKind const& kind,
                            std::string const& place)
{
    if (auto const* const same = find_name(tiers, name)) return same;
    if (kind.includes != nullptr)
        for (auto const& tier : tiers)
            if (tier.kind == kind.name && kind.includes(tier.place, place)) return &tier;
    return nullptr;
}

core::Result<TierTraits> place_by_hand(std::string const& wish, std::string const& name, TierKind const& kind,
                                       std::string const& place, std::vector<TierTraits> const& tiers)
{
    if (kind.is_place == nullptr)
        return core::fail(Errc::setting,
                          fmt::format("tier {}: {} takes no place after a colon: write {}", wish, name, name));
    if (!kind.is_place(place))
        return core::fail(Errc::setting, fmt::format("tier {}: expected {} after {}:", wish, kind.place, name));
    auto traits = assumed_traits(kind, wish, place);
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
    if (auto const* const kind = find_kind(name); kind && kind->is_place)
        return core::fail(Errc::setting, fmt::format("tier {}: expected {} after {}:", wish, kind->place, name));
    if (wish.starts_with('/'))
        return core::fail(Errc::setting,
                          fmt::format("tier {0}: say what the directory is on, as in ssd:{0}", core::printable(wish)));
    auto const list = fmt::format("{}", fmt::join(there, ", "));
    auto const known = known_names();
    if (std::find(known.begin(), known.end(), name) != known.end())
        return core::fail(Errc::setting, fmt::format("this node has no {}: it has {}", name, list));

    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    auto names = there;
    names.insert(names.end(), known.begin(), known.end());
    auto const best = core::nearest(lower, names);
    bool const close = core::edit_distance(lower, best) <= 2;
    return core::fail(Errc::setting,
                      close ? fmt::format("unknown tier {}: did you mean {}? This node has {}", wish, best, list)
                            : fmt::format("unknown tier {}: this node has {}", wish, list));
}

/// The value of an enumeration with these `names`.
template <class Enumeration>
std::optional<Enumeration> value_named(std::span<std::string_view const> names, std::string_view name)
{
    auto const found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return static_cast<Enumeration>(found - names.begin());
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

TierKind const* find_kind(std::string_view name)
{
    auto const kinds = tier_kinds();
    auto const kind = std::find_if(kinds.begin(), kinds.end(), [&](auto const* k) { return k->name == name; });
    return kind == kinds.end() ? nullptr : *kind;
}

TierTraits assumed_traits(TierKind const& kind, std::string name, std::string place)
{
    return {std::move(name),
            std::string(kind.name),
            std::move(place),
            {kind.latency_s},
            {kind.write_bandwidth},
            {kind.read_bandwidth},
            {},
            kind.persistency};
}

TierTraits with_assumptions(TierTraits traits)
{
    auto const* const kind = find_kind(traits.kind);
    if (!kind) return traits;
    auto const assumed = assumed_traits(*kind, traits.name, traits.place);
    for (auto const figure : {&TierTraits::latency_s, &TierTraits::write_bandwidth, &TierTraits::read_bandwidth})
        if ((traits.*figure).value <= 0) traits.*figure = assumed.*figure;
    return traits;
}

TierTraits ordinary_memory()
{
    for (auto const* const kind : tier_kinds())
        if (kind->ordinary) return {std::string(kind->name), std::string(kind->name), {}, {}, {}, {}, {}, {}};
    return {};
}

bool is_ordinary(TierTraits const& tier)
{
    auto const* const kind = find_kind(tier.kind);
    return kind != nullptr && kind->ordinary;
}

bool is_device(TierTraits const& tier)
{
    auto const* const kind = find_kind(tier.kind);
    return kind != nullptr && kind->device;
}

std::string shown_place(TierTraits const& tier)
{
    auto const* const kind = find_kind(tier.kind);
    return kind == nullptr || tier.place.empty() ? tier.place : std::string(kind->place_prefix) + tier.place;
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

std::optional<Persistency> persistency_named(std::string_view name)
{
    return value_named<Persistency>(core::persistency_names, name);
}

std::optional<Origin> origin_named(std::string_view name)
{
    return value_named<Origin>(origin_names, name);
}

}  // namespace tapioca::machine
