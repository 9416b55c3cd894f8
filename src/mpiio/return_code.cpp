#include "mpiio/return_code.hpp"

namespace tapioca::mpiio {

/// Does not use the implementation's own fields.
void fill(MPI_Status* status, std::int64_t bytes)
{
    if (status == MPI_STATUS_IGNORE) return;
    PMPI_Status_set_elements_x(status, MPI_BYTE, bytes);
    PMPI_Status_set_cancelled(status, 0);
}

namespace {

extern "C" {
int tell_outcome(void* bytes, MPI_Status* status)
{
    fill(status, *static_cast<std::int64_t*>(bytes));
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
int forget_outcome(void* bytes)
{
    delete static_cast<std::int64_t*>(bytes);
    return MPI_SUCCESS;
}
int never_cancel(void* /*bytes*/, int /*complete*/)
{
    return MPI_SUCCESS;
}
}

}  // namespace

int raise(MPI_File file, int error)
{
    if (error != MPI_SUCCESS) PMPI_File_call_errhandler(file, error);
    return error;
}

/// Open MPI's MPI_File_call_errhandler does not take MPI_FILE_NULL, so functions that a program has set are not called.
int raise_unopened(MPI_Comm comm, int error)
{
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    if (error == MPI_SUCCESS || PMPI_File_get_errhandler(MPI_FILE_NULL, &handler) != MPI_SUCCESS) return error;
    bool const fatal = handler == MPI_ERRORS_ARE_FATAL;
    PMPI_Errhandler_free(&handler);
    if (fatal) PMPI_Abort(comm, error);
    return error;
}

int answer(MPI_File file, AccessOutcome const& outcome, MPI_Status* status)
{
    fill(status, outcome.bytes);
    return outcome.told ? outcome.error : raise(file, outcome.error);
}

int answer_later(MPI_File file, AccessOutcome const& outcome, MPI_Request* request)
{
    *request = MPI_REQUEST_NULL;
    if (outcome.error != MPI_SUCCESS) return answer(file, outcome, MPI_STATUS_IGNORE);
    auto const code =
        PMPI_Grequest_start(tell_outcome, forget_outcome, never_cancel, new std::int64_t(outcome.bytes), request);
    return code == MPI_SUCCESS ? PMPI_Grequest_complete(*request) : code;
}

}  // namespace tapioca::mpiio
