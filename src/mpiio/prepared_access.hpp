// PreparedAccess: this rank's part in a request, as bytes in the file and in memory.
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
    std::string obstacle;  ///< why this rank cannot take part
    std::int64_t bytes = 0;
    MPI_Offset offset = 0;   ///< in etypes
    pattern::Access access;  ///< of no bytes where it is not known; else also with an obstacle
    std::int64_t end = 0;    ///< one past its last byte in the file
    pattern::Typemap memory;
    std::unique_ptr<std::byte[]> packed;  ///< where the memory has gaps
    std::byte* data = nullptr;            ///< the bytes, packed

    /// The memory lies as the bytes do.
    [[nodiscard]] bool in_one_piece() const { return !packed && memory.begin() == 0; }
    /// Before a write: gathers the request's bytes, where they have gaps.
    void pack(DataAccess const& request) const;
    /// After a read of so many bytes: puts them into the request's buffer, where that has gaps.
    void unpack(DataAccess const& request, std::int64_t count) const;
    /// Where the individual pointer stands after it.
    [[nodiscard]] MPI_Offset next(std::int64_t etype_bytes) const { return offset + bytes / etype_bytes; }
};

/// This rank's part in a request. Whatever is wrong with the arguments is left for the MPI library to say. Local.
PreparedAccess look_at(ProgramFile const& program, DataAccess const& request);

/// Whether MPI libraries are known to move such a part rightly. Local.
bool is_simple(ProgramFile const& program, PreparedAccess const& part);

/// A request has been served: moves the individual pointer, if it was at that. Local.
void move_pointer(ProgramFile const& program, DataAccess const& request, PreparedAccess const& part);

}  // namespace tapioca::mpiio
