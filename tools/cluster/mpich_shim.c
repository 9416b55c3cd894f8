// Preloaded under MPICH where hosts share a few cores: for the tests and for tapioca-cluster, not for production.
// Debian's MPICH 4.0.2 polls through UCX without ever yielding the processor, so that a rank that waits for a message
// keeps the sender from running. And with several ranks on each of several hosts it hangs when MPI_Finalize disconnects
// (mpich pull request 6596). If a command sets LD_PRELOAD for the program that it runs, as in `env LD_PRELOAD=...
// program`, this library is put in front. All symbols are looked up when called, so programs without MPI are not
// affected.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned (*progress_function)(void* worker);
typedef void* (*disconnect_function)(void* endpoint);
typedef int (*barrier_function)(MPI_Comm comm);
typedef int (*finalize_function)(void);

static int all_have_arrived;

// Lets other ranks run after several unsuccessful polls.
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

// After the barrier no rank waits for anything any more, and the end of the process closes the connections.
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

// `variables` with this library first in LD_PRELOAD, unless it is already there. The memory is needed until the process
// executes another program.
static char* const* with_shim(char* const* variables)
{
    static char const name[] = "LD_PRELOAD=";
    Dl_info self;
    if (dladdr((void*)&all_have_arrived, &self) == 0) return variables;
    size_t count = 0;
    char const* others = "";
    for (; variables[count] != NULL; ++count)
        if (strncmp(variables[count], name, sizeof name - 1) == 0) others = variables[count] + sizeof name - 1;
    if (strstr(others, self.dli_fname) != NULL) return variables;
    char** const changed = malloc((count + 2) * sizeof *changed);
    size_t const length = sizeof name + strlen(self.dli_fname) + 1 + strlen(others);
    char* const text = malloc(length);
    if (changed == NULL || text == NULL) return variables;
    snprintf(text, length, "%s%s%s%s", name, self.dli_fname, *others == '\0' ? "" : ":", others);
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i)
        if (strncmp(variables[i], name, sizeof name - 1) != 0) changed[kept++] = variables[i];
    changed[kept++] = text;
    changed[kept] = NULL;
    return changed;
}

int execve(char const* path, char* const arguments[], char* const variables[])
{
    int (*const forward)(char const*, char* const*, char* const*) =
        (int (*)(char const*, char* const*, char* const*))dlsym(RTLD_NEXT, "execve");
    return forward(path, arguments, with_shim(variables));
}

int execvpe(char const* name, char* const arguments[], char* const variables[])
{
    int (*const forward)(char const*, char* const*, char* const*) =
        (int (*)(char const*, char* const*, char* const*))dlsym(RTLD_NEXT, "execvpe");
    return forward(name, arguments, with_shim(variables));
}

int execv(char const* path, char* const arguments[])
{
    return execve(path, arguments, environ);
}

int execvp(char const* name, char* const arguments[])
{
    return execvpe(name, arguments, environ);
}
