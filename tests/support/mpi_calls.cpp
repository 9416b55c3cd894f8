// See mpi_calls.hpp.
#include "support/mpi_calls.hpp"

#include <mpi.h>

#include <mutex>
#include <utility>

namespace tapioca::test {

namespace {

std::mutex mutex;
std::vector<std::string> calls;
std::vector<MpiMessage> messages;

}  // namespace

static void count(char const* name)
{
    std::lock_guard const lock(mutex);
    calls.emplace_back(name);
}

static void count_message(char const* name, int peer, int n, MPI_Datatype type)
{
    int bytes = 0;
    PMPI_Type_size(type, &bytes);
    count(name);
    std::lock_guard const lock(mutex);
    messages.push_back({name, peer, static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(bytes)});
}

std::vector<std::string> take_mpi_calls()
{
    std::lock_guard const lock(mutex);
    return std::exchange(calls, {});
}

std::vector<MpiMessage> take_mpi_messages()
{
    std::lock_guard const lock(mutex);
    return std::exchange(messages, {});
}

}  // namespace tapioca::test

// NOLINTBEGIN: the signatures are MPI's
#define COUNTED(name, parameters, arguments)                            \
    extern "C" [[gnu::visibility("default")]] int MPI_##name parameters \
    {                                                                   \
        tapioca::test::count(#name);                                    \
        return PMPI_##name arguments;                                   \
    }

#define COUNTED_MESSAGE(name, peer, n, type, parameters, arguments)     \
    extern "C" [[gnu::visibility("default")]] int MPI_##name parameters \
    {                                                                   \
        tapioca::test::count_message(#name, peer, n, type);             \
        return PMPI_##name arguments;                                   \
    }

COUNTED(Barrier, (MPI_Comm comm), (comm))
COUNTED(Bcast, (void* data, int n, MPI_Datatype type, int root, MPI_Comm comm), (data, n, type, root, comm))
COUNTED(Allreduce, (void const* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (in, out, n, type, op, comm))
COUNTED(Reduce, (void const* in, void* out, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
        (in, out, n, type, op, root, comm))
COUNTED(Scan, (void const* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (in, out, n, type, op, comm))
COUNTED(Exscan, (void const* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (in, out, n, type, op, comm))
COUNTED(Gather, (void const* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, int root, MPI_Comm comm),
        (in, n, t, out, m, u, root, comm))
COUNTED(Allgather, (void const* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, MPI_Comm comm),
        (in, n, t, out, m, u, comm))
COUNTED(Allgatherv,
        (void const* in, int n, MPI_Datatype t, void* out, int const m[], int const at[], MPI_Datatype u,
         MPI_Comm comm),
        (in, n, t, out, m, at, u, comm))
COUNTED(Alltoall, (void const* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, MPI_Comm comm),
        (in, n, t, out, m, u, comm))
COUNTED(Alltoallv,
        (void const* in, int const n[], int const from[], MPI_Datatype t, void* out, int const m[], int const at[],
         MPI_Datatype u, MPI_Comm comm),
        (in, n, from, t, out, m, at, u, comm))
COUNTED(Ibarrier, (MPI_Comm comm, MPI_Request* request), (comm, request))
COUNTED(Ibcast, (void* data, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request),
        (data, n, type, root, comm, request))
COUNTED(Iallreduce,
        (void const* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request* request),
        (in, out, n, type, op, comm, request))
COUNTED(Send, (void const* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm),
        (data, n, type, to, tag, comm))
COUNTED(Recv, (void* data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status),
        (data, n, type, from, tag, comm, status))
COUNTED_MESSAGE(Isend, to, n, type,
                (void const* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request),
                (data, n, type, to, tag, comm, request))
COUNTED_MESSAGE(Issend, to, n, type,
                (void const* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request),
                (data, n, type, to, tag, comm, request))
COUNTED_MESSAGE(Put, to, n, type,
                (void const* data, int n, MPI_Datatype type, int to, MPI_Aint at, int m, MPI_Datatype u, MPI_Win win),
                (data, n, type, to, at, m, u, win))
COUNTED_MESSAGE(Get, from, n, type,
                (void* data, int n, MPI_Datatype type, int from, MPI_Aint at, int m, MPI_Datatype u, MPI_Win win),
                (data, n, type, from, at, m, u, win))
COUNTED(Irecv, (void* data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request),
        (data, n, type, from, tag, comm, request))
COUNTED(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
COUNTED(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made))
COUNTED(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
        (comm, type, key, info, made))
COUNTED(Comm_free, (MPI_Comm * comm), (comm))
COUNTED(Win_create, (void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win),
        (base, bytes, unit, info, comm, win))
COUNTED(Win_allocate, (MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win),
        (bytes, unit, info, comm, base, win))
COUNTED(Win_allocate_shared, (MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win),
        (bytes, unit, info, comm, base, win))
COUNTED(Win_fence, (int what, MPI_Win win), (what, win))
COUNTED(Win_post, (MPI_Group group, int what, MPI_Win win), (group, what, win))
COUNTED(Win_start, (MPI_Group group, int what, MPI_Win win), (group, what, win))
COUNTED(Win_complete, (MPI_Win win), (win))
COUNTED(Win_sync, (MPI_Win win), (win))
COUNTED(Win_free, (MPI_Win * win), (win))
// NOLINTEND
