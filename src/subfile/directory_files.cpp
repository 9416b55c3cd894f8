#include "subfile/directory_files.hpp"

#include <charconv>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.hpp"

namespace tapioca::subfile {

core::Result<core::Descriptor> open_in(int directory, char const* name, int flags)
{
    core::Descriptor file(core::uninterrupted(
        [&] { return ::openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666); }));
    if (!file) return core::fail_errno(errno, name);
    if (flags & O_CREAT)
        if (auto status = take_mode(directory, file.get()); !status) {
            if ((flags & O_EXCL) != 0) (void)::unlinkat(directory, name, 0);  // it was made just now
            return tl::unexpected(status.error());
        }
    return file;
}

core::Status take_mode(int directory, int fd)
{
    struct stat around = {};
    struct stat file = {};
    if (::fstat(directory, &around) != 0 || ::fstat(fd, &file) != 0) return core::fail_errno(errno, "a subfile");
    if (file.st_uid != around.st_uid || file.st_gid != around.st_gid)
        (void)!::fchown(fd, around.st_uid, around.st_gid);  // only root can
    auto const mode = around.st_mode & 0666;
    if ((file.st_mode & 0777) != mode && ::fchmod(fd, mode) != 0 && errno != EPERM)  // another user's
        return core::fail_errno(errno, "the permissions of a subfile");
    return {};
}

core::Status give_mode(int directory, int like, mode_t without)
{
    struct stat file = {};
    struct stat now = {};
    if (::fstat(like, &file) != 0 || ::fstat(directory, &now) != 0) return core::fail_errno(errno, "a directory");
    if (now.st_uid != ::geteuid() && now.st_uid != file.st_uid)
        return core::fail(Errc::permission, "the directory for its subfiles belongs to another user");
    auto const mode = file.st_mode & 0777 & ~without;
    if (file.st_uid != now.st_uid || file.st_gid != now.st_gid)
        (void)!::fchown(directory, file.st_uid, file.st_gid);  // only root can
    if (::fchmod(directory, mode | 0700 | (mode & 0444) >> 2) != 0) return core::fail_errno(errno, "a directory");
    return {};
}

bool lock_alone(int fd)
{
    struct flock range = {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    auto const taken = core::uninterrupted([&] { return ::fcntl(fd, F_OFD_SETLK, &range); }) == 0;
    return taken || (errno != EAGAIN && errno != EACCES);  // some file systems have no locks
}

namespace {

/// What fails here fails on file systems without locks.
void lock_or_unlock(int fd, short type)
{
    struct flock range = {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    (void)core::uninterrupted([&] { return ::fcntl(fd, F_OFD_SETLKW, &range); });
}

}  // namespace

void wait_for_lock(int fd, Sharing sharing)
{
    lock_or_unlock(fd, sharing == Sharing::alone ? F_WRLCK : F_RDLCK);
}

void unlock(int fd)
{
    lock_or_unlock(fd, F_UNLCK);
}

bool is_locked(int fd)
{
    struct flock range = {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    return core::uninterrupted([&] { return ::fcntl(fd, F_OFD_GETLK, &range); }) == 0 && range.l_type != F_UNLCK;
}

core::Status sync(int fd, char const* what)
{
    if (core::uninterrupted([&] { return ::fsync(fd); }) != 0 && errno != EINVAL) return core::fail_errno(errno, what);
    return {};
}

std::optional<std::uint32_t> number_in(std::string_view name, std::string_view prefix)
{
    if (!name.starts_with(prefix)) return std::nullopt;
    name.remove_prefix(prefix.size());
    std::uint32_t number = 0;
    auto const [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    return error == std::errc() && rest == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

bool belongs_to_set(std::string_view name)
{
    return name == index_name || name == new_index_name || name == rest_name || name == writer_name ||
           name == link_name || number_in(name, "subfile.") || number_in(name, "journal.") ||
           number_in(name, "draining.");
}

core::Status each_name(int directory, std::function<void(std::string const& name)> const& visit)
{
    core::Descriptor again(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR* const listing = again ? ::fdopendir(again.get()) : nullptr;
    if (!listing) return core::fail_errno(errno, "listing the directory of subfiles");
    (void)again.release();
    std::vector<std::string> names;
    while (auto const* const entry = ::readdir(listing)) names.emplace_back(entry->d_name);
    ::closedir(listing);
    for (auto const& name : names) visit(name);
    return {};
}

std::uint64_t checksum_of(WriterNote const& note)
{
    return stage::checksum_of(&note, offsetof(WriterNote, checksum));
}

}  // namespace tapioca::subfile
