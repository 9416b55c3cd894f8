// Election: measures the cost of choosing aggregators, partition after partition as in the papers, and in
// File::declare().
#pragma once

#include <string>
#include <vector>

#include "timing.hpp"
#include "workload.hpp"

namespace bench {

struct ElectionSetup {
    std::string directory;
    std::int64_t particles = 25000;  ///< of a rank
    std::string layout = "aos";
    std::vector<int> partitions{1, 2, 4, 8, 16, 32, 64};
    int repetitions = 7;
    int ranks_per_node = -1;  ///< pretended; 0: the real nodes; -1: a quarter of the ranks
};

/// Seconds for one number of partitions, for all partitions together.
struct ElectionCost {
    int partitions = 0;
    int aggregators = 0;  ///< chosen by declare(): no more than there are ranks
    int nodes = 0;
    int ranks = 0;
    Spread split;    ///< for every partition: MPI_Comm_split for its ranks, MPI_Allreduce with MPI_MINLOC
    Spread group;    ///< the same with MPI_Comm_create_group, which only the partition's ranks call
    Spread declare;  ///< all of File::declare()
};

/// Collective over `comm`. The result is the same on every rank, except for the times, which are rank 0's.
std::vector<ElectionCost> elect(MPI_Comm comm, BenchWorkload const& workload, ElectionSetup const& setup);

std::string table(std::string const& title, std::vector<ElectionCost> const& costs);
std::string to_json(std::vector<ElectionCost> const& costs);

}  // namespace bench
