// Halo: measures what it costs to write and read arrays with ghost cells, in place and packed by hand, compared with
// memory that is already packed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timing.hpp"

namespace bench {

struct HaloSetup {
    std::string directory;
    int dimensions = 3;
    std::vector<std::int64_t> edges{16, 32, 64, 128};  ///< edge of a rank's block, in doubles
    int ghosts = 1;                                    ///< cells at each end of each dimension
    int repetitions = 7;
    bool read = true;
};

/// Seconds per step for blocks of one size.
struct HaloCost {
    std::int64_t edge = 0;
    std::int64_t bytes_per_rank = 0;
    bool writing = true;
    std::string way;  ///< the way that the plan takes
    Spread packed;    ///< memory that is already packed
    Spread in_place;  ///< with tapioca::interior()
    Spread by_hand;   ///< packed by the program; the time includes packing
    bool verified = true;
};

/// Collective over `comm`. The results are the same on every rank.
std::vector<HaloCost> measure_halos(MPI_Comm comm, HaloSetup const& setup);

std::string table(std::string const& title, std::vector<HaloCost> const& costs);
std::string to_json(std::vector<HaloCost> const& costs);

}  // namespace bench
