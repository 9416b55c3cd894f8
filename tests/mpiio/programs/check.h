/* Shared by the C programs: counts what is wrong, and makes one number of everything that was read. */
#ifndef TAPIOCA_TESTS_PROGRAMS_CHECK_H
#define TAPIOCA_TESTS_PROGRAMS_CHECK_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static int my_rank, all_ranks, failures;
static uint64_t digest = 14695981039346656037u;

static inline void begin(int* argc, char*** argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all_ranks);
}

static inline void check(int right, char const* what)
{
    if (right) return;
    if (++failures <= 10) fprintf(stderr, "[rank %d] wrong: %s\n", my_rank, what);
}

/* Adds what was read to the digest (FNV-1a). */
static inline void add_to_digest(void const* bytes, size_t count)
{
    unsigned char const* byte = bytes;
    for (size_t i = 0; i < count; ++i) digest = (digest ^ byte[i]) * 1099511628211u;
}

/* Prints the digest of all ranks; returns the exit status of every rank. Collective. */
static inline int finish(char const* name)
{
    uint64_t mine = digest * (uint64_t)(2 * my_rank + 1), sum = 0;
    int total = 0;
    MPI_Reduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (my_rank == 0)
        printf("%s on %d ranks: %d wrong, digest %016llx\n", name, all_ranks, total, (unsigned long long)sum);
    MPI_Finalize();
    return total != 0;
}

#endif
