// FirstAccesses: decides about a communicator's first accesses. Setting up the engine takes longer than a few small
// accesses take in the MPI library, so these are left to it, unless it is known to get such accesses wrong.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpiio/prepared_access.hpp"
#include "pattern/summary.hpp"

namespace tapioca::mpiio {

class FirstAccesses {
public:
    /// True once the engine is worth it, or was set up before. The same on all ranks.
    [[nodiscard]] bool over() const { return over_; }
    /// Counts an access. Returns whether, as far as this rank knows, the engine is worth it: because this rank has at
    /// least `enough` bytes in all accesses, because enough accesses were left before, or because this one must not be
    /// left. Local.
    [[nodiscard]] bool is_worth_it(ProgramFile const& program, DataAccess const& request, std::uint64_t enough);
    /// Combines the ranks' `bits` by or, and finds out whether the engine is worth it by now, either to some rank, or
    /// because the ranks' parts of the access that was counted last have holes or overlap. Collective over `comm`: one
    /// small reduction.
    unsigned unite(MPI_Comm comm, unsigned bits, bool worth);

private:
    static constexpr int most = 3;  ///< accesses that are left

    bool over_ = false;
    int accesses_ = 0;       ///< the same on all ranks
    double bytes_ = 0;       ///< bytes of this rank in these accesses, plus some for each piece
    pattern::Summary part_;  ///< this rank's part of the last access
};

}  // namespace tapioca::mpiio
