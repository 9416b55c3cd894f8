// Files and the step of TAPIOCA_Init for C. Each function checks its arguments, tells all ranks the result, and then
// makes the C++ call.
#include <fmt/core.h>

#include "api/c_face.hpp"
#include "api/c_fortran.hpp"
#include "file/opening.hpp"

namespace tapioca::c {

namespace {

constexpr char const* the_file = "the file handle";

Declared& declared_of(TAPIOCA_File file, char const* call)
{
    auto& handle = alive(file, call, the_file);
    if (!handle.declared) refuse(Errc::invalid_state, call, "no step is declared: call TAPIOCA_Init first");
    return *handle.declared;
}

core::Status check_opening(char const* path, int mode, TAPIOCA_File const* file)
{
    auto status = not_null(path, "the path");
    core::keep_first(status, not_null(file, "the pointer for the file handle"));
    if (mode != TAPIOCA_MODE_CREATE && mode != TAPIOCA_MODE_UPDATE && mode != TAPIOCA_MODE_READ)
        core::keep_first(status, core::fail(Errc::invalid_argument,
                                            fmt::format("{} is none of TAPIOCA_MODE_CREATE, _UPDATE and _READ", mode)));
    return status;
}

Mode mode_of(int mode)
{
    return mode == TAPIOCA_MODE_CREATE ? Mode::create : mode == TAPIOCA_MODE_UPDATE ? Mode::update : Mode::read;
}

/// Tells all ranks what is wrong with one rank's arguments while there is no file yet that could do it.
void agree_on_opening(MPI_Comm comm, char const* path, core::Status const& local)
{
    std::string const name = path ? path : "(null)";
    if (!comm::mpi_is_active() || comm::unfit(comm)) {
        if (!local) file::raise(name, "TAPIOCA_Open", local.error());
        return;
    }
    auto const watchdog = file::watch_unopened(comm, "TAPIOCA_Open", name, {}, MPI_INFO_NULL);
    auto const agreed = comm::agree(comm, local);
    if (agreed) return;
    auto const& failure = agreed.error();  // without the path, since ranks may have passed different ones
    throw Error(failure.code, failure.rank, failure.sys_errno, "",
                fmt::format("tapioca: TAPIOCA_Open: rank {}: {}", failure.rank, failure.text));
}

core::Result<std::vector<Declared::DeclaredVariable>> check_declaration(std::int64_t const* count,
                                                                        std::int64_t const* size,
                                                                        std::int64_t const* offset, int nvars)
{
    if (nvars < 0)
        return core::fail(Errc::invalid_argument, fmt::format("{} variables: the number must not be negative", nvars));
    if (nvars > 0 && (!count || !size || !offset))
        return core::fail(Errc::invalid_argument, "an array of counts, type sizes or offsets is null");
    std::vector<Declared::DeclaredVariable> variables;
    variables.reserve(static_cast<std::size_t>(nvars));
    for (int i = 0; i < nvars; ++i) {
        std::int64_t bytes = 0;
        if (count[i] < 0 || size[i] < 1 || offset[i] < 0 || __builtin_mul_overflow(count[i], size[i], &bytes))
            return core::fail(Errc::invalid_argument,
                              fmt::format("variable {}: {} x {} bytes at offset {}", i, count[i], size[i], offset[i]));
        variables.push_back({offset[i], count[i], size[i]});
    }
    return variables;
}

void init(TAPIOCA_File_s& file, core::Result<std::vector<Declared::DeclaredVariable>> variables)
{
    constexpr char const* call = "TAPIOCA_Init";
    core::Status local;
    if (!variables) local = tl::unexpected(variables.error());
    if (file.declared)
        local = core::fail(Errc::invalid_state, "a step is already declared: call TAPIOCA_Finalize first");
    agree(file, call, local);
    Pattern pattern;
    for (auto const& variable : *variables) pattern.add({{variable.offset, variable.count * variable.type_size}});
    auto step = file.file.declare(pattern);
    file.declared = std::make_unique<Declared>(std::move(step), std::move(*variables));
}

/// Fails on every rank if the step of the file is supplied in part or under way on some rank. Collective.
void require_idle(TAPIOCA_File_s& file, char const* call)
{
    agree(file, call, file.declared ? file.declared->idle() : core::Status());
}

}  // namespace
}  // namespace tapioca::c

using namespace tapioca;

int TAPIOCA_Open(MPI_Comm comm, char const* path, int mode, MPI_Info info, TAPIOCA_File* file)
{
    return c::guarded([&] {
        if (file) *file = TAPIOCA_FILE_NULL;
        c::agree_on_opening(comm, path, c::check_opening(path, mode, file));
        *file = c::Handles<TAPIOCA_File_s>::all().give({File::open(comm, path, c::mode_of(mode), {}, info), nullptr});
    });
}

int TAPIOCA_Flush(TAPIOCA_File file)
{
    return c::guarded([&] { c::alive(file, "TAPIOCA_Flush", c::the_file).file.flush(); });
}

int TAPIOCA_Drain(TAPIOCA_File file)
{
    return c::guarded([&] { c::alive(file, "TAPIOCA_Drain", c::the_file).file.drain(); });
}

int TAPIOCA_Sync(TAPIOCA_File file)
{
    return c::guarded([&] { c::alive(file, "TAPIOCA_Sync", c::the_file).file.sync(); });
}

int TAPIOCA_Size(TAPIOCA_File file, int64_t* bytes)
{
    return c::guarded([&] {
        auto& handle = c::alive(file, "TAPIOCA_Size", c::the_file);
        c::agree(handle, "TAPIOCA_Size", c::not_null(bytes, "the pointer for the size"));
        *bytes = static_cast<int64_t>(handle.file.size());
    });
}

int TAPIOCA_Close(TAPIOCA_File* file)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Close";
        auto& handle = c::alive(c::required(file, call, "the pointer to the file handle"), call, c::the_file);
        c::require_idle(handle, call);
        auto const release = [&] {
            if (handle.file.is_open()) return;
            c::give_back(*file, call, c::the_file);
        };
        try {
            handle.file.close();
        } catch (...) {
            release();
            throw;
        }
        release();
    });
}

int TAPIOCA_Release(TAPIOCA_File* file)
{
    return c::guarded([&] {
        constexpr char const* call = "TAPIOCA_Release";
        c::give_back(c::required(file, call, "the pointer to the file handle"), call, c::the_file);
    });
}

int TAPIOCA_Init(TAPIOCA_File file, int64_t const count[], int64_t const type_size[], int64_t const offset[], int nvars)
{
    return c::guarded([&] {
        auto& handle = c::alive(file, "TAPIOCA_Init", c::the_file);
        c::init(handle, c::check_declaration(count, type_size, offset, nvars));
    });
}

int TAPIOCA_Write(TAPIOCA_File file, int64_t offset, void const* data, int64_t count, int64_t type_size,
                  TAPIOCA_Status* status)
{
    return c::guarded([&] {
        c::declared_of(file, "TAPIOCA_Write")
            .supply(declared::Op::write, {offset, count, type_size}, {static_cast<std::byte*>(const_cast<void*>(data))},
                    status);
    });
}

int TAPIOCA_Read(TAPIOCA_File file, int64_t offset, void* data, int64_t count, int64_t type_size,
                 TAPIOCA_Status* status)
{
    return c::guarded([&] {
        c::declared_of(file, "TAPIOCA_Read")
            .supply(declared::Op::read, {offset, count, type_size}, {static_cast<std::byte*>(data)}, status);
    });
}

int TAPIOCA_Start(TAPIOCA_File file)
{
    return c::guarded([&] { c::declared_of(file, "TAPIOCA_Start").split(); });
}

int TAPIOCA_Progress(TAPIOCA_File file, int* done)
{
    return c::guarded([&] {
        auto& declared = c::declared_of(file, "TAPIOCA_Progress");
        c::required(done, "TAPIOCA_Progress", "the pointer for the answer") = declared.progress() ? 1 : 0;
    });
}

int TAPIOCA_Wait(TAPIOCA_File file, TAPIOCA_Moved* moved)
{
    return c::guarded([&] { c::assign(moved, c::declared_of(file, "TAPIOCA_Wait").wait()); });
}

int TAPIOCA_Finalize(TAPIOCA_File file)
{
    return c::guarded([&] {
        (void)c::declared_of(file, "TAPIOCA_Finalize");
        auto& handle = c::alive(file, "TAPIOCA_Finalize", c::the_file);
        c::require_idle(handle, "TAPIOCA_Finalize");
        handle.declared.reset();
    });
}

int TAPIOCA_Step_of(TAPIOCA_File file, TAPIOCA_Step* step)
{
    return c::guarded([&] {
        auto& declared = c::declared_of(file, "TAPIOCA_Step_of");
        c::required(step, "TAPIOCA_Step_of", "the pointer for the step handle") = declared.handle();
    });
}

// For the Fortran module: see c_fortran.hpp.

int tapioca_fortran_open(MPI_Fint comm_f, char const* path, int mode, MPI_Fint info, TAPIOCA_File* file)
{
    bool const active = comm::mpi_is_active();  // otherwise some MPIs end the program in this conversion
    return TAPIOCA_Open(active ? MPI_Comm_f2c(comm_f) : MPI_COMM_NULL, path, mode,
                        active ? MPI_Info_f2c(info) : MPI_INFO_NULL, file);
}

int tapioca_fortran_write(TAPIOCA_File file, int64_t offset, tapioca_fortran_array const* data, int64_t count,
                          int64_t type_size, TAPIOCA_Status* status)
{
    return c::guarded([&] {
        c::declared_of(file, "tapioca_write")
            .supply(declared::Op::write, {offset, count, type_size}, c::memory_of(*data, c::bytes_of(count, type_size)),
                    status);
    });
}

int tapioca_fortran_read(TAPIOCA_File file, int64_t offset, tapioca_fortran_array const* data, int64_t count,
                         int64_t type_size, TAPIOCA_Status* status)
{
    return c::guarded([&] {
        c::declared_of(file, "tapioca_read")
            .supply(declared::Op::read, {offset, count, type_size}, c::memory_of(*data, c::bytes_of(count, type_size)),
                    status);
    });
}
