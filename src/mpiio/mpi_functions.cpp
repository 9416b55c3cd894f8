#include "mpiio/mpi_functions.hpp"

#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>
#include <unistd.h>

#include "core/warn.hpp"

namespace tapioca::mpiio {

thread_local int Within::depth = 0;

namespace {

void* find(char const* name)
{
    return ::dlsym(RTLD_NEXT, name);
}

/// A function with this signature, for names that the MPI library lacks.
template <class Result, class... Parameters>
Result missing(Parameters...)
{
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

template <class Result, class... Parameters>
void look_up(Result (*&function)(Parameters...), char const* name)
{
    void* const found = find(name);
    function = found ? reinterpret_cast<Result (*)(Parameters...)>(found) : missing<Result, Parameters...>;
}

MpiFunctions look_all_up()
{
    MpiFunctions all{};
#define X(name)                           \
    look_up(all.next.name, "MPI_" #name); \
    look_up(all.mpi.name, "PMPI_" #name);
    TAPIOCA_TAKEN_OVER(X)
    TAPIOCA_TAKEN_OVER_LARGE(X)
#undef X
    return all;
}

void const* object_of(void const* function)
{
    Dl_info info = {};
    return ::dladdr(function, &info) != 0 ? info.dli_fbase : nullptr;
}

// Name of the library of the other family of MPIs: its handles and constants differ, and nothing would work.
#if defined(OPEN_MPI)
constexpr char const* this_mpi = "Open MPI";
constexpr char const* other_mpi = "MPICH (or a relative of it)";
bool is_foreign(char const* name)
{
    return std::strstr(name, "/libmpich.so") || std::strstr(name, "/libmpi.so.12");
}
#else
constexpr char const* this_mpi = "MPICH";
constexpr char const* other_mpi = "Open MPI";
bool is_foreign(char const* name)
{
    return std::strstr(name, "/libopen-rte.so") || std::strstr(name, "/libopen-pal.so");
}
#endif

int look_for_foreign(dl_phdr_info* info, std::size_t /*bytes*/, void* found)
{
    if (info->dlpi_name && is_foreign(info->dlpi_name)) *static_cast<bool*>(found) = true;
    return 0;
}

/// Runs before main, because a program built for another MPI would crash in its first call.
[[gnu::constructor]] void refuse_foreign()
{
    bool found = false;
    ::dl_iterate_phdr(look_for_foreign, &found);
    if (!found) return;
    core::warn(fmt::format(
        "this libtapioca_mpiio.so is built for {}, but the program uses {}: preload the one built for that MPI",
        this_mpi, other_mpi));
    std::_Exit(2);
}

}  // namespace

MpiFunctions const& mpi_functions()
{
    static MpiFunctions const all = look_all_up();
    return all;
}

bool belongs_to_a_tool(void const* next, void const* mpi)
{
    return object_of(next) != object_of(mpi);
}

}  // namespace tapioca::mpiio
