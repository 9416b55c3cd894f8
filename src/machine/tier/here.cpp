// tiers_here: what was found on this node, with the figures of a platform file.
#include <algorithm>

#include "machine/tier/tier.hpp"

namespace tapioca::machine {

namespace {

TierTraits const* tier_called(std::vector<TierTraits> const& tiers, std::string const& name)
{
    auto const at = std::find_if(tiers.begin(), tiers.end(), [&](TierTraits const& tier) { return tier.name == name; });
    return at == tiers.end() ? nullptr : &*at;
}

}  // namespace

std::vector<TierTraits> tiers_here(std::vector<TierTraits> const& described)
{
    auto found = find_tiers();
    std::vector<TierTraits> tiers;
    for (auto tier : described) {
        if (auto const* const here = tier_called(found, tier.name)) {
            if (tier.place.empty()) tier.place = here->place;
            for (auto const figure :
                 {&TierTraits::latency_s, &TierTraits::write_bandwidth, &TierTraits::read_bandwidth})
                if ((tier.*figure).value <= 0 || (tier.*figure).origin < (here->*figure).origin)
                    tier.*figure = here->*figure;
        }
        tier = with_assumptions(std::move(tier));
        auto const free = make_tier(tier) ? static_cast<double>(free_bytes(tier)) : 0.0;
        if (free == 0) continue;
        if (tier.capacity_bytes.value == 0 || free < tier.capacity_bytes.value)
            tier.capacity_bytes = {free, Origin::measured};
        tiers.push_back(std::move(tier));
    }
    for (auto& tier : found)
        if (tier_called(tiers, tier.name) == nullptr) tiers.push_back(std::move(tier));
    return tiers;
}

}  // namespace tapioca::machine
