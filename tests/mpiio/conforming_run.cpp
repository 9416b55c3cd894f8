// See conforming_run.hpp.
#include "conforming_run.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace conforming {

void Runner::fail(std::string const& what)
{
    if (++failures_ > 3 || quiet_) return;
    auto const text = number_ < program_.operations.size() ? program_.operations[number_].text : "at the end";
    std::fprintf(stderr, "FAILURE seed %llu, rank %d, operation %zu (%s): %s\n",
                 static_cast<unsigned long long>(program_.seed), me_, number_, text.c_str(), what.c_str());
}

void Runner::right(int code, char const* call)
{
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    fail(std::string(call) + ": " + text);
}

void Runner::expect(std::int64_t found, std::int64_t wanted, char const* what)
{
    if (found != wanted) fail(std::string(what) + " is " + std::to_string(found) + ", not " + std::to_string(wanted));
}

void Runner::remove_files() const
{
    for (std::size_t i = 0; i < program_.before.size(); ++i) unlink(path(static_cast<int>(i)).c_str());
    for (auto const& entry : std::filesystem::directory_iterator(directory_)) {
        auto const name = entry.path().filename().string();
        if (name.rfind("conforming.", 0) == 0 && name.find(".tapioca") != std::string::npos)
            unlink(entry.path().c_str());
    }
}

void Runner::prepare() const
{
    if (me_ == 0) {
        remove_files();
        for (std::size_t i = 0; i < program_.before.size(); ++i)
            fuzz::write_file(path(static_cast<int>(i)), {program_.existed[i], program_.before[i]});
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

bool Runner::run()
{
    prepare();
    for (number_ = 0; number_ < program_.operations.size(); ++number_) {
        auto const& operation = program_.operations[number_];
        std::snprintf(fuzz::where_am_i, sizeof fuzz::where_am_i, "seed %llu, operation %zu on rank %d: %.200s",
                      static_cast<unsigned long long>(program_.seed), number_, me_, operation.text.c_str());
        if (talk_ && me_ == 0) std::fprintf(stderr, "  %zu: %s\n", number_, operation.text.c_str());
        if (std::count(operation.members.begin(), operation.members.end(), me_) != 0) perform(operation, number_);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (me_ == 0) look_at_files();
    MPI_Allreduce(MPI_IN_PLACE, &failures_, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me_ == 0) remove_files();
    return failures_ == 0;
}

void Runner::perform(Operation const& operation, std::size_t number)
{
    auto const found = handles_.find(operation.handle);
    auto* file = found == handles_.end() ? MPI_FILE_NULL : found->second;
    auto const mine = std::find_if(operation.parts.begin(), operation.parts.end(),
                                   [&](Part const& part) { return part.rank == me_; });
    MPI_Offset size = -1;
    switch (operation.what) {
    case Do::Open: return open(operation);
    case Do::Close:
        right(MPI_File_close(&file), "close");
        handles_.erase(operation.handle);
        return;
    case Do::View: return set_view(operation, file);
    case Do::Access: return access(operation, file, *mine);
    case Do::Complete: return complete(operation.begun, file);
    case Do::Seek: return right(MPI_File_seek(file, operation.size, MPI_SEEK_SET), "seek");
    case Do::SeekShared: return right(MPI_File_seek_shared(file, operation.size, MPI_SEEK_SET), "seek_shared");
    case Do::SetSize: return right(MPI_File_set_size(file, operation.size), "set_size");
    case Do::Atomicity: return right(MPI_File_set_atomicity(file, static_cast<int>(operation.size)), "set_atomicity");
    case Do::Sync: {
        int amode = 0;
        MPI_File_get_amode(file, &amode);
        auto const code = MPI_File_sync(file);
        if ((amode & MPI_MODE_RDONLY) == 0) right(code, "sync");  // an error there, with ROMIO
        return;
    }
    case Do::Barrier: MPI_Barrier(MPI_COMM_WORLD); return;
    case Do::Size: right(MPI_File_get_size(file, &size), "get_size"); return expect(size, operation.size, "the size");
    case Do::SharedPosition:
        right(MPI_File_get_position_shared(file, &size), "get_position_shared");
        return expect(size, operation.size, "the shared pointer");
    case Do::PosixRead:
    case Do::PosixWrite: return without_mpi(operation, *mine);
    }
    (void)number;
}

void Runner::open(Operation const& operation)
{
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bool const world = static_cast<int>(operation.members.size()) == ranks;
    auto comm = world ? MPI_COMM_WORLD : fuzz::communicator_of(operation.members);
    MPI_File file = MPI_FILE_NULL;
    auto const* const stage = std::getenv("TAPIOCA_STAGE");
    MPI_Info info = MPI_INFO_NULL;
    if (operation.hint && stage) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "tapioca_stage", stage);
    }
    right(MPI_File_open(comm, path(operation.file).c_str(), operation.amode, info, &file), "open");
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    if (comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF) MPI_Comm_free(&comm);
    handles_[operation.handle] = file;
}

void Runner::set_view(Operation const& operation, MPI_File file)
{
    auto const& view = operation.views[static_cast<std::size_t>(me_)];
    fuzz::Committed etype(view.etype);
    fuzz::Committed filetype(view.filetype);
    right(MPI_File_set_view(file, view.displacement, etype.get(), filetype.get(),
                            operation.external32 ? "external32" : "native", MPI_INFO_NULL),
          "set_view");
}

void Runner::access(Operation const& operation, MPI_File file, Part const& part)
{
    auto& running = running_[operation.begun];
    running.part = &part;
    running.access = operation.access;
    running.buffer = part.buffer;
    running.buffer.reserve(1);
    running.type = std::make_unique<fuzz::Committed>(part.type);
    right(fuzz::begin_access(file, operation.access, part.offset, running.buffer.data(), part.count,
                             running.type->get(), &running.status, &running.request),
          "the access");
    auto const how = operation.access.how;
    if (how != How::Blocking && how != How::All) return;
    compare(running, file);
    running_.erase(operation.begun);
}

void Runner::complete(std::size_t begun, MPI_File file)
{
    auto& running = running_[begun];
    if (running.access.how == How::Split)
        right(fuzz::end_split(file, running.access, running.buffer.data(), &running.status), "the end of an access");
    else
        right(MPI_Wait(&running.request, &running.status), "the wait for an access");
    compare(running, file);
    running_.erase(begun);
}

void Runner::compare(Running const& running, MPI_File file)
{
    auto const& part = *running.part;
    if (part.all && part.count > 0) {
        int count = -1;
        MPI_Get_count(&running.status, running.type->get(), &count);
        expect(count, part.count, "the count");
    }
    if (running.access.how == How::Blocking || running.access.how == How::All) {
        MPI_Offset position = -1;
        if (part.position >= 0) {
            MPI_File_get_position(file, &position);
            expect(position, part.position, "the position");
        }
    }
    if (running.access.write)
        expect(running.buffer == part.buffer ? 0 : 1, 0, "a changed buffer of a write");
    else
        compare(part, running.buffer);
}

void Runner::compare(Part const& part, Bytes const& found)
{
    std::size_t wrong = 0;
    std::size_t first = 0;
    for (std::size_t i = part.wanted.size(); i-- > 0;) {
        if (part.sure[i] == 0 || found[i] == part.wanted[i]) continue;
        ++wrong;
        first = i;
    }
    if (wrong != 0)
        fail(std::to_string(wrong) + " of " + std::to_string(part.wanted.size()) + " bytes read are wrong, from " +
             std::to_string(first) + " on");
}

void Runner::without_mpi(Operation const& operation, Part const& part)
{
    int const file = ::open(path(operation.file).c_str(), operation.what == Do::PosixWrite ? O_WRONLY : O_RDONLY);
    auto buffer = part.buffer;
    auto const moved = operation.what == Do::PosixWrite ? ::pwrite(file, buffer.data(), buffer.size(), part.offset)
                                                        : ::pread(file, buffer.data(), buffer.size(), part.offset);
    ::close(file);
    expect(moved, static_cast<std::int64_t>(buffer.size()), "what was moved without MPI");
    if (operation.what == Do::PosixRead && moved == static_cast<std::int64_t>(buffer.size())) compare(part, buffer);
}

void Runner::look_at_files()
{
    for (std::size_t i = 0; i < program_.after.size(); ++i) {
        auto const name = path(static_cast<int>(i));
        auto const found = fuzz::read_file(name);
        expect(found.exists ? 1 : 0, program_.exists[i] ? 1 : 0, "that the file exists");
        expect(std::ssize(found.bytes), std::ssize(program_.after[i]), "the size of the file");
        std::int64_t wrong = 0;
        std::int64_t first = -1;
        for (std::size_t k = 0; k < std::min(found.bytes.size(), program_.after[i].size()); ++k) {
            if (program_.sure[i][k] == 0 || found.bytes[k] == program_.after[i][k]) continue;
            if (wrong++ == 0) first = static_cast<std::int64_t>(k);
        }
        if (wrong != 0)
            fail(std::to_string(wrong) + " bytes of file " + std::to_string(i) + " are wrong, from " +
                 std::to_string(first) + " on");
        if (std::filesystem::exists(name + ".tapioca")) fail("the mark of a log is left beside the file");
    }
}

}  // namespace conforming
