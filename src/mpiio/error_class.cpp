#include "mpiio/error_class.hpp"

#include <cerrno>

#include <mpi.h>

namespace tapioca::mpiio {

namespace {

int class_of(Errc code, int sys_errno)
{
    switch (code) {
    case Errc::ok: return MPI_SUCCESS;
    case Errc::invalid_argument: return MPI_ERR_ARG;
    case Errc::mismatch: return MPI_ERR_NOT_SAME;
    case Errc::not_found: return MPI_ERR_NO_SUCH_FILE;
    case Errc::permission: return sys_errno == EROFS ? MPI_ERR_READ_ONLY : MPI_ERR_ACCESS;
    case Errc::is_directory: return MPI_ERR_BAD_FILE;
    case Errc::no_space: return sys_errno == EDQUOT ? MPI_ERR_QUOTA : MPI_ERR_NO_SPACE;
    case Errc::memory: return MPI_ERR_NO_MEM;
    case Errc::unsupported: return MPI_ERR_UNSUPPORTED_OPERATION;
    default: return MPI_ERR_IO;
    }
}

}  // namespace

int class_of(Error const& error)
{
    return class_of(error.code(), error.sys_errno());
}

int class_of(core::Failure const& failure)
{
    return class_of(failure.code, failure.sys_errno);
}

int class_of(core::Status const& status)
{
    return status ? MPI_SUCCESS : class_of(status.error());
}

}  // namespace tapioca::mpiio
