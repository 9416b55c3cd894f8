/* Algorithm 2 of the TAPIOCA paper: every rank writes its x, y and z as an array of structures, with three collective
 * writes that were declared first. */
#include <stdio.h>
#include <stdlib.h>
#include <tapioca/tapioca.h>

static int rank;

/* A collective call that fails does so on every rank, so all ranks get here with the same code. */
static void must(int code)
{
    if (code == TAPIOCA_SUCCESS) return;
    if (rank == 0) fprintf(stderr, "%s\n", TAPIOCA_Last_error());
    MPI_Finalize();
    exit(1);
}

int main(int argc, char** argv)
{
    enum { n = 5 };
    double x[n], y[n], z[n];
    int64_t count[3], type[3], ofst[3], offset;
    TAPIOCA_File f;
    TAPIOCA_Status status;
    int i;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (i = 0; i < n; ++i) {
        x[i] = rank + 0.1 * i;
        y[i] = rank + 0.2 * i;
        z[i] = rank + 0.3 * i;
    }

    offset = (int64_t)rank * 3 * n * (int64_t)sizeof(double);
    for (i = 0; i < 3; ++i) {
        count[i] = n;
        type[i] = sizeof(double);
        ofst[i] = offset + i * n * type[i];
    }

    must(TAPIOCA_Open(MPI_COMM_WORLD, argc > 1 ? argv[1] : "algorithm2.dat", TAPIOCA_MODE_CREATE, MPI_INFO_NULL, &f));
    must(TAPIOCA_Init(f, count, type, ofst, 3));

    must(TAPIOCA_Write(f, offset, x, n, type[0], &status));
    offset += n * type[0];
    must(TAPIOCA_Write(f, offset, y, n, type[1], &status));
    offset += n * type[1];
    must(TAPIOCA_Write(f, offset, z, n, type[2], &status)); /* the last one: moves x, y and z */

    if (rank == 0) printf("rank 0: %d bytes of each variable\n", (int)status.bytes);
    must(TAPIOCA_Finalize(f));
    must(TAPIOCA_Close(&f));
    MPI_Finalize();
    return 0;
}
