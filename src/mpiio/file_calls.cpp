#include "mpiio/file_calls.hpp"

#include <algorithm>

#include "mpiio/environment.hpp"
#include "mpiio/handle.hpp"
#include "mpiio/handle_table.hpp"
#include "mpiio/mpi_functions.hpp"
#include "mpiio/return_code.hpp"

namespace tapioca::mpiio {

int open(MPI_Comm comm, char const* name, int amode, MPI_Info info, MPI_File* file)
{
    Within const within;
    // A second handle may begin at the end of the file, which may be in this process's log.
    if (auto const other = name && (amode & MPI_MODE_APPEND) && any_logs() ? which(name) : std::nullopt)
        for (auto const& log : logs_of(*other, nullptr)) (void)log->hand_over(Direction::read, false);
    auto const code = mpi_functions().mpi.File_open(comm, name, amode, info, file);
    if (code != MPI_SUCCESS || !name) return code;
    (void)remove(*file);  // the handle was closed without this library noticing
    if (is_off()) return code;
    auto const known = std::make_shared<Handle>(*file, comm, name, amode, info);
    known->start();
    enter(*file, known);
    return code;
}

int close(MPI_File* file)
{
    auto const known = file ? find(*file) : nullptr;
    auto const ours = known ? known->close() : MPI_SUCCESS;  // until then, other handles find its log
    if (known) (void)remove(*file);
    if (ours != MPI_SUCCESS) PMPI_File_call_errhandler(*file, ours);
    Within const within;
    auto const code = mpi_functions().mpi.File_close(file);
    return ours != MPI_SUCCESS ? ours : code;
}

int set_view(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* datarep,
             MPI_Info info)
{
    Within const within;
    auto const known = find(file);
    if (known) known->finish_pending();  // outstanding accesses use the old view
    auto const code = mpi_functions().mpi.File_set_view(file, displacement, etype, filetype, datarep, info);
    if (!known) return code;
    if (code == MPI_SUCCESS) {
        known->set_view(displacement, etype, filetype, datarep);
        known->set_info(info);
    }
    auto const error = known->settle();
    return code != MPI_SUCCESS ? code : raise(file, error);
}

int set_info(MPI_File file, MPI_Info info)
{
    Within const within;
    auto const code = mpi_functions().mpi.File_set_info(file, info);
    auto const known = find(file);
    if (!known) return code;
    if (code == MPI_SUCCESS) known->set_info(info);
    auto const error = known->settle();
    return code != MPI_SUCCESS ? code : raise(file, error);
}

int get_info(MPI_File file, MPI_Info* info)
{
    Within const within;
    auto const code = mpi_functions().mpi.File_get_info(file, info);
    if (auto const known = find(file); known && code == MPI_SUCCESS) known->add_hints(*info);
    return code;
}

int set_atomicity(MPI_File file, int atomic)
{
    Within const within;
    auto const known = find(file);
    bool const together = known && known->has_log();
    auto const error = known ? known->flush(false) : MPI_SUCCESS;
    if (together && error != MPI_SUCCESS) return raise(file, error);  // the mode is not changed
    auto const code = mpi_functions().mpi.File_set_atomicity(file, atomic);
    if (known && code == MPI_SUCCESS) known->set_atomicity(atomic != 0);
    return code != MPI_SUCCESS ? code : raise(file, error);
}

int get_size(MPI_File file, MPI_Offset* size)
{
    Within const within;
    auto const known = find(file);
    if (known && !known->takes_writes())
        if (auto const error = known->hand_over(Direction::read); error != MPI_SUCCESS) return raise(file, error);
    auto const code = mpi_functions().mpi.File_get_size(file, size);
    if (known && code == MPI_SUCCESS) *size = std::max(*size, static_cast<MPI_Offset>(known->log_end()));
    return code;
}

int seek(MPI_File file, MPI_Offset offset, int whence)
{
    Within const within;
    if (auto const known = find(file); known && whence == MPI_SEEK_END)
        if (auto const error = known->hand_over(Direction::read); error != MPI_SUCCESS) return raise(file, error);
    return mpi_functions().mpi.File_seek(file, offset, whence);
}

}  // namespace tapioca::mpiio
