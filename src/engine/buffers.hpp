// Buffers: the memory that the ranks of a node share while they run a route, and the window over it. It only grows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/team.hpp"
#include "comm/window.hpp"
#include "core/result.hpp"
#include "engine/agreement.hpp"
#include "engine/buffer_layout.hpp"
#include "engine/context.hpp"
#include "engine/discovered_machine.hpp"
#include "engine/map_on_node.hpp"

namespace tapioca::engine {

class Buffers {
public:
    /// The buffers are in memory of `tier`. The references must outlive this object.
    Buffers(comm::Team const& team, Exchange& exchange, Agreement& agreement, std::unique_ptr<machine::Tier> tier)
        : team_(team), exchange_(exchange), agreement_(agreement), tier_(std::move(tier))
    {
    }
    Buffers(Buffers const&) = delete;
    Buffers& operator=(Buffers const&) = delete;

    /// Whether there is memory for a route and, if the route needs one, a window. The same on all ranks.
    [[nodiscard]] bool holds(BufferLayout const& buffer_layout, DiscoveredMachine const& around, bool one_sided) const;
    /// Makes sure that there is memory for a route. If counters restart at 0, so do their tickets. Collective, but
    /// waits for nobody when called again for the same route.
    core::Status make(BufferLayout const& buffer_layout, DiscoveredMachine& around, Tickets& tickets);
    /// Makes the window for one-sided transport. Collective. Fails if the MPI library refuses it; then all later calls
    /// fail, too.
    core::Status make_window();

    [[nodiscard]] std::byte* data() const { return memory_.data(); }
    [[nodiscard]] std::byte* maps() const { return maps_.data(); }
    [[nodiscard]] comm::Window& window() { return window_; }
    /// Never releases the buffers, because MPI may still read and write them. Local.
    void leave();

private:
    [[nodiscard]] bool several_nodes() const { return team_.nodes().size() > 1; }
    [[nodiscard]] Circle circle() const;
    // Collective over the ranks of a node, which all get the same result. The same holds for the next three functions.
    core::Status grow(machine::TierMapping& mapping, std::uint64_t bytes);
    core::Status grow(Exchange::Lanes needed, Tickets& tickets);
    core::Status grow(DiscoveredMachine::NodeTier& tier, BufferLayout::OnTier const& bytes);
    core::Status replace(machine::TierMapping& mapping, machine::Tier const& tier, std::uint64_t bytes);
    void give_back(DiscoveredMachine& around);

    comm::Team const& team_;
    Exchange& exchange_;
    Agreement& agreement_;
    std::unique_ptr<machine::Tier> tier_;
    machine::TierMapping counters_;  ///< the counters of the partitions
    machine::TierMapping memory_;
    machine::TierMapping maps_;
    comm::Window window_;
    std::string no_windows_;  ///< why the MPI library refused a window
};

}  // namespace tapioca::engine
