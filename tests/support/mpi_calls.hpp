// Counts this process's collective and message-passing MPI calls: the executable's own MPI_* functions take precedence
// over the MPI library's and call PMPI_*.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tapioca::test {

/// Names of the calls made since the last call of this function. Local.
std::vector<std::string> take_mpi_calls();

/// Data that this process passed to MPI for another rank, or received from one.
struct MpiMessage {
    std::string call;  ///< Isend, Issend, Put, Get
    int peer = 0;
    std::uint64_t bytes = 0;
};
/// The messages since the last call of this function. Local.
std::vector<MpiMessage> take_mpi_messages();

}  // namespace tapioca::test
