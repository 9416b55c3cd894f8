// Counts this process's collective and message-passing MPI calls: the executable's own MPI_* come before the MPI
// library's and pass on to PMPI_*.
#pragma once

#include <string>
#include <vector>

namespace tapioca::test {

/// Names of the calls made since the last time. Local.
std::vector<std::string> take_mpi_calls();

}  // namespace tapioca::test
