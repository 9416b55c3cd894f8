// Fetching: ranks get bytes that only other ranks can read, such as those of a log on another node's SSD.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.hpp"
#include "engine/fetch_pieces.hpp"
#include "engine/session.hpp"

namespace tapioca::engine {

/// What a rank did in calls of fetch().
struct FetchCounts {
    std::uint64_t bytes = 0;         ///< received from other ranks
    std::uint64_t messages = 0;      ///< in which they came
    std::uint64_t own_bytes = 0;     ///< read by this rank for itself
    std::uint64_t served_bytes = 0;  ///< read by this rank for others
    std::uint64_t reads = 0;         ///< calls of ReadSource
    double waiting = 0;              ///< seconds in which there was nothing to read or to copy
};

/// Gets this rank's pieces from the ranks that can read them, and serves the other ranks' pieces meanwhile. The same
/// Status on every rank; unless it is ok, the pieces' memory has any content. `local`: this rank's failure before the
/// call, if it has one; then nothing is moved, and all ranks get it. Collective. Without pieces of other ranks, the
/// call costs an agreement and makes no MPI call where an agreement makes none. Takes some 26 MiB of memory at most,
/// and the lists of pieces. If a step was abandoned, MPI may still write to the pieces' memory afterwards.
/// @pre no step is under way
core::Status fetch(Session& session, core::Status local, std::vector<FetchPiece> pieces, ReadSource const& read,
                   FetchCounts* counts = nullptr);

}  // namespace tapioca::engine
