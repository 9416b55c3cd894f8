// MpiFunctions: the MPI library's own functions, in place of which programs call those of this library.
#pragma once

#include <mpi.h>

namespace tapioca::mpiio {

// clang-format off
#define TAPIOCA_TAKEN_OVER(X)                                                                                       \
    X(File_open) X(File_close) X(File_set_view) X(File_set_info) X(File_get_info) X(File_set_atomicity)             \
    X(File_sync) X(File_set_size) X(File_preallocate) X(File_get_size) X(File_seek) X(File_seek_shared)             \
    X(File_delete)                                                                                                  \
    X(File_read_at) X(File_write_at) X(File_iread_at) X(File_iwrite_at)                                             \
    X(File_read) X(File_write) X(File_iread) X(File_iwrite)                                                         \
    X(File_read_shared) X(File_write_shared) X(File_iread_shared) X(File_iwrite_shared)                             \
    X(File_read_at_all) X(File_write_at_all) X(File_iread_at_all) X(File_iwrite_at_all)                             \
    X(File_read_all) X(File_write_all) X(File_iread_all) X(File_iwrite_all)                                         \
    X(File_read_at_all_begin) X(File_read_at_all_end) X(File_write_at_all_begin) X(File_write_at_all_end)           \
    X(File_read_all_begin) X(File_read_all_end) X(File_write_all_begin) X(File_write_all_end)                       \
    X(File_read_ordered) X(File_write_ordered)                                                                      \
    X(File_read_ordered_begin) X(File_read_ordered_end) X(File_write_ordered_begin) X(File_write_ordered_end)       \
    X(Wait) X(Test) X(Waitany) X(Testany) X(Waitall) X(Testall) X(Waitsome) X(Testsome)                             \
    X(Request_get_status) X(Request_free)
#if MPI_VERSION >= 4
#define TAPIOCA_TAKEN_OVER_LARGE(X)                                                                                 \
    X(File_read_at_c) X(File_write_at_c) X(File_iread_at_c) X(File_iwrite_at_c)                                     \
    X(File_read_c) X(File_write_c) X(File_iread_c) X(File_iwrite_c)                                                 \
    X(File_read_shared_c) X(File_write_shared_c) X(File_iread_shared_c) X(File_iwrite_shared_c)                     \
    X(File_read_at_all_c) X(File_write_at_all_c) X(File_iread_at_all_c) X(File_iwrite_at_all_c)                     \
    X(File_read_all_c) X(File_write_all_c) X(File_iread_all_c) X(File_iwrite_all_c)                                 \
    X(File_read_at_all_begin_c) X(File_write_at_all_begin_c) X(File_read_all_begin_c) X(File_write_all_begin_c)     \
    X(File_read_ordered_c) X(File_write_ordered_c) X(File_read_ordered_begin_c) X(File_write_ordered_begin_c)
#else
#define TAPIOCA_TAKEN_OVER_LARGE(X)
#endif
// clang-format on

/// The functions that come after this library's in the order of symbol lookup. `next` has the MPI_ names, which may
/// belong to another tool; `mpi` has the PMPI_ names.
struct MpiFunctions {
#define X(name) decltype(&::MPI_##name) name;
    struct Names {
        TAPIOCA_TAKEN_OVER(X)
        TAPIOCA_TAKEN_OVER_LARGE(X)
    };
#undef X
    Names next;
    Names mpi;
};

/// Looked up at the first call.
MpiFunctions const& mpi_functions();

/// True if `next` belongs not to the MPI library, but to a tool, which will call the PMPI_ name.
bool belongs_to_a_tool(void const* next, void const* mpi);

/// While an object of this class exists, MPI calls of this thread go straight to the MPI library, because they are made
/// by this library or by the MPI library itself.
class Within {
public:
    Within() { ++depth; }
    Within(Within const&) = delete;
    Within& operator=(Within const&) = delete;
    ~Within() { --depth; }
    static bool now() { return depth > 0; }

private:
    static thread_local int depth;
};

}  // namespace tapioca::mpiio
