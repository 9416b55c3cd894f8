// Which ranks share a node, and whose data each rank reads.
#pragma once

#include <mpi.h>

#include <vector>

namespace bench {

/// The lowest rank of each rank's node. With `ranks_per_node` 0, nodes are those that share memory. Collective.
std::vector<int> leaders_of_nodes(MPI_Comm comm, int ranks_per_node);

/// The number of nodes of ranks with these leaders. Local.
int count_nodes(std::vector<int> const& leaders);

/// The rank whose data `rank` reads: one on the next node or, if there is one node, the next rank. Every rank's data is
/// read by exactly one rank. With nodes of different sizes, the rank may be on a node further on. Local.
int whose_data(std::vector<int> const& leaders, int rank);

}  // namespace bench
