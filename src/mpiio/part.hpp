// Part: this rank's part in a request, for the files that OpenFile is spread over.
#pragma once

#include <memory>
#include <string>

#include "mpiio/open_file.hpp"

namespace tapioca::mpiio {

struct OpenFile::Part {
    std::string obstacle;  ///< why this rank cannot take part
    std::int64_t bytes = 0;
    MPI_Offset offset = 0;   ///< in etypes
    pattern::Access access;  ///< of no bytes where it is not known; else also with an obstacle
    std::int64_t end = 0;    ///< one past its last byte in the file
    pattern::Typemap memory;
    std::unique_ptr<std::byte[]> packed;  ///< where the memory has gaps
    std::byte* data = nullptr;            ///< the bytes, packed

    /// Where the individual pointer stands after it.
    [[nodiscard]] MPI_Offset next(std::int64_t etype_bytes) const { return offset + bytes / etype_bytes; }
};

}  // namespace tapioca::mpiio
