// The functions in which programs complete requests, some of which may be the library's. Cheap if none is.
#include "mpiio/generalized_requests.hpp"
#include "mpiio/interpose.hpp"

// NOLINTBEGIN: the names are MPI's
using namespace tapioca::mpiio;

#define COMPLETION(NAME, HOW, PARAMETERS, ARGUMENTS) \
    INTERPOSE(NAME, PARAMETERS, ARGUMENTS, any_handed_out() ? HOW ARGUMENTS : mpi_functions().mpi.NAME ARGUMENTS)

COMPLETION(Wait, wait, (MPI_Request * request, MPI_Status* status), (request, status))
COMPLETION(Test, test, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status))
COMPLETION(Waitany, waitany, (int count, MPI_Request* requests, int* index, MPI_Status* status),
           (count, requests, index, status))
COMPLETION(Testany, testany, (int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status),
           (count, requests, index, flag, status))
COMPLETION(Waitall, waitall, (int count, MPI_Request* requests, MPI_Status* statuses), (count, requests, statuses))
COMPLETION(Testall, testall, (int count, MPI_Request* requests, int* flag, MPI_Status* statuses),
           (count, requests, flag, statuses))
COMPLETION(Waitsome, waitsome, (int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses),
           (count, requests, completed, indices, statuses))
COMPLETION(Testsome, testsome, (int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses),
           (count, requests, completed, indices, statuses))
COMPLETION(Request_get_status, request_get_status, (MPI_Request request, int* flag, MPI_Status* status),
           (request, flag, status))
COMPLETION(Request_free, request_free, (MPI_Request * request), (request))
// NOLINTEND
