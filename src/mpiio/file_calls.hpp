// MPI's calls on a file as a whole. Each also makes the MPI library's own call. Arguments and results are those of
// MPI_File_NAME.
#pragma once

#include <mpi.h>

namespace tapioca::mpiio {

int open(MPI_Comm comm, char const* name, int amode, MPI_Info info, MPI_File* file);
int close(MPI_File* file);
int set_view(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* datarep,
             MPI_Info info);
int set_info(MPI_File file, MPI_Info info);
int get_info(MPI_File file, MPI_Info* info);
int set_atomicity(MPI_File file, int atomic);
int get_size(MPI_File file, MPI_Offset* size);
int seek(MPI_File file, MPI_Offset offset, int whence);
int seek_shared(MPI_File file, MPI_Offset offset, int whence);
int sync(MPI_File file);
int set_size(MPI_File file, MPI_Offset size);
int preallocate(MPI_File file, MPI_Offset size);
int delete_file(char const* name, MPI_Info info);

}  // namespace tapioca::mpiio
