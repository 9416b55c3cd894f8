// ProgramView: the program's view of a file, as set by MPI_File_set_view. All functions are local.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "pattern/typemap.hpp"

namespace tapioca::mpiio {

class ProgramView {
public:
    /// Takes the arguments of MPI_File_set_view.
    void set(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);

    /// Why accesses through the view cannot be served; empty if they can.
    [[nodiscard]] std::string const& obstacle() const { return obstacle_; }
    /// In memory, also where accesses cannot be served: offsets and pointers count etypes.
    [[nodiscard]] std::int64_t etype_bytes() const { return etype_bytes_; }
    [[nodiscard]] pattern::TiledView const& tiles() const { return tiles_; }
    /// Whether MPI libraries are known to write correctly through it.
    [[nodiscard]] bool is_simple() const { return simple_; }
    /// Whether all writes through it can be logged.
    [[nodiscard]] bool fits_log() const;

private:
    void decode(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);

    std::string obstacle_;
    pattern::TiledView tiles_;
    std::int64_t etype_bytes_ = 1;
    bool simple_ = true;  ///< a view of bytes, until another is set
};

}  // namespace tapioca::mpiio
