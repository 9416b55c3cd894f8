#include "mpiio/program_view.hpp"

#include <cstring>
#include <exception>

#include <fmt/core.h>

#include "mpiio/datatype.hpp"
#include "mpiio/datatype_envelope.hpp"

namespace tapioca::mpiio {

void ProgramView::set(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation)
{
    obstacle_ = "";
    try {
        decode(displacement, etype, filetype, representation);
    } catch (std::exception const& error) {
        obstacle_ = error.what();
    }
}

void ProgramView::decode(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation)
{
    MPI_Count bytes = 0;
    PMPI_Type_size_x(etype, &bytes);
    etype_bytes_ = bytes;
    if (!representation || std::strcmp(representation, "native") != 0) {
        obstacle_ = fmt::format("data representation {}", representation ? representation : "");
        return;
    }
    auto const tile = datatype_of(filetype);
    if (!tile) {
        obstacle_ = tile.error().text;
        return;
    }
    simple_ = mpiio::is_simple(filetype);
    tiles_ = {displacement, tile->extent, tile->map};
    if (etype_bytes_ <= 0 || tile->map.bytes() == 0) obstacle_ = "a view of no bytes";
}

bool ProgramView::fits_log() const
{
    return obstacle_.empty() && tiles_.tile.ascending() && tiles_.extent >= tiles_.tile.end() - tiles_.tile.begin();
}

}  // namespace tapioca::mpiio
