// Memory of a tier that all ranks of a node map.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "core/result.hpp"
#include "machine/tier/tier.hpp"

namespace tapioca::engine {

/// `bytes` zeroed bytes. Collective over `node`, whose ranks share memory; the same answer on all of them. The file
/// behind it has a name only until all have mapped it.
core::Result<machine::Mapping> share(MPI_Comm node, machine::Tier const& tier, std::uint64_t bytes);
/// The same on a tier that this rank may have been unable to make.
core::Result<machine::Mapping> share(MPI_Comm node, core::Result<std::unique_ptr<machine::Tier>> const& tier,
                                     std::uint64_t bytes);

}  // namespace tapioca::engine
