// Counts this process's collective and message-passing MPI calls: the executable's own MPI_* come before the MPI
// library's and pass on to PMPI_*.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tapioca::test {

/// Names of the calls made since the last time. Local.
std::vector<std::string> take_mpi_calls();

/// Data that this process handed to MPI for another rank, or got from one.
struct MpiMessage {
    std::string call;  ///< Isend, Issend, Put, Get
    int peer = 0;
    std::uint64_t bytes = 0;
};
/// Those since the last time. Local.
std::vector<MpiMessage> take_mpi_messages();

}  // namespace tapioca::test
