// Preloaded under MPICH where hosts share a few cores: for the tests and for tapioca-cluster, not for production.
// Debian's MPICH 4.0.2 polls through UCX without ever giving up the processor, so that a rank that waits for a message
// keeps the sender from running; and with several ranks on each of several hosts it hangs when MPI_Finalize disconnects
// (mpich pull request 6596). All symbols are looked up when called: programs without MPI are not affected.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stddef.h>

typedef unsigned (*progress_function)(void* worker);
typedef void* (*disconnect_function)(void* endpoint);
typedef int (*barrier_function)(MPI_Comm comm);
typedef int (*finalize_function)(void);

static int all_have_arrived;

// Lets other ranks run after some polls in vain.
unsigned ucp_worker_progress(void* worker)
{
    enum { patience = 16 };
    static progress_function forward;
    static __thread int empty_polls;

    if (forward == NULL) forward = (progress_function)dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned const events = forward(worker);
    if (events > 0)
        empty_polls = 0;
    else if (empty_polls < patience)
        ++empty_polls;
    else
        sched_yield();
    return events;
}

// After the barrier nobody waits for anything any more, and the end of the process closes the connections.
int MPI_Finalize(void)
{
    barrier_function const barrier = (barrier_function)dlsym(RTLD_NEXT, "PMPI_Barrier");
    finalize_function const finalize = (finalize_function)dlsym(RTLD_NEXT, "PMPI_Finalize");
    if (barrier(MPI_COMM_WORLD) == MPI_SUCCESS) all_have_arrived = 1;
    return finalize();
}

void* ucp_disconnect_nb(void* endpoint)
{
    if (all_have_arrived) return NULL;  // UCS_OK: done
    return ((disconnect_function)dlsym(RTLD_NEXT, "ucp_disconnect_nb"))(endpoint);
}
