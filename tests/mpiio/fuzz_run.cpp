// See fuzz_run.hpp.
#include "fuzz_run.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

namespace fuzz {
namespace {

int handler_calls = 0;

void count_calls(MPI_File* /*file*/, int* /*code*/, ...)
{
    ++handler_calls;
}

void last_words(int signal)
{
    char text[400];
    auto const length =
        std::snprintf(text, sizeof text, "fuzz: %s in %s\n", signal == SIGALRM ? "no progress" : "a crash", where_am_i);
    if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) {}
    std::signal(signal, SIG_DFL);
    if (signal == SIGALRM) _exit(99);
    std::raise(signal);
}

MPI_Info info_of(std::vector<std::pair<std::string, std::string>> const& hints, bool off)
{
    if (hints.empty() && !off) return MPI_INFO_NULL;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    for (auto const& [key, value] : hints) MPI_Info_set(info, key.c_str(), value.c_str());
    if (off) MPI_Info_set(info, "tapioca", "false");
    return info;
}

}  // namespace

char where_am_i[320] = "before the first case";

void tell_where_it_ends()
{
    for (auto signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGALRM}) std::signal(signal, last_words);
}

MPI_Comm communicator_of(std::vector<int> const& members)
{
    if (members.size() == 1) return MPI_COMM_SELF;
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, &comm);
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    return comm;
}

void Subject::note(int code)
{
    if (code == MPI_SUCCESS) return;
    int error_class = MPI_ERR_UNKNOWN;
    MPI_Error_class(code, &error_class);
    if (seen_.error_class == MPI_SUCCESS) seen_.error_class = error_class;
}

void Subject::open(Step const& step)
{
    auto const world = [&] {
        int size = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        return size == static_cast<int>(step.members.size());
    }();
    bool const duplicate = world && step.members.size() > 1 && step.amode % 2 == 1;
    auto comm = duplicate || !world ? communicator_of(step.members) : MPI_COMM_WORLD;
    auto info = info_of(step.hints, hint_);
    note(MPI_File_open(comm, path_.c_str(), step.amode, info, &file_));
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    if (comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF) MPI_Comm_free(&comm);
    if (step.fails && seen_.error_class != MPI_SUCCESS) file_ = MPI_FILE_NULL;
    amode_ = step.amode;
    if (file_ != MPI_FILE_NULL && handler_) {
        MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
        MPI_File_create_errhandler(count_calls, &handler);
        MPI_File_set_errhandler(file_, handler);
        MPI_Errhandler_free(&handler);
    }
}

void Subject::start(Step const& step, int me)
{
    auto const& part = step.parts[static_cast<std::size_t>(me)];
    seen_ = {};
    request_ = MPI_REQUEST_NULL;
    handler_calls = 0;
    if (!part.takes_part) return;
    switch (step.what) {
    case Do::Open: open(step); break;
    case Do::Close: note(MPI_File_close(&file_)); break;
    case Do::View: {
        Committed etype(part.view.etype);
        Committed filetype(part.view.filetype);
        note(MPI_File_set_view(file_, part.view.displacement, etype.get(), filetype.get(), "native", MPI_INFO_NULL));
        break;
    }
    case Do::Data: hint_&& step.alone == Alone::Direct ? move_directly(step, part) : access(step, part); break;
    case Do::Seek: note(MPI_File_seek(file_, part.offset, part.whence)); break;
    case Do::SeekShared: note(MPI_File_seek_shared(file_, step.size, part.whence)); break;
    case Do::SetSize: note(MPI_File_set_size(file_, step.size)); break;
    case Do::Preallocate: note(MPI_File_preallocate(file_, step.size)); break;
    case Do::Sync: note(MPI_File_sync(file_)); break;
    case Do::Atomicity: note(MPI_File_set_atomicity(file_, static_cast<int>(step.size))); break;
    case Do::SetInfo: {
        auto info = info_of(step.hints, false);
        note(MPI_File_set_info(file_, info));
        MPI_Info_free(&info);
        break;
    }
    case Do::Query: query(part); break;
    case Do::Null: null_file(step); break;
    }
    seen_.handler_calls = handler_calls;
}

void Subject::access(Step const& step, Part const& part)
{
    std::memset(&status_, 0, sizeof status_);
    buffer_ = part.buffer;
    if (packs(step)) {
        packed_ = gather(buffer_, part.origin, bytes_in_memory(*part.type, part.count));
        packed_.reserve(1);
        auto adapted = part;
        adapted.count = static_cast<int>(packed_.size());
        address_ = packed_.data();
        return note(begin(step, adapted, address_, MPI_BYTE));
    }
    held_ = std::make_unique<Committed>(part.type);
    auto* address = buffer_.data() + part.origin;
    auto adapted = part;
    address_ = address;
    MPI_Datatype used = held_->get();
    if (part.bottom) {
        MPI_Aint absolute = 0;
        MPI_Get_address(address, &absolute);
        MPI_Aint const at[1] = {absolute};
        int const lengths[1] = {part.count};
        MPI_Type_create_hindexed(1, lengths, at, held_->get(), &used);
        MPI_Type_commit(&used);
        adapted.count = part.count > 0 ? 1 : part.count;
        address_ = MPI_BOTTOM;
    }
    note(begin(step, adapted, address_, used));
    if (part.bottom) MPI_Type_free(&used);
    if (part.freed_early) held_.reset();
}

bool Subject::packs(Step const& step) const
{
    return hint_ && step.alone == Alone::Packed;
}

/// The access without MPI, but for the pointer.
void Subject::move_directly(Step const& step, Part const& part)
{
    auto const memory = bytes_in_memory(*part.type, part.count);
    buffer_ = part.buffer;
    auto data = gather(buffer_, part.origin, memory);
    auto* next = data.data();
    int const file = ::open(path_.c_str(), step.write ? O_WRONLY : O_RDONLY);
    for (auto const& [at, length] : part.extents) {
        auto const size = static_cast<std::size_t>(length);
        auto const moved = step.write ? ::pwrite(file, next, size, at) : ::pread(file, next, size, at);
        if (moved > 0) seen_.elements += moved;
        if (moved != length) break;
        next += length;
    }
    if (file >= 0) ::close(file);
    if (!step.write) scatter(data, buffer_, part.origin, memory);
    auto const size = part.type->size;
    seen_.count = size == 0 ? 0 : seen_.elements % size == 0 ? seen_.elements / size : MPI_UNDEFINED;
    if (step.where == Where::Individual) MPI_File_seek(file_, part.position, MPI_SEEK_SET);
}

int begin_access(MPI_File f, Access const& step, MPI_Offset at, void* buffer, int n, MPI_Datatype type,
                 MPI_Status* status, MPI_Request* request)
{
    if (step.where == Where::At) {
        if (step.write) switch (step.how) {
            case How::Blocking: return MPI_File_write_at(f, at, buffer, n, type, status);
            case How::Nonblocking: return MPI_File_iwrite_at(f, at, buffer, n, type, request);
            case How::All: return MPI_File_write_at_all(f, at, buffer, n, type, status);
            case How::NonblockingAll: return MPI_File_iwrite_at_all(f, at, buffer, n, type, request);
            case How::Split: return MPI_File_write_at_all_begin(f, at, buffer, n, type);
            }
        switch (step.how) {
        case How::Blocking: return MPI_File_read_at(f, at, buffer, n, type, status);
        case How::Nonblocking: return MPI_File_iread_at(f, at, buffer, n, type, request);
        case How::All: return MPI_File_read_at_all(f, at, buffer, n, type, status);
        case How::NonblockingAll: return MPI_File_iread_at_all(f, at, buffer, n, type, request);
        case How::Split: return MPI_File_read_at_all_begin(f, at, buffer, n, type);
        }
    }
    if (step.where == Where::Individual) {
        if (step.write) switch (step.how) {
            case How::Blocking: return MPI_File_write(f, buffer, n, type, status);
            case How::Nonblocking: return MPI_File_iwrite(f, buffer, n, type, request);
            case How::All: return MPI_File_write_all(f, buffer, n, type, status);
            case How::NonblockingAll: return MPI_File_iwrite_all(f, buffer, n, type, request);
            case How::Split: return MPI_File_write_all_begin(f, buffer, n, type);
            }
        switch (step.how) {
        case How::Blocking: return MPI_File_read(f, buffer, n, type, status);
        case How::Nonblocking: return MPI_File_iread(f, buffer, n, type, request);
        case How::All: return MPI_File_read_all(f, buffer, n, type, status);
        case How::NonblockingAll: return MPI_File_iread_all(f, buffer, n, type, request);
        case How::Split: return MPI_File_read_all_begin(f, buffer, n, type);
        }
    }
    if (step.write) switch (step.how) {
        case How::Blocking: return MPI_File_write_shared(f, buffer, n, type, status);
        case How::Nonblocking: return MPI_File_iwrite_shared(f, buffer, n, type, request);
        case How::Split: return MPI_File_write_ordered_begin(f, buffer, n, type);
        default: return MPI_File_write_ordered(f, buffer, n, type, status);
        }
    switch (step.how) {
    case How::Blocking: return MPI_File_read_shared(f, buffer, n, type, status);
    case How::Nonblocking: return MPI_File_iread_shared(f, buffer, n, type, request);
    case How::Split: return MPI_File_read_ordered_begin(f, buffer, n, type);
    default: return MPI_File_read_ordered(f, buffer, n, type, status);
    }
}

int end_split(MPI_File f, Access const& step, void* buffer, MPI_Status* status)
{
    if (step.where == Where::At)
        return step.write ? MPI_File_write_at_all_end(f, buffer, status) : MPI_File_read_at_all_end(f, buffer, status);
    if (step.where == Where::Individual)
        return step.write ? MPI_File_write_all_end(f, buffer, status) : MPI_File_read_all_end(f, buffer, status);
    return step.write ? MPI_File_write_ordered_end(f, buffer, status) : MPI_File_read_ordered_end(f, buffer, status);
}

int Subject::begin(Step const& step, Part const& part, void* buffer, MPI_Datatype type)
{
    auto const how = hint_ && step.alone_blocks ? How::All : step.how;
    return begin_access(file_, {step.write, step.where, how}, part.offset, buffer, part.count, type, &status_,
                        &request_);
}

Observed Subject::finish(Step const& step, int me)
{
    auto const& part = step.parts[static_cast<std::size_t>(me)];
    if (!part.takes_part) return seen_;
    handler_calls = 0;
    if (step.what == Do::Data && hint_ && step.alone == Alone::Direct) {
        seen_.buffer = buffer_;
    } else if (step.what == Do::Data) {
        bool const begun = seen_.error_class == MPI_SUCCESS;
        if (begun && step.how == How::Split)
            note(end_split(file_, {step.write, step.where, step.how}, address_, &status_));
        if (begun && request_ != MPI_REQUEST_NULL) note(MPI_Wait(&request_, &status_));
        if (seen_.error_class == MPI_SUCCESS) {
            Committed type(part.type);
            int count = 0;
            MPI_Count elements = 0;
            MPI_Get_count(&status_, type.get(), &count);
            MPI_Get_elements_x(&status_, MPI_BYTE, &elements);
            seen_.count = count;
            seen_.elements = elements;
        }
        if (packs(step) && !step.write) scatter(packed_, buffer_, part.origin, bytes_in_memory(*part.type, part.count));
        seen_.buffer = buffer_;
    }
    held_.reset();
    seen_.handler_calls += handler_calls;
    if (file_ != MPI_FILE_NULL && (amode_ & MPI_MODE_SEQUENTIAL) == 0) {
        MPI_Offset position = -1;
        MPI_File_get_position(file_, &position);
        seen_.position = position;
        seen_.has_position = true;
    }
    return seen_;
}

void Subject::query(Part const& part)
{
    MPI_Offset size = -1;
    note(MPI_File_get_size(file_, &size));
    int amode = 0;
    note(MPI_File_get_amode(file_, &amode));
    int atomic = -1;
    note(MPI_File_get_atomicity(file_, &atomic));
    MPI_Offset byte = 0;
    if (part.ask_byte) note(MPI_File_get_byte_offset(file_, part.offset, &byte));
    MPI_Aint extent = -1;
    {
        Committed type(part.type);
        note(MPI_File_get_type_extent(file_, type.get(), &extent));
    }
    MPI_Offset displacement = -1;
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    char representation[MPI_MAX_DATAREP_STRING] = "";
    note(MPI_File_get_view(file_, &displacement, &types[0], &types[1], representation));
    if (std::strcmp(representation, "native") != 0) displacement = -2;
    seen_.values = {size, amode, atomic, byte, extent, displacement};
    for (auto& type : types) {
        int bytes = 0;
        MPI_Aint lower = 0;
        MPI_Aint length = 0;
        MPI_Type_size(type, &bytes);
        MPI_Type_get_extent(type, &lower, &length);
        seen_.values.push_back(bytes);
        seen_.values.push_back(length);
        int ints = 0;
        int addresses = 0;
        int datatypes = 0;
        int combiner = 0;
        MPI_Type_get_envelope(type, &ints, &addresses, &datatypes, &combiner);
        if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&type);
    }
    MPI_Group group = MPI_GROUP_NULL;
    int members = 0;
    note(MPI_File_get_group(file_, &group));
    MPI_Group_size(group, &members);
    MPI_Group_free(&group);
    seen_.values.push_back(members);
    MPI_Info info = MPI_INFO_NULL;
    note(MPI_File_get_info(file_, &info));
    if (info != MPI_INFO_NULL) MPI_Info_free(&info);
}

void Subject::null_file(Step const& step)
{
    char byte = 0;
    MPI_Offset size = 0;
    MPI_File none = MPI_FILE_NULL;
    MPI_Status status;
    switch (step.size) {
    case 0: return note(MPI_File_get_size(none, &size));
    case 1: return note(MPI_File_write(none, &byte, 1, MPI_BYTE, &status));
    case 2: return note(MPI_File_read_at(none, 0, &byte, 1, MPI_BYTE, &status));
    case 3: return note(MPI_File_write_at_all(none, 0, &byte, 1, MPI_BYTE, &status));
    case 4: return note(MPI_File_seek(none, 0, MPI_SEEK_SET));
    default: return note(MPI_File_sync(none));
    }
}

void Subject::seek(std::int64_t position)
{
    MPI_File_seek(file_, position, MPI_SEEK_SET);
}

void Subject::seek_shared(std::int64_t position)
{
    if (file_ != MPI_FILE_NULL) MPI_File_seek_shared(file_, position, MPI_SEEK_SET);
}

std::int64_t Subject::shared_position()
{
    MPI_Offset position = -1;
    if (file_ != MPI_FILE_NULL) MPI_File_get_position_shared(file_, &position);
    return position;
}

bool library_is_loaded(std::string const& path)
{
    MPI_File file = MPI_FILE_NULL;
    if (MPI_File_open(MPI_COMM_SELF, path.c_str(), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                      MPI_INFO_NULL, &file) != MPI_SUCCESS)
        return false;
    MPI_Info info = MPI_INFO_NULL;
    char value[16] = "";
    int found = 0;
    MPI_File_get_info(file, &info);
    if (info != MPI_INFO_NULL) {
        MPI_Info_get(info, "tapioca", static_cast<int>(sizeof value) - 1, value, &found);
        MPI_Info_free(&info);
    }
    MPI_File_close(&file);
    return found != 0 && std::strcmp(value, "true") == 0;
}

void Subject::abandon()
{
    if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
}

}  // namespace fuzz
