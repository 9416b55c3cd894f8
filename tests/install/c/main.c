/* Every rank writes "rank N" and a newline, through the installed library. */
#include <stdio.h>
#include <tapioca/tapioca.h>

int main(int argc, char** argv)
{
    char text[8];
    int64_t const count = 7, type_size = 1;
    int64_t offset;
    TAPIOCA_File file;
    TAPIOCA_Status status = {0, 0};
    int rank, code;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sprintf(text, "rank %d\n", rank % 10);
    offset = rank * count;
    code = TAPIOCA_Open(MPI_COMM_WORLD, argv[1], TAPIOCA_MODE_CREATE, MPI_INFO_NULL, &file);
    if (!code) code = TAPIOCA_Init(file, &count, &type_size, &offset, 1);
    if (!code) code = TAPIOCA_Write(file, offset, text, count, type_size, &status);
    if (!code) code = TAPIOCA_Close(&file);
    if (code) fprintf(stderr, "%s\n", TAPIOCA_Last_error());
    MPI_Finalize();
    return code || status.bytes != count ? 1 : 0;
}
