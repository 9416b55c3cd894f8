#include "subfile/recover.hpp"

#include <algorithm>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.hpp"
#include "core/output.hpp"
#include "stage/marker.hpp"
#include "subfile/directory_files.hpp"
#include "subfile/set_target.hpp"

namespace tapioca::subfile {

namespace {

/// Whether the open file is the one of this name.
bool is_in(int directory, core::Descriptor const& file, char const* name)
{
    struct stat mine = {};
    struct stat named = {};
    return ::fstat(file.get(), &mine) == 0 && ::fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_ino == named.st_ino;
}

/// What the index says without the journals.
core::Result<ExtentMap> map_of_index(int directory, SetId const& identity)
{
    ExtentMap map;
    auto const file = open_in(directory, index_name, O_RDONLY);
    if (!file && file.error().code == Errc::not_found) return map;
    auto const size = file ? core::size_of(file->get(), index_name) : tl::unexpected(file.error());
    if (!size) return tl::unexpected(size.error());
    std::vector<std::byte> bytes(*size);
    if (auto status = core::read_all(file->get(), 0, bytes, "the index"); !status)
        return tl::unexpected(status.error());
    auto rest = std::span<std::byte const>(bytes).subspan(std::min(bytes.size(), sizeof(SetHead)));
    for (auto record = next_record(rest, seed_of(identity)); !record.empty();) {
        if (auto status = map.add(record); !status) return tl::unexpected(status.error());
        rest = rest.subspan(record.size());
        record = next_record(rest, seed_of(identity));
    }
    return map;
}

/// What the job has written survives a crash of the machine, as the index will.
core::Status sync_data(int directory, WriterNote const& job, ExtentMap const& map)
{
    auto const one = [&](std::string const& name) -> core::Status {
        auto const file = open_in(directory, name.c_str(), O_RDONLY);
        if (!file) return file.error().code == Errc::not_found ? core::Status() : tl::unexpected(file.error());
        return sync(file->get(), name.c_str());
    };
    auto status = one(rest_name);
    for (auto const& [number, bytes] : map.subfiles())
        if (status && number >= job.first_subfile) status = one(subfile_name(number));
    return status;
}

/// Gives the stub the first bytes of the file, as far as they can be read and the stub can be written. Only programs
/// that look at them with plain system calls would miss them. A file with logs does not get them before its logs are
/// recovered, which would take it for changed by others.
void keep_beginning(std::string const& path, Stub const& stub)
{
    if (stage::has_marker(path)) return;
    auto file = target::open_file(path, target::OpenMode::update);
    if (!file) return;
    SetTarget set(std::move(*file), beside(path, stub.directory), stub.identity, target::OpenMode::read);
    (void)set.keep_beginning();
    (void)set.close();
}

core::Failure live(WriterNote const& job)
{
    return {
        Errc::invalid_state, 0, -1,
        fmt::format("a job is writing these subfiles (process {} on {}): wait until it ends", job.process, job.host)};
}

/// The identity of the complete set in a directory.
core::Result<SetId> identity_in_index(int directory)
{
    auto const file = open_in(directory, index_name, O_RDONLY);
    if (!file) return tl::unexpected(file.error());
    SetHead head = {};
    auto const bytes = std::as_writable_bytes(std::span(&head, 1));
    if (auto status = core::read_all(file->get(), 0, bytes, "the index"); !status)
        return tl::unexpected(status.error());
    auto const sound = read_head(bytes, index_magic);
    if (!sound) return tl::unexpected(sound.error());
    return sound->identity;
}

/// The file that had the name `path`, which was removed, if it has its second name; otherwise an empty one.
core::Descriptor restore_name(std::string const& path, int directory)
{
    struct stat around = {};
    mode_t const mode = ::fstat(directory, &around) == 0 ? around.st_mode & 0666 : 0600;
    bool const linked = ::linkat(directory, link_name, AT_FDCWD, path.c_str(), 0) == 0;
    int const flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (linked ? 0 : O_CREAT | O_EXCL);
    return core::Descriptor(core::uninterrupted([&] { return ::open(path.c_str(), flags, mode); }));
}

/// Fails if the open file holds something that is no stub, nor what is left of one.
core::Status check_replaceable(std::string const& path, std::string_view text, int fd, int directory)
{
    struct stat file = {};
    struct stat link = {};
    if (::fstat(fd, &file) != 0) return core::fail_errno(errno, path);
    bool const is_linked =
        ::fstatat(directory, link_name, &link, AT_SYMLINK_NOFOLLOW) == 0 && link.st_ino == file.st_ino;
    bool const has_size = file.st_size == static_cast<off_t>(stub_bytes);
    if (file.st_size == 0 || (has_size && is_linked) || is_of_stub(text)) return {};
    return core::fail(Errc::io, fmt::format("it holds {} B of something else: move it away, and the stub can be made "
                                            "again",
                                            file.st_size));
}

/// Makes the open file a stub, from what is in the directory and what is left of the stub.
core::Status write_again(std::string const& path, StubRemains const& remains, int fd, int directory)
{
    auto const identity = identity_in_index(directory);
    if (!identity) return core::fail(Errc::io, "the stub cannot be made again: " + identity.error().text);
    Stub const stub{*identity, remains.directory, remains.tier};
    if (auto status = check_own_directory(path, stub, fd); !status) return status;
    SetContents contents(directory, *identity);
    if (auto status = contents.refresh(); !status) return status;
    if (contents.state() == SetState::live) return tl::unexpected(live(contents.writer()));
    for (auto const& [number, bytes] : contents.map().subfiles()) {
        auto const subfile = subfile_name(number);
        bool const is_there = ::faccessat(directory, subfile.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        if (!is_there && stub.tier.empty())
            return core::fail(Errc::io, subfile +
                                            " is not in the directory, and the stub no longer says on which tier "
                                            "it may be: the stub cannot be made again");
    }
    auto status = write_stub(fd, stub);
    if (status) status = sync(fd, "the stub");
    if (status) link_stub(path, beside(path, stub.directory));
    if (status) keep_beginning(path, stub);
    return status;
}

core::Failure with_advice(core::Failure failure, std::string const& path)
{
    if (failure.code == Errc::no_space)
        failure.text +=
            fmt::format("; with more room, `tapioca subfile recover {}` completes the set", core::shell_word(path));
    return failure;
}

}  // namespace

core::Status restore_stub(std::string const& path)
{
    core::Descriptor file(core::uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); }));
    if (!file && errno != ENOENT) return core::fail_errno(errno, path);
    std::string text(stub_bytes, '\0');
    auto const read = file ? core::uninterrupted([&] { return ::pread(file.get(), text.data(), text.size(), 0); }) : 0;
    if (read < 0) return core::fail_errno(errno, path);
    text.resize(static_cast<std::size_t>(read));
    auto const remains = salvage(path, text);
    auto const directory = open_directory(beside(path, remains.directory));
    if (!directory) return tl::unexpected(directory.error());
    bool const made = !file;
    if (made) {
        file = restore_name(path, directory->get());
        if (!file) return core::fail_errno(errno, path);
        if (auto const stub = read_stub(file.get()); stub && *stub) return {};
    } else if (auto status = check_replaceable(path, text, file.get(), directory->get()); !status) {
        return status;
    }
    auto const status = write_again(path, remains, file.get(), directory->get());
    if (!status && made) (void)::unlink(path.c_str());
    return status;
}

core::Result<std::optional<Recovered>> recover_set(std::string const& path, Stub const& stub)
{
    auto const directory = open_directory(beside(path, stub.directory));
    if (!directory) return tl::unexpected(directory.error());
    SetContents contents(directory->get(), stub.identity);
    contents.leave_out_lost(!stub.tier.empty());
    if (auto status = contents.refresh(); !status) return tl::unexpected(status.error());
    if (contents.state() == SetState::complete) return std::nullopt;
    if (contents.state() == SetState::live) return tl::unexpected(live(contents.writer()));
    if (contents.writer().generation == 0)
        return core::fail(Errc::io,
                          "its directory has neither an index nor a note of the job that wrote it, so nothing "
                          "says what is in its subfiles: if you have a copy of the directory, put it in its place");
    // The note must stay as it is, because it says which journals count; so the lock is taken without writing one.
    auto const lock = open_in(directory->get(), writer_name, O_RDWR);
    if (!lock) return tl::unexpected(lock.error());
    if (!lock_alone(lock->get())) return tl::unexpected(live(contents.writer()));
    auto const generation = contents.head().generation;
    if (auto status = contents.refresh(); !status) return tl::unexpected(status.error());
    if (!is_in(directory->get(), *lock, writer_name) || contents.head().generation != generation)
        return core::fail(Errc::invalid_state, "another process has changed the set just now: try again");
    auto const before = map_of_index(directory->get(), stub.identity);
    if (!before) return tl::unexpected(before.error());
    Recovered found;
    found.job = contents.writer();
    for (std::uint32_t i = 0; i < found.job.groups; ++i)
        if (::faccessat(directory->get(), journal_name(found.job.first_subfile + i).c_str(), F_OK,
                        AT_SYMLINK_NOFOLLOW) == 0)
            ++found.journals;
    found.chunks = contents.map().chunks() - before->chunks();
    found.data_bytes = contents.map().data_bytes() - before->data_bytes();
    found.lost = contents.lost();
    keep_beginning(path, stub);
    if (auto status = sync_data(directory->get(), found.job, contents.map()); !status)
        return tl::unexpected(status.error());
    if (auto status = complete_set(directory->get(), stub.identity, true,
                                   stub.tier.empty() ? WriterOfSet::died : WriterOfSet::died_on_tier);
        !status)
        return tl::unexpected(with_advice(status.error(), path));
    SetContents after(directory->get(), stub.identity);
    if (auto status = after.refresh(); !status) return tl::unexpected(status.error());
    found.size = after.head().size;
    return found;
}

}  // namespace tapioca::subfile
