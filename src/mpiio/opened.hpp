// Opened: what MPI_File_open was given, and which file it has opened.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tapioca::mpiio {

/// What makes two handles those of one file, whatever its names.
struct Which {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(Which const&) const = default;
};
/// Of the file that the MPI library opens under this name; none if it is not there. Local.
std::optional<Which> which(std::string const& name);

struct Opened {
    /// After the MPI library has opened it. Local.
    Opened(MPI_File handle, MPI_Comm comm, std::string const& name, int amode);

    MPI_File handle;
    int amode;
    std::string path;            ///< absolute
    std::optional<Which> which;  ///< the file that the MPI library has opened, as this rank found it then
    int rank = 0;
    int ranks = 1;
    std::string refusal;  ///< why this rank wants everything passed on, as far as name and mode are concerned

    [[nodiscard]] bool first() const { return rank == 0; }
    /// Opened by one rank.
    [[nodiscard]] bool alone() const { return ranks == 1; }
    [[nodiscard]] bool read_only() const { return (amode & MPI_MODE_RDONLY) != 0; }
};

}  // namespace tapioca::mpiio
