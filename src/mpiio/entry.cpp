// The functions that programs call in place of the MPI library's, under their MPI_ and PMPI_ names, because the Fortran
// bindings of some MPIs call the latter.
#include "mpiio/dispatch.hpp"
#include "mpiio/file_calls.hpp"
#include "mpiio/interpose.hpp"

// NOLINTBEGIN: the names are MPI's
using namespace tapioca::mpiio;

namespace {

/// For DataAccess, which has one member for both directions.
void* writable(void const* buffer)
{
    return const_cast<void*>(buffer);
}

}  // namespace

INTERPOSE(File_open, (MPI_Comm comm, char const* name, int amode, MPI_Info info, MPI_File* file),
          (comm, name, amode, info, file), open(comm, name, amode, info, file))
INTERPOSE(File_close, (MPI_File * file), (file), close(file))
INTERPOSE(File_set_view,
          (MPI_File file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, char const* datarep,
           MPI_Info info),
          (file, disp, etype, filetype, datarep, info), set_view(file, disp, etype, filetype, datarep, info))
INTERPOSE(File_set_info, (MPI_File file, MPI_Info info), (file, info), set_info(file, info))
INTERPOSE(File_get_info, (MPI_File file, MPI_Info* info), (file, info), get_info(file, info))
INTERPOSE(File_set_atomicity, (MPI_File file, int atomic), (file, atomic), set_atomicity(file, atomic))
INTERPOSE(File_get_size, (MPI_File file, MPI_Offset* size), (file, size), get_size(file, size))
INTERPOSE(File_seek, (MPI_File file, MPI_Offset offset, int whence), (file, offset, whence), seek(file, offset, whence))

INTERPOSE(File_sync, (MPI_File file), (file), sync(file))
INTERPOSE(File_set_size, (MPI_File file, MPI_Offset size), (file, size), set_size(file, size))
INTERPOSE(File_preallocate, (MPI_File file, MPI_Offset size), (file, size), preallocate(file, size))
INTERPOSE(File_seek_shared, (MPI_File file, MPI_Offset offset, int whence), (file, offset, whence),
          seek_shared(file, offset, whence))
INTERPOSE(File_delete, (char const* name, MPI_Info info), (name, info), delete_file(name, info))

// Collective accesses at an explicit offset and at the individual pointer. COUNT is the type of a count, LARGE the
// suffix of the names with large counts.
#define COLLECTIVE(WAY, CONST, COUNT, LARGE)                                                                        \
    INTERPOSE(                                                                                                      \
        File_##WAY##_at_all##LARGE,                                                                                 \
        (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Status* status), \
        (file, offset, buffer, count, type, status),                                                                \
        collective(file, {Call::WAY##_at_all, Direction::WAY, offset, writable(buffer), count, type}, status, [&] { \
            return mpi_functions().mpi.File_##WAY##_at_all##LARGE(file, offset, buffer, count, type, status);       \
        }))                                                                                                         \
    INTERPOSE(File_##WAY##_all##LARGE,                                                                              \
              (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Status* status),              \
              (file, buffer, count, type, status),                                                                  \
              collective(file, {Call::WAY##_all, Direction::WAY, {}, writable(buffer), count, type}, status, [&] {  \
                  return mpi_functions().mpi.File_##WAY##_all##LARGE(file, buffer, count, type, status);            \
              }))                                                                                                   \
    INTERPOSE(File_##WAY##_at_all_begin##LARGE,                                                                     \
              (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type),               \
              (file, offset, buffer, count, type),                                                                  \
              begin(file, {Call::WAY##_at_all_begin, Direction::WAY, offset, writable(buffer), count, type}, [&] {  \
                  return mpi_functions().mpi.File_##WAY##_at_all_begin##LARGE(file, offset, buffer, count, type);   \
              }))                                                                                                   \
    INTERPOSE(File_##WAY##_all_begin##LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type),   \
              (file, buffer, count, type),                                                                          \
              begin(file, {Call::WAY##_all_begin, Direction::WAY, {}, writable(buffer), count, type},               \
                    [&] { return mpi_functions().mpi.File_##WAY##_all_begin##LARGE(file, buffer, count, type); }))

COLLECTIVE(read, , int, )
COLLECTIVE(write, const, int, )

#define COLLECTIVE_END(WAY, CONST, KIND)                                                          \
    INTERPOSE(File_##WAY##_##KIND##_end, (MPI_File file, void CONST* buffer, MPI_Status* status), \
              (file, buffer, status),                                                             \
              end(file, status, [&] { return mpi_functions().mpi.File_##WAY##_##KIND##_end(file, buffer, status); }))

COLLECTIVE_END(read, , at_all)
COLLECTIVE_END(read, , all)
COLLECTIVE_END(read, , ordered)
COLLECTIVE_END(write, const, at_all)
COLLECTIVE_END(write, const, all)
COLLECTIVE_END(write, const, ordered)

// Accesses that are passed on, unless the file is staged. HOW is one of the functions above.
#define INDEPENDENT(WAY, NAME, HOW, REPLY, CONST, COUNT, LARGE, TYPE, RESULT)                                        \
    INTERPOSE(                                                                                                       \
        File_##NAME##_at##LARGE,                                                                                     \
        (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type, TYPE* RESULT),        \
        (file, offset, buffer, count, type, RESULT),                                                                 \
        HOW(                                                                                                         \
            file, {Call::NAME##_at, Direction::WAY, offset, writable(buffer), count, type},                          \
            [&](AccessOutcome const& outcome) { return REPLY(file, outcome, RESULT); },                              \
            [&] { return mpi_functions().mpi.File_##NAME##_at##LARGE(file, offset, buffer, count, type, RESULT); })) \
    INTERPOSE(File_##NAME##LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, TYPE* RESULT), \
              (file, buffer, count, type, RESULT),                                                                   \
              HOW(                                                                                                   \
                  file, {Call::NAME, Direction::WAY, {}, writable(buffer), count, type},                             \
                  [&](AccessOutcome const& outcome) { return REPLY(file, outcome, RESULT); },                        \
                  [&] { return mpi_functions().mpi.File_##NAME##LARGE(file, buffer, count, type, RESULT); }))

#define AT_SHARED_POINTER(WAY, NAME, REPLY, CONST, COUNT, LARGE, TYPE, RESULT)                                       \
    INTERPOSE(File_##NAME##LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, TYPE* RESULT), \
              (file, buffer, count, type, RESULT),                                                                   \
              shared(                                                                                                \
                  file, {Call::NAME, Direction::WAY, {}, writable(buffer), count, type},                             \
                  [&](AccessOutcome const& outcome) { return REPLY(file, outcome, RESULT); },                        \
                  [&] { return mpi_functions().mpi.File_##NAME##LARGE(file, buffer, count, type, RESULT); }))

#define PASS_ON_BOTH(WAY, CONST, COUNT, LARGE)                                                                        \
    INDEPENDENT(WAY, WAY, independent, answer, CONST, COUNT, LARGE, MPI_Status, status)                               \
    INDEPENDENT(WAY, i##WAY, independent, answer_later, CONST, COUNT, LARGE, MPI_Request, request)                    \
    INTERPOSE(                                                                                                        \
        File_i##WAY##_at_all##LARGE,                                                                                  \
        (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Request* request), \
        (file, offset, buffer, count, type, request),                                                                 \
        nonblocking(                                                                                                  \
            file, {Call::i##WAY##_at_all, Direction::WAY, offset, writable(buffer), count, type}, request,            \
            [&] {                                                                                                     \
                return mpi_functions().mpi.File_i##WAY##_at_all##LARGE(file, offset, buffer, count, type, request);   \
            },                                                                                                        \
            [&] { return mpi_functions().mpi.File_i##WAY##_at##LARGE(file, offset, buffer, count, type, request); })) \
    INTERPOSE(File_i##WAY##_all##LARGE,                                                                               \
              (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Request* request),              \
              (file, buffer, count, type, request),                                                                   \
              nonblocking(                                                                                            \
                  file, {Call::i##WAY##_all, Direction::WAY, {}, writable(buffer), count, type}, request,             \
                  [&] { return mpi_functions().mpi.File_i##WAY##_all##LARGE(file, buffer, count, type, request); },   \
                  [&] { return mpi_functions().mpi.File_i##WAY##LARGE(file, buffer, count, type, request); }))        \
    AT_SHARED_POINTER(WAY, WAY##_shared, answer, CONST, COUNT, LARGE, MPI_Status, status)                             \
    AT_SHARED_POINTER(WAY, i##WAY##_shared, answer_later, CONST, COUNT, LARGE, MPI_Request, request)                  \
    INTERPOSE(File_##WAY##_ordered##LARGE,                                                                            \
              (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Status* status),                \
              (file, buffer, count, type, status),                                                                    \
              ordered(file, {Call::WAY##_ordered, Direction::WAY, {}, writable(buffer), count, type}, status, [&] {   \
                  return mpi_functions().mpi.File_##WAY##_ordered##LARGE(file, buffer, count, type, status);          \
              }))                                                                                                     \
    INTERPOSE(                                                                                                        \
        File_##WAY##_ordered_begin##LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type),       \
        (file, buffer, count, type),                                                                                  \
        ordered_begin(file, {Call::WAY##_ordered_begin, Direction::WAY, {}, writable(buffer), count, type}, [&] {     \
            return mpi_functions().mpi.File_##WAY##_ordered_begin##LARGE(file, buffer, count, type);                  \
        }))

PASS_ON_BOTH(read, , int, )
PASS_ON_BOTH(write, const, int, )

#if MPI_VERSION >= 4
COLLECTIVE(read, , MPI_Count, _c)
COLLECTIVE(write, const, MPI_Count, _c)
PASS_ON_BOTH(read, , MPI_Count, _c)
PASS_ON_BOTH(write, const, MPI_Count, _c)
#endif
// NOLINTEND
