// For the tests only, preloaded under MPICH: lets other ranks run where there are more ranks than cores.
// Debian's MPICH polls through UCX without ever giving up the processor, so that a rank that waits for a
// message keeps the sender from running.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

typedef unsigned (*progress_function)(void* worker);

unsigned ucp_worker_progress(void* worker)
{
    enum { patience = 16 };
    static progress_function forward;
    static __thread int empty_polls;

    if (forward == 0) forward = (progress_function)dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned const events = forward(worker);
    if (events > 0)
        empty_polls = 0;
    else if (empty_polls < patience)
        ++empty_polls;
    else
        sched_yield();
    return events;
}
