// The functions that programs call in place of the MPI library's, under their MPI_ and their PMPI_ names: the Fortran
// bindings of some MPIs reach the latter.
#include <array>

#include "comm/team.hpp"
#include "mpiio/open_file.hpp"
#include "mpiio/originals.hpp"

namespace tapioca::mpiio {

namespace {

/// Never through an implementation's fields.
void fill(MPI_Status* status, std::int64_t bytes)
{
    if (status == MPI_STATUS_IGNORE) return;
    PMPI_Status_set_elements_x(status, MPI_BYTE, bytes);
    PMPI_Status_set_cancelled(status, 0);
}

/// What the program gets for a call that was served, through the file's error handler.
int answer(MPI_File file, Outcome const& outcome, MPI_Status* status)
{
    fill(status, outcome.bytes);
    if (outcome.error != MPI_SUCCESS) PMPI_File_call_errhandler(file, outcome.error);
    return outcome.error;
}

/// A collective call: served, or passed on to the MPI library.
template <class PassOn>
int collective(MPI_File file, Request const& request, MPI_Status* status, PassOn pass_on)
{
    if (auto const known = find(file)) {
        auto const outcome = known->serve(request);
        if (outcome.served) return answer(file, outcome, status);
    }
    Within const within;
    return pass_on();
}

/// The whole of a split call happens at its beginning, which MPI allows.
template <class PassOn>
int begin(MPI_File file, Request const& request, PassOn pass_on)
{
    if (auto const known = find(file)) {
        if (known->split) {
            PMPI_File_call_errhandler(file, MPI_ERR_OTHER);  // one at a time
            return MPI_ERR_OTHER;
        }
        auto const outcome = known->serve(request);
        if (outcome.served) {
            known->split = outcome;
            return MPI_SUCCESS;
        }
    }
    Within const within;
    return pass_on();
}

template <class PassOn>
int end(MPI_File file, MPI_Status* status, PassOn pass_on)
{
    if (auto const known = find(file); known && known->split) {
        auto const outcome = *known->split;
        known->split.reset();
        return answer(file, outcome, status);
    }
    Within const within;
    return pass_on();
}

template <class PassOn>
int passed_on(MPI_File file, Call call, PassOn pass_on)
{
    if (auto const known = find(file)) known->passed(call);
    return pass_on();
}

int open(MPI_Comm comm, char const* name, int amode, MPI_Info info, MPI_File* file)
{
    Within const within;
    auto const code = originals().mpi.File_open(comm, name, amode, info, file);
    if (code != MPI_SUCCESS || !name) return code;
    (void)remove(*file);  // a handle that was closed where we did not see it
    if (!is_off()) enter(*file, std::make_shared<OpenFile>(*file, comm, name, amode, info));
    return code;
}

int close(MPI_File* file)
{
    auto const known = file ? remove(*file) : nullptr;
    auto const ours = known ? known->close() : MPI_SUCCESS;
    if (ours != MPI_SUCCESS) PMPI_File_call_errhandler(*file, ours);
    Within const within;
    auto const code = originals().mpi.File_close(file);
    return ours != MPI_SUCCESS ? ours : code;
}

int set_view(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* datarep,
             MPI_Info info)
{
    Within const within;
    auto const code = originals().mpi.File_set_view(file, displacement, etype, filetype, datarep, info);
    auto const known = find(file);
    if (!known || code != MPI_SUCCESS) return code;
    known->set_view(displacement, etype, filetype, datarep);
    known->set_info(info);
    return code;
}

int set_info(MPI_File file, MPI_Info info)
{
    Within const within;
    auto const code = originals().mpi.File_set_info(file, info);
    if (auto const known = find(file); known && code == MPI_SUCCESS) known->set_info(info);
    return code;
}

int get_info(MPI_File file, MPI_Info* info)
{
    Within const within;
    auto const code = originals().mpi.File_get_info(file, info);
    if (auto const known = find(file); known && code == MPI_SUCCESS) known->add_hints(*info);
    return code;
}

int set_atomicity(MPI_File file, int atomic)
{
    Within const within;
    auto const code = originals().mpi.File_set_atomicity(file, atomic);
    if (auto const known = find(file); known && code == MPI_SUCCESS) known->set_atomicity(atomic != 0);
    return code;
}

/// For Request, which has one member for both directions.
void* writable(void const* buffer)
{
    return const_cast<void*>(buffer);
}

}  // namespace

}  // namespace tapioca::mpiio

// NOLINTBEGIN: the names are MPI's
using namespace tapioca::mpiio;

#define EXPORTED extern "C" [[gnu::visibility("default")]]

// Under the MPI_ name, a tool that comes after this library gets the call first; its own call of the PMPI_ name
// is then served. What the MPI library calls for itself stays there.
#define TAKE_OVER(NAME, PARAMETERS, ARGUMENTS, ...)                                                      \
    static int take_##NAME PARAMETERS                                                                    \
    {                                                                                                    \
        return __VA_ARGS__;                                                                              \
    }                                                                                                    \
    EXPORTED int PMPI_##NAME PARAMETERS                                                                  \
    {                                                                                                    \
        return Within::now() ? originals().mpi.NAME ARGUMENTS : take_##NAME ARGUMENTS;                   \
    }                                                                                                    \
    EXPORTED int MPI_##NAME PARAMETERS                                                                   \
    {                                                                                                    \
        static bool const tool = belongs_to_a_tool(reinterpret_cast<void const*>(originals().next.NAME), \
                                                   reinterpret_cast<void const*>(originals().mpi.NAME)); \
        return tool && !Within::now() ? originals().next.NAME ARGUMENTS : PMPI_##NAME ARGUMENTS;         \
    }

TAKE_OVER(File_open, (MPI_Comm comm, char const* name, int amode, MPI_Info info, MPI_File* file),
          (comm, name, amode, info, file), open(comm, name, amode, info, file))
TAKE_OVER(File_close, (MPI_File * file), (file), close(file))
TAKE_OVER(File_set_view,
          (MPI_File file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, char const* datarep,
           MPI_Info info),
          (file, disp, etype, filetype, datarep, info), set_view(file, disp, etype, filetype, datarep, info))
TAKE_OVER(File_set_info, (MPI_File file, MPI_Info info), (file, info), set_info(file, info))
TAKE_OVER(File_get_info, (MPI_File file, MPI_Info* info), (file, info), get_info(file, info))
TAKE_OVER(File_set_atomicity, (MPI_File file, int atomic), (file, atomic), set_atomicity(file, atomic))

// Collective, at an explicit offset and at the individual pointer. COUNT is the type of a count, LARGE what the names
// with large counts end in.
#define COLLECTIVE(WAY, CONST, COUNT, LARGE)                                                                          \
    TAKE_OVER(                                                                                                        \
        File_##WAY##_at_all##LARGE,                                                                                   \
        (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Status* status),   \
        (file, offset, buffer, count, type, status),                                                                  \
        collective(file, {Call::WAY##_at_all, Direction::WAY, offset, writable(buffer), count, type}, status, [&] {   \
            return originals().mpi.File_##WAY##_at_all##LARGE(file, offset, buffer, count, type, status);             \
        }))                                                                                                           \
    TAKE_OVER(File_##WAY##_all##LARGE,                                                                                \
              (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Status* status),                \
              (file, buffer, count, type, status),                                                                    \
              collective(file, {Call::WAY##_all, Direction::WAY, {}, writable(buffer), count, type}, status,          \
                         [&] { return originals().mpi.File_##WAY##_all##LARGE(file, buffer, count, type, status); })) \
    TAKE_OVER(File_##WAY##_at_all_begin##LARGE,                                                                       \
              (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type),                 \
              (file, offset, buffer, count, type),                                                                    \
              begin(file, {Call::WAY##_at_all_begin, Direction::WAY, offset, writable(buffer), count, type}, [&] {    \
                  return originals().mpi.File_##WAY##_at_all_begin##LARGE(file, offset, buffer, count, type);         \
              }))                                                                                                     \
    TAKE_OVER(File_##WAY##_all_begin##LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type),     \
              (file, buffer, count, type),                                                                            \
              begin(file, {Call::WAY##_all_begin, Direction::WAY, {}, writable(buffer), count, type},                 \
                    [&] { return originals().mpi.File_##WAY##_all_begin##LARGE(file, buffer, count, type); }))

COLLECTIVE(read, , int, )
COLLECTIVE(write, const, int, )

#define COLLECTIVE_END(WAY, CONST, KIND)                                                          \
    TAKE_OVER(File_##WAY##_##KIND##_end, (MPI_File file, void CONST* buffer, MPI_Status* status), \
              (file, buffer, status),                                                             \
              end(file, status, [&] { return originals().mpi.File_##WAY##_##KIND##_end(file, buffer, status); }))

COLLECTIVE_END(read, , at_all)
COLLECTIVE_END(read, , all)
COLLECTIVE_END(read, , ordered)
COLLECTIVE_END(write, const, at_all)
COLLECTIVE_END(write, const, all)
COLLECTIVE_END(write, const, ordered)

// Passed on, and counted.
#define PASS_ON(NAME, LARGE, PARAMETERS, ARGUMENTS)      \
    TAKE_OVER(File_##NAME##LARGE, PARAMETERS, ARGUMENTS, \
              passed_on(file, Call::NAME, [&] { return originals().mpi.File_##NAME##LARGE ARGUMENTS; }))

#define PASS_ON_BOTH(WAY, CONST, COUNT, LARGE)                                                                        \
    PASS_ON(                                                                                                          \
        WAY##_at, LARGE,                                                                                              \
        (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Status* status),   \
        (file, offset, buffer, count, type, status))                                                                  \
    PASS_ON(                                                                                                          \
        i##WAY##_at, LARGE,                                                                                           \
        (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Request* request), \
        (file, offset, buffer, count, type, request))                                                                 \
    PASS_ON(                                                                                                          \
        i##WAY##_at_all, LARGE,                                                                                       \
        (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Request* request), \
        (file, offset, buffer, count, type, request))                                                                 \
    PASS_ON(WAY, LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Status* status),      \
            (file, buffer, count, type, status))                                                                      \
    PASS_ON(WAY##_shared, LARGE,                                                                                      \
            (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Status* status),                  \
            (file, buffer, count, type, status))                                                                      \
    PASS_ON(WAY##_ordered, LARGE,                                                                                     \
            (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Status* status),                  \
            (file, buffer, count, type, status))                                                                      \
    PASS_ON(WAY##_ordered_begin, LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type),          \
            (file, buffer, count, type))                                                                              \
    PASS_ON(i##WAY, LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Request* request), \
            (file, buffer, count, type, request))                                                                     \
    PASS_ON(i##WAY##_shared, LARGE,                                                                                   \
            (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Request* request),                \
            (file, buffer, count, type, request))                                                                     \
    PASS_ON(i##WAY##_all, LARGE,                                                                                      \
            (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Request* request),                \
            (file, buffer, count, type, request))

PASS_ON_BOTH(read, , int, )
PASS_ON_BOTH(write, const, int, )

#if MPI_VERSION >= 4
COLLECTIVE(read, , MPI_Count, _c)
COLLECTIVE(write, const, MPI_Count, _c)
PASS_ON_BOTH(read, , MPI_Count, _c)
PASS_ON_BOTH(write, const, MPI_Count, _c)
#endif
// NOLINTEND
