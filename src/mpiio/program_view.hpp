// ProgramView: what the program sees of a file, as MPI_File_set_view has it. All local.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "pattern/typemap.hpp"

namespace tapioca::mpiio {

class ProgramView {
public:
    /// What MPI_File_set_view was given.
    void set(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);

    /// Why accesses through it cannot be served; nothing if they can.
    [[nodiscard]] std::string const& obstacle() const { return obstacle_; }
    [[nodiscard]] std::int64_t etype_bytes() const { return etype_bytes_; }
    [[nodiscard]] pattern::TiledView const& tiles() const { return tiles_; }
    /// Whether MPI libraries are known to write rightly through it.
    [[nodiscard]] bool is_simple() const { return simple_; }
    /// Whether writes through it can be logged, whatever they are.
    [[nodiscard]] bool fits_log() const;

private:
    void decode(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);

    std::string obstacle_;
    pattern::TiledView tiles_;
    std::int64_t etype_bytes_ = 1;
    bool simple_ = true;  ///< bytes, until a view is set
};

}  // namespace tapioca::mpiio
