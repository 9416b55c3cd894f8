// Memory of a tier that all ranks of a node map.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/result.hpp"
#include "machine/tier/tier.hpp"

namespace tapioca::engine {

/// How the ranks of a node talk about memory that they do not share yet.
struct Circle {
    bool first;                                                ///< this is the one whose texts are broadcast
    std::function<std::string(std::string const&)> broadcast;  ///< its text; collective
    std::function<core::Status(core::Status const&)> agree;    ///< the same status on all; collective
};
/// With MPI, over `node`.
Circle circle_of(MPI_Comm node);

/// `bytes` zeroed bytes, with `pages` as Tier::create() has them. Collective over the circle, whose ranks share memory;
/// the same answer on all of them. The file behind it has a name only until all have mapped it.
core::Result<machine::TierMapping> map_on_node(Circle const& node, machine::Tier const& tier, std::uint64_t bytes,
                                               machine::Pages pages = machine::Pages::now);
inline core::Result<machine::TierMapping> map_on_node(MPI_Comm node, machine::Tier const& tier, std::uint64_t bytes,
                                                      machine::Pages pages = machine::Pages::now)
{
    return map_on_node(circle_of(node), tier, bytes, pages);
}

}  // namespace tapioca::engine
