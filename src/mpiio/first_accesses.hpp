// FirstAccesses: a communicator's first accesses. To set up the engine takes longer than a few small ones take in the
// MPI library: they are left there, unless it is known to get such accesses wrong.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpiio/prepared_access.hpp"
#include "pattern/summary.hpp"

namespace tapioca::mpiio {

class FirstAccesses {
public:
    /// The engine is worth it, or was set up before. The same on all ranks.
    [[nodiscard]] bool over() const { return over_; }
    /// Counts an access. Whether the engine is worth it by what this rank knows: it has at least `enough` bytes in all
    /// of them, there were some before, or this one is not to be left. Local.
    [[nodiscard]] bool is_worth_it(ProgramFile const& program, DataAccess const& request, std::uint64_t enough);
    /// What ranks tell each other when a file is to be served: `bits` of all of them, or'ed; and whether the engine is
    /// worth it by now, to some rank or since their parts of the access that was counted last have holes between them,
    /// or overlap. Collective over `comm`: one small reduction.
    unsigned unite(MPI_Comm comm, unsigned bits, bool worth);

private:
    static constexpr int most = 3;  ///< that are left

    bool over_ = false;
    int accesses_ = 0;       ///< the same on all ranks
    double bytes_ = 0;       ///< of this rank in them, with some for each piece
    pattern::Summary part_;  ///< of this rank in the last one
};

}  // namespace tapioca::mpiio
