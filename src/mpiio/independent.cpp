#include "mpiio/independent.hpp"

#include <climits>

#include "mpiio/mpi_functions.hpp"

namespace tapioca::mpiio {

namespace {

int call(MPI_File file, DataAccess const& request, MPI_Status* status)
{
    auto const& mpi = mpi_functions().mpi;
    auto const& [call, direction, offset, buffer, count, type] = request;
    bool const writing = direction == Direction::write;
#if MPI_VERSION >= 4
    if (count > INT_MAX) {
        if (writing)
            return offset ? mpi.File_write_at_c(file, *offset, buffer, count, type, status)
                          : mpi.File_write_c(file, buffer, count, type, status);
        return offset ? mpi.File_read_at_c(file, *offset, buffer, count, type, status)
                      : mpi.File_read_c(file, buffer, count, type, status);
    }
#endif
    auto const few = static_cast<int>(count);
    if (writing)
        return offset ? mpi.File_write_at(file, *offset, buffer, few, type, status)
                      : mpi.File_write(file, buffer, few, type, status);
    return offset ? mpi.File_read_at(file, *offset, buffer, few, type, status)
                  : mpi.File_read(file, buffer, few, type, status);
}

}  // namespace

AccessOutcome access_alone(MPI_File file, DataAccess const& request)
{
    Within const within;
    MPI_Status status = {};
    AccessOutcome outcome{true, call(file, request, &status), 0, true};
    if (outcome.error != MPI_SUCCESS) return outcome;
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    outcome.bytes = bytes;
    return outcome;
}

}  // namespace tapioca::mpiio
