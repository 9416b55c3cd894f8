// PreparedAccess: this rank's part of a request, as bytes in the file and in memory.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "mpiio/data_access.hpp"
#include "pattern/typemap.hpp"

namespace tapioca::mpiio {

struct ProgramFile;

struct PreparedAccess {
    std::string obstacle;                       ///< why this rank cannot take part
    int error = MPI_ERR_UNSUPPORTED_OPERATION;  ///< the class of that error, for a file that nobody else can access
    std::int64_t bytes = 0;
    MPI_Offset offset = 0;   ///< in etypes
    pattern::Access access;  ///< has no bytes if it is unknown; may be known even with an obstacle
    std::int64_t end = 0;    ///< one past its last byte in the file
    pattern::Typemap memory;
    std::unique_ptr<std::byte[]> packed;  ///< used if the memory has gaps
    std::byte* data = nullptr;            ///< the packed bytes

    /// True if the memory is contiguous.
    [[nodiscard]] bool in_one_piece() const { return !packed && memory.begin() == 0; }
    /// Before a write: packs the request's bytes, if they have gaps.
    void pack(DataAccess const& request) const;
    /// After a read of `count` bytes: unpacks them into the request's buffer, if it has gaps.
    void unpack(DataAccess const& request, std::int64_t count) const;
    /// The individual pointer after the access.
    [[nodiscard]] MPI_Offset next(std::int64_t etype_bytes) const { return offset + bytes / etype_bytes; }
};

/// Prepares this rank's part of a request. Errors in the arguments are left for the MPI library to report. Local.
PreparedAccess look_at(ProgramFile const& program, DataAccess const& request);

/// Whether MPI libraries are known to handle such a part correctly. Local.
bool is_simple(ProgramFile const& program, PreparedAccess const& part);

/// Moves the individual pointer after a request was served, if the request used it. Local.
void move_pointer(ProgramFile const& program, DataAccess const& request, PreparedAccess const& part);

}  // namespace tapioca::mpiio
