// The functions that programs call in place of the MPI library's, under their MPI_ and their PMPI_ names: the Fortran
// bindings of some MPIs reach the latter.
#include <algorithm>
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

/// Through the file's error handler, if it is an error.
int raise(MPI_File file, int error)
{
    if (error != MPI_SUCCESS) PMPI_File_call_errhandler(file, error);
    return error;
}

/// What the program gets for a call that was served, through the file's error handler.
int answer(MPI_File file, Outcome const& outcome, MPI_Status* status)
{
    fill(status, outcome.bytes);
    return outcome.told ? outcome.error : raise(file, outcome.error);
}

/// A call that the MPI library does on a file that is known. If it is collective, all ranks must come to it, also one
/// on which something went wrong before, which hears of that afterwards.
template <class PassOn>
int pass_on_with(MPI_File file, OpenFile& known, Direction direction, int late, PassOn pass_on)
{
    Within const within;
    auto const code = pass_on();
    known.passed_by(direction);
    return code != MPI_SUCCESS ? code : raise(file, late);
}

/// A collective call: served, or passed on to the MPI library.
template <class PassOn>
int collective(MPI_File file, Request const& request, MPI_Status* status, PassOn pass_on)
{
    if (auto const known = find(file)) {
        auto const outcome = known->serve(request);
        if (outcome.served) return answer(file, outcome, status);
        return pass_on_with(file, *known, request.direction, outcome.late, pass_on);
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
        if (outcome.served && outcome.told && outcome.error != MPI_SUCCESS) return outcome.error;
        if (outcome.served) {
            known->split = outcome;
            return MPI_SUCCESS;
        }
        return pass_on_with(file, *known, request.direction, outcome.late, pass_on);
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

extern "C" {
int tell_outcome(void* bytes, MPI_Status* status)
{
    fill(status, *static_cast<std::int64_t*>(bytes));
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
int forget_outcome(void* bytes)
{
    delete static_cast<std::int64_t*>(bytes);
    return MPI_SUCCESS;
}
int never_cancel(void* /*bytes*/, int /*complete*/)
{
    return MPI_SUCCESS;
}
}

/// What the program gets for a nonblocking call that was served: a request that is complete.
int answer_later(MPI_File file, Outcome const& outcome, MPI_Request* request)
{
    *request = MPI_REQUEST_NULL;
    if (outcome.error != MPI_SUCCESS) return answer(file, outcome, MPI_STATUS_IGNORE);
    auto const code =
        PMPI_Grequest_start(tell_outcome, forget_outcome, never_cancel, new std::int64_t(outcome.bytes), request);
    return code == MPI_SUCCESS ? PMPI_Grequest_complete(*request) : code;
}

/// An independent access: served where the file is staged. `reply` tells the program of the outcome then.
template <class Reply, class PassOn>
int independent(MPI_File file, Request const& request, Reply reply, PassOn pass_on)
{
    auto const known = find(file);
    if (!known) return pass_on();
    auto const outcome = known->serve_alone(request);
    return outcome.served ? reply(outcome) : pass_on_with(file, *known, request.direction, MPI_SUCCESS, pass_on);
}

/// A nonblocking collective call. It must not wait for other ranks: of a staged file, a write is logged and a read is
/// that of one rank alone, `pass_on_alone` where the logs have nothing to do with it; else it is passed on.
template <class PassOn, class PassOnAlone>
int nonblocking(MPI_File file, Request const& request, MPI_Request* handle, PassOn pass_on, PassOnAlone pass_on_alone)
{
    auto const known = find(file);
    if (!known) return pass_on();
    bool const staged = known->is_staged();
    if (!staged && !known->is_alone()) {
        known->passed(request.call);
        return pass_on_with(file, *known, request.direction, known->hand_over(request.direction), pass_on);
    }
    bool const logged = staged && request.direction == Direction::write;
    auto const outcome = logged ? known->serve(request) : known->serve_alone(request);
    if (outcome.served) return answer_later(file, outcome, handle);
    return staged ? pass_on_alone() : pass_on_with(file, *known, request.direction, MPI_SUCCESS, pass_on);
}

/// An independent access at the shared pointer.
template <class PassOn>
int shared(MPI_File file, Request const& request, PassOn pass_on)
{
    auto const known = find(file);
    if (!known) return pass_on();
    known->passed(request.call);
    auto const error = known->hand_over(request.direction);
    return error != MPI_SUCCESS ? raise(file, error)
                                : pass_on_with(file, *known, request.direction, MPI_SUCCESS, pass_on);
}

/// A collective call that the MPI library does, on a file in which everything is.
template <class PassOn>
int after_flush(MPI_File file, bool durable, PassOn pass_on)
{
    auto const known = find(file);
    if (!known) {
        Within const within;
        return pass_on();
    }
    bool const together = known->has_stage();
    auto const late = known->flush(durable);
    if (together && late != MPI_SUCCESS) return raise(file, late);
    return pass_on_with(file, *known, Direction::write, late, pass_on);
}

/// The same for a data access.
template <class PassOn>
int ordered(MPI_File file, Request const& request, PassOn pass_on)
{
    if (auto const known = find(file)) known->passed(request.call);
    return after_flush(file, false, pass_on);
}

int open(MPI_Comm comm, char const* name, int amode, MPI_Info info, MPI_File* file)
{
    Within const within;
    // A second handle may begin at the end of the file, which is where this process's log ends.
    if (auto const other = name && (amode & MPI_MODE_APPEND) && any_staged() ? which(name) : std::nullopt)
        for (auto const& known : staged_handles_of(*other, nullptr)) (void)known->hand_over(Direction::read);
    auto const code = originals().mpi.File_open(comm, name, amode, info, file);
    if (code != MPI_SUCCESS || !name) return code;
    (void)remove(*file);  // a handle that was closed where we did not see it
    if (is_off()) return code;
    auto const known = std::make_shared<OpenFile>(*file, comm, name, amode, info);
    known->start();
    enter(*file, known);
    return code;
}

int close(MPI_File* file)
{
    auto const known = file ? find(*file) : nullptr;
    auto const ours = known ? known->close() : MPI_SUCCESS;  // until then other handles find its log
    if (known) (void)remove(*file);
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
    auto const code = originals().mpi.File_set_info(file, info);
    auto const known = find(file);
    if (!known) return code;
    if (code == MPI_SUCCESS) known->set_info(info);
    auto const error = known->settle();
    return code != MPI_SUCCESS ? code : raise(file, error);
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
    auto const known = find(file);
    bool const together = known && known->has_stage();
    auto const error = known ? known->flush(false) : MPI_SUCCESS;
    if (together && error != MPI_SUCCESS) return raise(file, error);  // the mode stays
    auto const code = originals().mpi.File_set_atomicity(file, atomic);
    if (known && code == MPI_SUCCESS) known->set_atomicity(atomic != 0);
    return code != MPI_SUCCESS ? code : raise(file, error);
}

int get_size(MPI_File file, MPI_Offset* size)
{
    Within const within;
    auto const known = find(file);
    if (known && !known->is_staged())
        if (auto const error = known->hand_over(Direction::read); error != MPI_SUCCESS) return raise(file, error);
    auto const code = originals().mpi.File_get_size(file, size);
    if (known && code == MPI_SUCCESS) *size = std::max(*size, static_cast<MPI_Offset>(known->staged_end()));
    return code;
}

int seek(MPI_File file, MPI_Offset offset, int whence)
{
    Within const within;
    if (auto const known = find(file); known && whence == MPI_SEEK_END)
        if (auto const error = known->hand_over(Direction::read); error != MPI_SUCCESS) return raise(file, error);
    return originals().mpi.File_seek(file, offset, whence);
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
TAKE_OVER(File_get_size, (MPI_File file, MPI_Offset* size), (file, size), get_size(file, size))
TAKE_OVER(File_seek, (MPI_File file, MPI_Offset offset, int whence), (file, offset, whence), seek(file, offset, whence))

// Collective, and no data accesses.
#define AFTER_FLUSH(NAME, DURABLE, PARAMETERS, ARGUMENTS) \
    TAKE_OVER(File_##NAME, PARAMETERS, ARGUMENTS,         \
              after_flush(file, DURABLE, [&] { return originals().mpi.File_##NAME ARGUMENTS; }))

AFTER_FLUSH(sync, true, (MPI_File file), (file))
AFTER_FLUSH(set_size, false, (MPI_File file, MPI_Offset size), (file, size))
AFTER_FLUSH(preallocate, false, (MPI_File file, MPI_Offset size), (file, size))
AFTER_FLUSH(seek_shared, false, (MPI_File file, MPI_Offset offset, int whence), (file, offset, whence))

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

// Those that are passed on, unless the file is staged. HOW is one of the functions above.
#define INDEPENDENT(WAY, NAME, HOW, REPLY, CONST, COUNT, LARGE, TYPE, RESULT)                                          \
    TAKE_OVER(File_##NAME##_at##LARGE,                                                                                 \
              (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type, TYPE* RESULT),    \
              (file, offset, buffer, count, type, RESULT),                                                             \
              HOW(                                                                                                     \
                  file, {Call::NAME##_at, Direction::WAY, offset, writable(buffer), count, type},                      \
                  [&](Outcome const& outcome) { return REPLY(file, outcome, RESULT); },                                \
                  [&] { return originals().mpi.File_##NAME##_at##LARGE(file, offset, buffer, count, type, RESULT); })) \
    TAKE_OVER(File_##NAME##LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, TYPE* RESULT),   \
              (file, buffer, count, type, RESULT),                                                                     \
              HOW(                                                                                                     \
                  file, {Call::NAME, Direction::WAY, {}, writable(buffer), count, type},                               \
                  [&](Outcome const& outcome) { return REPLY(file, outcome, RESULT); },                                \
                  [&] { return originals().mpi.File_##NAME##LARGE(file, buffer, count, type, RESULT); }))

#define AT_SHARED_POINTER(WAY, NAME, HOW, CONST, COUNT, LARGE, TYPE, RESULT)                                         \
    TAKE_OVER(File_##NAME##LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, TYPE* RESULT), \
              (file, buffer, count, type, RESULT),                                                                   \
              HOW(file, {Call::NAME, Direction::WAY, {}, writable(buffer), count, type},                             \
                  [&] { return originals().mpi.File_##NAME##LARGE(file, buffer, count, type, RESULT); }))

#define PASS_ON_BOTH(WAY, CONST, COUNT, LARGE)                                                                        \
    INDEPENDENT(WAY, WAY, independent, answer, CONST, COUNT, LARGE, MPI_Status, status)                               \
    INDEPENDENT(WAY, i##WAY, independent, answer_later, CONST, COUNT, LARGE, MPI_Request, request)                    \
    TAKE_OVER(                                                                                                        \
        File_i##WAY##_at_all##LARGE,                                                                                  \
        (MPI_File file, MPI_Offset offset, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Request* request), \
        (file, offset, buffer, count, type, request),                                                                 \
        nonblocking(                                                                                                  \
            file, {Call::i##WAY##_at_all, Direction::WAY, offset, writable(buffer), count, type}, request,            \
            [&] { return originals().mpi.File_i##WAY##_at_all##LARGE(file, offset, buffer, count, type, request); },  \
            [&] { return originals().mpi.File_i##WAY##_at##LARGE(file, offset, buffer, count, type, request); }))     \
    TAKE_OVER(File_i##WAY##_all##LARGE,                                                                               \
              (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type, MPI_Request* request),              \
              (file, buffer, count, type, request),                                                                   \
              nonblocking(                                                                                            \
                  file, {Call::i##WAY##_all, Direction::WAY, {}, writable(buffer), count, type}, request,             \
                  [&] { return originals().mpi.File_i##WAY##_all##LARGE(file, buffer, count, type, request); },       \
                  [&] { return originals().mpi.File_i##WAY##LARGE(file, buffer, count, type, request); }))            \
    AT_SHARED_POINTER(WAY, WAY##_shared, shared, CONST, COUNT, LARGE, MPI_Status, status)                             \
    AT_SHARED_POINTER(WAY, i##WAY##_shared, shared, CONST, COUNT, LARGE, MPI_Request, request)                        \
    AT_SHARED_POINTER(WAY, WAY##_ordered, ordered, CONST, COUNT, LARGE, MPI_Status, status)                           \
    TAKE_OVER(File_##WAY##_ordered_begin##LARGE, (MPI_File file, void CONST* buffer, COUNT count, MPI_Datatype type), \
              (file, buffer, count, type),                                                                            \
              ordered(file, {Call::WAY##_ordered_begin, Direction::WAY, {}, writable(buffer), count, type},           \
                      [&] { return originals().mpi.File_##WAY##_ordered_begin##LARGE(file, buffer, count, type); }))

PASS_ON_BOTH(read, , int, )
PASS_ON_BOTH(write, const, int, )

#if MPI_VERSION >= 4
COLLECTIVE(read, , MPI_Count, _c)
COLLECTIVE(write, const, MPI_Count, _c)
PASS_ON_BOTH(read, , MPI_Count, _c)
PASS_ON_BOTH(write, const, MPI_Count, _c)
#endif
// NOLINTEND
