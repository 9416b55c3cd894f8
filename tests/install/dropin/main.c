/* A program that knows MPI only. Fails unless the drop-in library serves its file. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv)
{
    MPI_File file;
    MPI_Info info;
    char text[16];
    char value[16] = "";
    int rank, found = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(text, sizeof text, "rank %d\n", rank);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_get_info(file, &info);
    MPI_Info_get(info, "tapioca", sizeof value - 1, value, &found);
    MPI_Info_free(&info);
    MPI_File_write_at_all(file, 7 * rank, text, 7, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return found && strcmp(value, "true") == 0 ? 0 : 1;
}
