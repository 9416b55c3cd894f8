// Halo: what it costs to write and read arrays with ghost cells, from where they lie and packed by hand, beside memory
// that is packed already.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timing.hpp"

namespace bench {

struct HaloSetup {
    std::string directory;
    int dimensions = 3;
    std::vector<std::int64_t> edges{16, 32, 64, 128};  ///< of a rank's block, in doubles
    int ghosts = 1;                                    ///< cells at each end of each dimension
    int repetitions = 7;
    bool read = true;
};

/// Seconds a step for blocks of one size.
struct HaloCost {
    std::int64_t edge = 0;
    std::int64_t bytes_per_rank = 0;
    bool writing = true;
    std::string way;  ///< that the plan takes
    Spread packed;    ///< memory that is packed already
    Spread in_place;  ///< tapioca::interior()
    Spread by_hand;   ///< packed by the program, in the same time
    bool verified = true;
};

/// Collective over `comm`; the same on every rank but for the times, which are rank 0's.
std::vector<HaloCost> measure_halos(MPI_Comm comm, HaloSetup const& setup);

std::string table(std::string const& title, std::vector<HaloCost> const& costs);
std::string to_json(std::vector<HaloCost> const& costs);

}  // namespace bench
