#include "engine/buffers.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "core/warn.hpp"

namespace tapioca::engine {

bool Buffers::holds(BufferLayout const& buffer_layout, DiscoveredMachine const& around, bool one_sided) const
{
    for (std::size_t tier = 0; tier < buffer_layout.tiers().size(); ++tier)
        if (!around.tiers[tier].holds(buffer_layout.tiers()[tier])) return false;
    return buffer_layout.bytes() <= memory_.bytes() && buffer_layout.map_bytes() <= maps_.bytes() &&
           exchange_.lanes().hold(buffer_layout.lanes()) && (!one_sided || window_.open());
}

core::Status Buffers::make(BufferLayout const& buffer_layout, DiscoveredMachine& around, Tickets& tickets)
{
    if (holds(buffer_layout, around, false)) return {};
    agreement_.meet();
    if (buffer_layout.bytes() > memory_.bytes()) window_.free();
    auto status = grow(memory_, buffer_layout.bytes());
    if (status) status = grow(maps_, buffer_layout.map_bytes());
    if (status) status = grow(buffer_layout.lanes(), tickets);
    for (std::size_t tier = 0; tier < buffer_layout.tiers().size() && status; ++tier)
        status = grow(around.tiers[tier], buffer_layout.tiers()[tier]);
    if (several_nodes()) status = agreement_.agree(status);     // otherwise all ranks have the same answer already
    if (!status && !agreement_.abandoned()) give_back(around);  // release everything, so that all nodes have the same
    return status;
}

void Buffers::give_back(DiscoveredMachine& around)
{
    window_.free();
    exchange_.use_lanes(nullptr, {});
    counters_ = machine::TierMapping();
    memory_ = machine::TierMapping();
    maps_ = machine::TierMapping();
    for (auto& tier : around.tiers) {
        tier.mapping = machine::TierMapping();
        tier.bytes.clear();
    }
}

core::Status Buffers::make_window()
{
    if (window_.open()) return {};
    if (no_windows_.empty()) {
        agreement_.meet();
        auto window = comm::Window::create(team_.all(), memory_.data(), memory_.bytes());
        if (window) {
            window_ = std::move(*window);
            return {};
        }
        no_windows_ = window.error().text;
        if (team_.rank() == 0)
            core::warn(
                fmt::format("this MPI refuses the window for transport=rma, p2p is used instead ({}; with Open "
                            "MPI, --mca osc ^ucx may help)",
                            no_windows_));
    }
    return core::fail(Errc::unsupported, no_windows_);
}

/// On one node, the ranks already share memory and need no MPI.
Circle Buffers::circle() const
{
    if (several_nodes()) return circle_of(team_.node());
    return {team_.rank() == 0,
            [this](std::string const& text) { return agreement_.broadcast(text).value_or(std::string()); },
            [this](core::Status const& local) { return agreement_.agree(local); }};
}

core::Status Buffers::grow(machine::TierMapping& mapping, std::uint64_t bytes)
{
    if (bytes <= mapping.bytes()) return {};
    return replace(mapping, *tier_, bytes);
}

core::Status Buffers::replace(machine::TierMapping& mapping, machine::Tier const& tier, std::uint64_t bytes)
{
    if (std::exchange(mapping, machine::TierMapping()).bytes() > 0)  // nobody uses the old memory between steps;
        (void)circle().agree({});  // every rank releases it first, so that old and new need not fit at once
    auto larger =
        map_on_node(circle(), tier, bytes, several_nodes() ? machine::Pages::when_touched : machine::Pages::now);
    if (!larger) return tl::unexpected(larger.error());
    mapping = std::move(*larger);
    return {};
}

core::Status Buffers::grow(Exchange::Lanes needed, Tickets& tickets)
{
    if (exchange_.lanes().hold(needed)) return {};
    needed.count = std::max(needed.count, exchange_.lanes().count);
    needed.buffers = std::max(needed.buffers, exchange_.lanes().buffers);
    exchange_.use_lanes(nullptr, {});
    auto const status = replace(counters_, *tier_, Exchange::lane_bytes(team_.node_size(), needed));
    if (!status) return status;
    exchange_.use_lanes(counters_.data(), needed);
    tickets.lanes.assign(needed.count, 0);
    return {};
}

/// Only nodes with buffers on the tier take part in making them.
core::Status Buffers::grow(DiscoveredMachine::NodeTier& tier, BufferLayout::OnTier const& bytes)
{
    if (tier.holds(bytes)) return {};
    tier.bytes.resize(bytes.size(), 0);
    for (std::size_t node = 0; node < bytes.size(); ++node) tier.bytes[node] = std::max(tier.bytes[node], bytes[node]);
    auto const here = bytes[static_cast<std::size_t>(team_.my_node())];
    if (here <= tier.mapping.bytes()) return {};
    auto const made = machine::make_tier(*tier.traits);
    auto const agreed = circle().agree(made ? core::Status() : tl::unexpected(made.error()));
    return agreed ? replace(tier.mapping, **made, here) : agreed;
}

void Buffers::leave()
{
    memory_.leave();
}

}  // namespace tapioca::engine
