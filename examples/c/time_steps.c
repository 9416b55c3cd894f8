/* Appends time steps to one file: every rank writes its block of a 2-d array while it computes the next step. At the
 * end, the last step is read back. */
#include <stdio.h>
#include <stdlib.h>
#include <tapioca/tapioca.h>

static int rank;

static void must(int code)
{
    if (code == TAPIOCA_SUCCESS) return;
    if (rank == 0) fprintf(stderr, "%s\n", TAPIOCA_Last_error());
    MPI_Finalize();
    exit(1);
}

int main(int argc, char** argv)
{
    enum { steps = 3 };
    char const* const path = argc > 1 ? argv[1] : "time_steps.dat";
    int64_t const shape[2] = {512, 256};
    int64_t const step_bytes = 512 * 256 * (int64_t)sizeof(double);
    int64_t start[2], count[2], elements, i;
    TAPIOCA_Pattern pattern;
    TAPIOCA_File file;
    TAPIOCA_Step step;
    MPI_Info hints;
    double *now, *next;
    int ranks, t, done, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "tapioca_buffers", "4"); /* options are given as hints; docs/settings.md lists them */

    must(TAPIOCA_Block_of(2, shape, ranks, rank, start, count));
    must(TAPIOCA_Pattern_create(&pattern));
    must(TAPIOCA_Pattern_add_subarray(pattern, 2, shape, start, count, NULL, sizeof(double), 0, NULL));
    must(TAPIOCA_Open(MPI_COMM_WORLD, path, TAPIOCA_MODE_CREATE, hints, &file));
    must(TAPIOCA_Declare(file, pattern, &step)); /* plans, once */
    must(TAPIOCA_Pattern_free(&pattern));
    MPI_Info_free(&hints);

    elements = count[0] * count[1];
    now = malloc((size_t)elements * sizeof *now + 1);
    next = malloc((size_t)elements * sizeof *next + 1);
    if (!now || !next) MPI_Abort(MPI_COMM_WORLD, 1);
    for (i = 0; i < elements; ++i) now[i] = rank;
    for (t = 0; t < steps; ++t) {
        double* const swapped = now;
        must(TAPIOCA_Step_rebase(step, t * step_bytes));
        must(TAPIOCA_Step_write(step, 0, now, elements * (int64_t)sizeof *now));
        must(TAPIOCA_Step_start(step)); /* `now` belongs to the library until the wait */
        for (i = 0; i < elements; ++i) {
            next[i] = now[i] + 1; /* compute; reading `now` is allowed */
            if (i % 10000 == 0) must(TAPIOCA_Step_progress(step, &done));
        }
        must(TAPIOCA_Step_wait(step, NULL));
        now = next;
        next = swapped;
    }

    must(TAPIOCA_Step_read(step, 0, now, elements * (int64_t)sizeof *now)); /* still at the last step's base */
    must(TAPIOCA_Step_finish(step, NULL));
    for (i = 0; i < elements; ++i) wrong += now[i] != rank + steps - 1;
    if (wrong) fprintf(stderr, "rank %d: %d wrong values\n", rank, wrong);

    must(TAPIOCA_Step_free(&step));
    must(TAPIOCA_Close(&file));
    if (rank == 0) printf("%d time steps are in %s, and the last one was read back\n", steps, path);
    free(now);
    free(next);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
