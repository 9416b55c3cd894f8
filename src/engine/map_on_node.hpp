// map_on_node: maps memory of a tier on all ranks of a node.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/result.hpp"
#include "machine/tier/tier.hpp"

namespace tapioca::engine {

/// How the ranks of a node communicate before they share memory.
struct Circle {
    bool first;                                                ///< this rank's texts are broadcast
    std::function<std::string(std::string const&)> broadcast;  ///< returns the first rank's text; collective
    std::function<core::Status(core::Status const&)> agree;    ///< returns the same status on all ranks; collective
};
/// A circle that uses MPI on `node`.
Circle circle_of(MPI_Comm node);

/// Maps `bytes` zeroed bytes; `pages` as for Tier::create(). Collective over the circle, whose ranks share memory; the
/// same result on all of them. The file behind the memory has a name only until all ranks have mapped it.
core::Result<machine::TierMapping> map_on_node(Circle const& node, machine::Tier const& tier, std::uint64_t bytes,
                                               machine::Pages pages = machine::Pages::now);
inline core::Result<machine::TierMapping> map_on_node(MPI_Comm node, machine::Tier const& tier, std::uint64_t bytes,
                                                      machine::Pages pages = machine::Pages::now)
{
    return map_on_node(circle_of(node), tier, bytes, pages);
}

}  // namespace tapioca::engine
