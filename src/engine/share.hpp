// Memory of a tier that all ranks of a node map.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "core/result.hpp"
#include "machine/tier/tier.hpp"

namespace tapioca::engine {

/// `bytes` zeroed bytes, with `pages` as Tier::create() has them. Collective over `node`, whose ranks share memory; the
/// same answer on all of them. The file behind it has a name only until all have mapped it.
core::Result<machine::Mapping> share(MPI_Comm node, machine::Tier const& tier, std::uint64_t bytes,
                                     machine::Pages pages = machine::Pages::now);

}  // namespace tapioca::engine
