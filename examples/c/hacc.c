/* HACC-IO: every rank writes the nine arrays of its particles, and reads them back. With layout aos, the file has one
 * rank after the other, each with its nine arrays. With layout soa, it has one variable after the other, each with the
 * arrays of all ranks. Ranks have different numbers of particles; a scan tells each rank its place.
 * usage: c_hacc [FILE [aos|soa]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tapioca/tapioca.h>

enum { aos, soa };
enum { variables = 9, particle_bytes = 38 };
static int64_t const variable_bytes[variables] = {4, 4, 4, 4, 4, 4, 4, 8, 2}; /* XX YY ZZ VX VY VZ phi pid mask */

static int rank;

static void must(int code)
{
    if (code == TAPIOCA_SUCCESS) return;
    if (rank == 0) fprintf(stderr, "%s\n", TAPIOCA_Last_error());
    MPI_Finalize();
    exit(1);
}

/* The nine variables of a rank with `mine` of all `total` particles; `before` particles are on lower ranks. Local. */
static void hacc_pattern(int layout, int64_t mine, int64_t before, int64_t total, int64_t file_offset,
                         TAPIOCA_Pattern* pattern)
{
    int64_t sizes_before = 0; /* bytes per particle of the variables before this one */
    int v;
    must(TAPIOCA_Pattern_create(pattern));
    for (v = 0; v < variables; ++v) {
        int64_t const size = variable_bytes[v], length = mine * size;
        int64_t const offset = file_offset + (layout == aos ? before * particle_bytes + mine * sizes_before
                                                            : total * sizes_before + before * size);
        must(TAPIOCA_Pattern_add_extents(*pattern, 1, &offset, &length, NULL));
        sizes_before += size;
    }
}

/* Fills in variable `v` of `mine` particles, the first of which has the number `first`. */
static void compute(void* data, int v, int64_t mine, int64_t first)
{
    int64_t i;
    for (i = 0; i < mine; ++i) {
        if (v < 7) ((float*)data)[i] = (float)((first + i) * 10 + v);
        if (v == 7) ((int64_t*)data)[i] = first + i;
        if (v == 8) ((uint16_t*)data)[i] = (uint16_t)((first + i) % 1000);
    }
}

int main(int argc, char** argv)
{
    int64_t mine, before = 0, total = 0;
    void *data[variables], *back[variables];
    TAPIOCA_Pattern pattern;
    TAPIOCA_File file;
    TAPIOCA_Step step;
    int v, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine = 1000 + 10 * rank;
    MPI_Exscan(&mine, &before, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) before = 0; /* MPI leaves it undefined there */
    MPI_Allreduce(&mine, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (v = 0; v < variables; ++v) {
        data[v] = malloc((size_t)(mine * variable_bytes[v]));
        back[v] = malloc((size_t)(mine * variable_bytes[v]));
        if (!data[v] || !back[v]) MPI_Abort(MPI_COMM_WORLD, 1);
        compute(data[v], v, mine, before);
    }

    hacc_pattern(argc > 2 && strcmp(argv[2], "soa") == 0 ? soa : aos, mine, before, total, 0, &pattern);
    must(TAPIOCA_Open(MPI_COMM_WORLD, argc > 1 ? argv[1] : "hacc.dat", TAPIOCA_MODE_CREATE, MPI_INFO_NULL, &file));
    must(TAPIOCA_Declare(file, pattern, &step));
    must(TAPIOCA_Pattern_free(&pattern));
    for (v = 0; v < variables; ++v) must(TAPIOCA_Step_write(step, v, data[v], mine * variable_bytes[v]));
    must(TAPIOCA_Step_finish(step, NULL));
    for (v = 0; v < variables; ++v) must(TAPIOCA_Step_read(step, v, back[v], mine * variable_bytes[v]));
    must(TAPIOCA_Step_finish(step, NULL));
    must(TAPIOCA_Step_free(&step));
    must(TAPIOCA_Close(&file));

    for (v = 0; v < variables; ++v) {
        wrong += memcmp(data[v], back[v], (size_t)(mine * variable_bytes[v])) != 0;
        free(data[v]);
        free(back[v]);
    }
    if (wrong) fprintf(stderr, "rank %d: %d wrong variables\n", rank, wrong);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
