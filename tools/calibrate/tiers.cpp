#include "tiers.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <fmt/core.h>

#include "core/units.hpp"

namespace calibrate {

namespace {

using namespace tapioca;
using core::MiB;

/// Every step depends on the previous one, and goes to a place that no prefetcher can guess.
double access_s(machine::TierMapping const& mapping)
{
    constexpr std::uint64_t line = 64;
    constexpr int steps = 200'000;
    auto const lines = static_cast<std::uint32_t>(mapping.bytes() / line);
    std::vector<std::uint32_t> order(lines);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), std::minstd_rand(1));
    auto const at = [&](std::uint32_t i) { return mapping.data() + i * line; };
    for (std::uint32_t i = 0; i < lines; ++i) std::memcpy(at(order[i]), &order[(i + 1) % lines], sizeof order[0]);
    auto const chase = [&, next = order[0]]() mutable {
        for (int i = 0; i < steps; ++i) std::memcpy(&next, at(next), sizeof next);
        asm volatile("" : : "r"(next));
    };
    return median(repeat(3, 3, 0, chase)) / steps;
}

/// The time until one byte is on the device.
core::Result<double> flush_s(machine::Tier const& tier, double seconds)
{
    auto mapping = tier.create(4096);
    if (!mapping) return tl::unexpected(mapping.error());
    mapping->unlink();
    core::Status status;
    int value = 0;
    auto const times = repeat(5, 200, seconds, [&] {
        *mapping->data() = static_cast<std::byte>(++value);
        core::keep_first(status, mapping->flush());
    });
    if (!status) return tl::unexpected(status.error());
    return median(times);
}

core::Result<TierFigures> measure_here(machine::TierTraits const& traits, bool quick)
{
    auto const tier = machine::make_tier(traits);
    if (!tier) return tl::unexpected(tier.error());
    double const seconds = quick ? 0.05 : 0.4;
    auto const most = quick ? 16 * MiB : 64 * MiB;
    auto const bytes = std::clamp<std::uint64_t>(machine::free_bytes(traits) / 4 / MiB * MiB, MiB, most);
    auto mapping = (*tier)->create(bytes);
    if (!mapping) return tl::unexpected(mapping.error());
    mapping->unlink();  // nothing is left if this process is killed
    bool const device = machine::is_device(traits);
    std::vector<std::byte> own(bytes, std::byte{1});
    core::Status status;
    TierFigures figures{1};
    auto const in = [&] {
        std::memcpy(mapping->data(), own.data(), bytes);
        if (device) core::keep_first(status, mapping->flush());
    };
    auto const out = [&] {
        std::memcpy(own.data(), mapping->data(), bytes);
        asm volatile("" : : "r"(own.data()) : "memory");
    };
    in();
    figures.write_bandwidth = static_cast<double>(bytes) / median(repeat(3, 50, seconds, in));
    figures.read_bandwidth = static_cast<double>(bytes) / median(repeat(3, 50, seconds, out));
    auto const latency = device ? flush_s(**tier, seconds) : core::Result<double>(access_s(*mapping));
    core::keep_first(status, latency ? core::Status() : tl::unexpected(latency.error()));
    if (!status) return tl::unexpected(status.error());
    figures.latency_s = *latency;
    return figures;
}

TierFigures combine(std::vector<TierFigures> const& list)
{
    auto const of = [&](double TierFigures::*figure) {
        std::vector<double> values;
        values.reserve(list.size());
        for (auto const& one : list) values.push_back(one.*figure);
        return median(values);
    };
    return {static_cast<int>(list.size()), of(&TierFigures::latency_s), of(&TierFigures::write_bandwidth),
            of(&TierFigures::read_bandwidth)};
}

}  // namespace

core::Result<tapioca::engine::DiscoveredMachine> with_tiers(Crew const& crew, tapioca::engine::DiscoveredMachine found,
                                                            std::vector<std::string> const& wishes)
{
    auto described = *found.machine;
    for (auto const& wish : wishes) {
        auto const known = [&](machine::TierTraits const& tier) { return tier.name == wish; };
        if (std::any_of(described.tiers.begin(), described.tiers.end(), known)) continue;
        std::vector<machine::TierTraits> here;
        for (auto const& tier : found.tiers)
            if (tier.traits) here.push_back(*tier.traits);
        auto const tier = machine::choose_tier(wish, here);
        core::Status local;
        if (!tier) local = tl::unexpected(tier.error());
        if (auto const made = tier ? machine::make_tier(*tier) : nullptr; tier && !made)
            local = tl::unexpected(made.error());
        if (auto const all = comm::agree(crew.team().all(), local); !all) return tl::unexpected(all.error());
        auto const free = static_cast<std::uint64_t>(tier->capacity_bytes.value);
        auto const everywhere = crew.team().gather_nodes({free});
        for (std::size_t node = 0; node < found.free_bytes.size(); ++node)
            found.free_bytes[node].push_back(node < everywhere.size() ? everywhere[node][0] : free);
        described.tiers.push_back(*tier);
        found.tiers.push_back({*tier, {}, {}});
    }
    found.machine = std::make_shared<machine::Machine const>(std::move(described));
    return found;
}

std::vector<TierFigures> measure_tiers(Crew const& crew, tapioca::engine::DiscoveredMachine const& around)
{
    constexpr int most_nodes = 4;
    auto const& team = crew.team();
    auto const& tiers = around.machine->tiers;
    std::vector<TierFigures> figures;
    for (std::size_t t = 0; t < tiers.size(); ++t) {
        std::vector<int> having;
        for (int node = 0; node < static_cast<int>(around.free_bytes.size()); ++node)
            if (around.free_bytes[node][t] > 0) having.push_back(node);
        std::vector<TierFigures> measured;
        core::Status status;
        if (having.empty()) status = core::fail(tapioca::Errc::no_space, "no node has room there");
        for (int const i : spread(static_cast<int>(having.size()), most_nodes)) {
            int const rank = team.nodes()[having[i]][0];
            bool const mine = team.rank() == rank;
            crew.show("tiers", static_cast<int>(t) + 1, static_cast<int>(tiers.size()),
                      fmt::format("{}, rank {}", tiers[t].name, rank));
            crew.meet(mine);
            core::Result<TierFigures> here;
            if (mine) here = measure_here(*around.tiers[t].traits, crew.quick());
            crew.meet(mine);
            status = comm::agree(team.all(), here ? core::Status() : tl::unexpected(here.error()));
            if (!status) break;
            auto const told = crew.told_by(rank, {here->latency_s, here->write_bandwidth, here->read_bandwidth});
            measured.push_back({1, told[0], told[1], told[2]});
        }
        figures.push_back(status ? combine(measured) : TierFigures{});
        if (!status) figures.back().why = status.error().text;
    }
    return figures;
}

}  // namespace calibrate
