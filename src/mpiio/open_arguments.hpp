// OpenArguments: the arguments of MPI_File_open, and which file it has opened.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tapioca::mpiio {

/// Identifies the file of a handle, whatever its name: two handles with equal values are handles of one file.
struct Which {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(Which const&) const = default;
};
/// The path of the file that the MPI library opens under this name. Some MPI libraries drop a prefix such as `ufs:`; a
/// name whose prefix stands for another file system has no path. Local.
std::optional<std::string> path_of(std::string const& name);
/// Identifies the file that the MPI library opens under this name; none if it does not exist. Local.
std::optional<Which> which(std::string const& name);

struct OpenArguments {
    /// To be called after the MPI library has opened the file. Local.
    OpenArguments(MPI_File handle, MPI_Comm comm, std::string const& name, int amode);

    MPI_File handle;
    int amode;
    std::string path;            ///< absolute
    std::optional<Which> which;  ///< the file that the MPI library has opened, as this rank found it at that time
    std::int64_t bytes = -1;     ///< its size then; -1 if it was not found
    int rank = 0;
    int ranks = 1;
    std::string refusal;  ///< why this rank wants everything passed on, because of the name or the mode

    [[nodiscard]] bool first() const { return rank == 0; }
    /// Opened by one rank.
    [[nodiscard]] bool alone() const { return ranks == 1; }
    [[nodiscard]] bool read_only() const { return (amode & MPI_MODE_RDONLY) != 0; }
};

}  // namespace tapioca::mpiio
