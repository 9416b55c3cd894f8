#include "mpiio/file_calls.hpp"

#include <algorithm>
#include <mutex>
#include <set>

#include <fmt/core.h>
#include <unistd.h>

#include "core/output.hpp"
#include "file/on_tier.hpp"
#include "mpiio/diagnostics.hpp"
#include "mpiio/dispatch.hpp"
#include "mpiio/environment.hpp"
#include "mpiio/handle.hpp"
#include "mpiio/handle_table.hpp"
#include "mpiio/mpi_functions.hpp"
#include "mpiio/return_code.hpp"
#include "subfile/set_directory.hpp"

namespace tapioca::mpiio {

namespace {

bool is_set(char const* name)
{
    auto const stub = subfile::find_stub(path_of(name).value_or(name));
    return stub && *stub;
}

/// Says it once for each file.
void tell_unserved(std::string const& name)
{
    static std::mutex mutex;
    static auto& told = *new std::set<std::string>();  // never destroyed: files may be opened while the program exits
    std::lock_guard const lock(mutex);
    if (!told.insert(name).second) return;
    mpiio::tell(
        fmt::format("tapioca: {}: consists of subfiles, and nothing is served (TAPIOCA_OFF=1, or a setting that is "
                    "wrong), so it is not opened: change the setting, or first `tapioca subfile join {}`",
                    core::printable(name), core::shell_word(name)));
}

/// A program that is not served would take a stub for the file, and might write to it.
int refuse_unserved(MPI_Comm comm, char const* name)
{
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    if (rank == 0) tell_unserved(name);
    return raise_unopened(comm, MPI_ERR_UNSUPPORTED_OPERATION);
}

}  // namespace

int open(MPI_Comm comm, char const* name, int amode, MPI_Info info, MPI_File* file)
{
    Within const within;
    if (name && is_off() && is_set(name)) return refuse_unserved(comm, name);
    // A second handle may begin at the end of the file, which may be in this process's log.
    if (auto const other = name && (amode & MPI_MODE_APPEND) && any_logs() ? which(name) : std::nullopt)
        for (auto const& log : logs_of(*other, nullptr)) (void)log->hand_over(Direction::read, false);
    auto const code = mpi_functions().mpi.File_open(comm, name, amode, info, file);
    if (code != MPI_SUCCESS || !name) return code;
    (void)remove(*file);  // the handle was closed without this library noticing
    if (is_off()) return code;
    auto const known = std::make_shared<Handle>(*file, comm, name, amode, info);
    auto const error = known->start(comm);
    if (error != MPI_SUCCESS) {
        mpi_functions().mpi.File_close(file);
        // The file is the one that MPI has just made; it must not be in the way of the next attempt.
        bool const remove_it = (amode & MPI_MODE_EXCL) != 0 && known->opened().first();
        if (auto const path = remove_it ? path_of(name) : std::nullopt) (void)::unlink(path->c_str());
        return raise_unopened(comm, error);
    }
    enter(*file, known);
    return code;
}

int close(MPI_File* file)
{
    auto const known = file ? find(*file) : nullptr;
    bool const removes = known && known->set() && (known->opened().amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
    auto const stub = removes ? subfile::find_stub(known->opened().path) : std::nullopt;
    auto const ours = known ? known->close() : MPI_SUCCESS;  // until then, other handles find its log
    if (known) (void)remove(*file);
    if (ours != MPI_SUCCESS) PMPI_File_call_errhandler(*file, ours);
    Within const within;
    auto const code = mpi_functions().mpi.File_close(file);
    auto const& opened = known ? known->opened().which : std::nullopt;
    if (stub && *stub) file::remove_from_node(**stub);
    if (stub && *stub && opened && known->opened().first())
        (void)subfile::remove_set_of(subfile::beside(known->opened().path, (*stub)->directory), (*stub)->identity,
                                     opened->inode);
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
    if (known && known->set() && atomic) return raise(file, known->set()->refuse("atomic mode is", true));
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
    auto* const set = known ? known->set() : nullptr;
    // The logs first, since a rank may bring its log's bytes to the file meanwhile.
    auto const logged = known ? static_cast<MPI_Offset>(known->log_end()) : 0;
    auto const code = set ? raise(file, set->size(*size)) : mpi_functions().mpi.File_get_size(file, size);
    if (known && code == MPI_SUCCESS) *size = std::max(*size, logged);
    return code;
}

namespace {

/// For a set of subfiles: makes a position that is relative to the end of the file, which the MPI library does not
/// know, an absolute one. Local.
int count_from_begin(Handle& known, MPI_Offset& offset, int& whence)
{
    if (!known.set() || whence != MPI_SEEK_END) return MPI_SUCCESS;
    MPI_Offset end = 0;
    if (auto const error = known.set()->end(end); error != MPI_SUCCESS) return error;
    whence = MPI_SEEK_SET;
    offset += end;
    return MPI_SUCCESS;
}

/// A collective call that the MPI library does after everything was brought into the file. For a set of subfiles,
/// `on_set` does it, and returns an error class; but arguments that cannot be right are the MPI library's to report.
template <class OnSet, class PassOn>
int after_all(MPI_File file, bool durable, MPI_Offset argument, OnSet on_set, PassOn pass_on)
{
    auto const known = find(file);
    if (!known || !known->set() || argument < 0) return after_flush(file, durable, pass_on);
    auto const late = known->flush(durable);
    Within const within;
    auto const error = on_set(*known->set());
    return raise(file, error != MPI_SUCCESS ? error : late);
}

}  // namespace

int seek(MPI_File file, MPI_Offset offset, int whence)
{
    Within const within;
    if (auto const known = find(file); known && whence == MPI_SEEK_END) {
        auto error = known->hand_over(Direction::read);
        if (error == MPI_SUCCESS) error = count_from_begin(*known, offset, whence);
        if (error != MPI_SUCCESS) return raise(file, error);
    }
    return mpi_functions().mpi.File_seek(file, offset, whence);
}

int seek_shared(MPI_File file, MPI_Offset offset, int whence)
{
    auto const pass_on = [&] { return mpi_functions().mpi.File_seek_shared(file, offset, whence); };
    auto const known = find(file);
    if (!known || !known->set()) return after_flush(file, false, pass_on);
    auto const late = known->flush(false);
    Within const within;
    if (whence == MPI_SEEK_END) {
        MPI_Offset end = 0;
        if (auto const error = known->end_for_all(end); error != MPI_SUCCESS) return raise(file, error);
        whence = MPI_SEEK_SET;
        offset += end;
    }
    auto const code = pass_on();
    return code != MPI_SUCCESS ? code : raise(file, late);
}

int sync(MPI_File file)
{
    return after_all(
        file, true, 0, [](SetAccess& set) { return set.sync(); }, [&] { return mpi_functions().mpi.File_sync(file); });
}

int set_size(MPI_File file, MPI_Offset size)
{
    return after_all(
        file, false, size, [&](SetAccess& set) { return set.resize(size, true); },
        [&] { return mpi_functions().mpi.File_set_size(file, size); });
}

int preallocate(MPI_File file, MPI_Offset size)
{
    return after_all(
        file, false, size, [&](SetAccess& set) { return set.resize(size, false); },
        [&] { return mpi_functions().mpi.File_preallocate(file, size); });
}

int delete_file(char const* name, MPI_Info info)
{
    Within const within;
    std::string const path = name ? path_of(name).value_or(name) : std::string();
    auto const stub = path.empty() ? std::nullopt : subfile::find_stub(path);
    auto const directory = stub && *stub ? subfile::beside(path, (*stub)->directory) : std::string();
    if (auto const opened = subfile::open_directory(directory); opened && subfile::is_live(opened->get()))
        return raise_unopened(MPI_COMM_WORLD, MPI_ERR_FILE_IN_USE);
    auto const file = directory.empty() ? std::nullopt : which(path);
    auto const code = mpi_functions().mpi.File_delete(name, info);
    if (code != MPI_SUCCESS || !file) return code;
    (void)subfile::remove_set_of(directory, (*stub)->identity, file->inode);
    file::remove_from_node(**stub);
    return code;
}

}  // namespace tapioca::mpiio
