#include "stage/log_files.hpp"

#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.hpp"
#include "stage/leftovers.hpp"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; older kernels refuse it, which is harmless
#define MADV_POPULATE_WRITE 23
#endif

namespace tapioca::stage {

namespace {

struct flock whole_file(short type)
{
    struct flock lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

tl::unexpected<core::Failure> not_ours(std::string const& path)
{
    return core::fail(Errc::permission, fmt::format("{}: not a directory of this user alone", path));
}

/// The directory of a file, and the file's name in it. A job's directory must belong to this user alone and must not be
/// a link; otherwise a user who may rename files in its parent could lead us elsewhere.
struct Whereabouts {
    Descriptor directory;
    std::string name;
    [[nodiscard]] int at() const { return directory ? directory.get() : AT_FDCWD; }
};
core::Result<Whereabouts> find_directory_of(std::string const& path)
{
    auto const slash = path.rfind('/');
    auto const directory = slash == path.npos ? "." : path.substr(0, slash + (slash == 0 ? 1 : 0));
    bool const own = is_job_directory(directory);
    Descriptor opened(core::uninterrupted(
        [&] { return ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | (own ? O_NOFOLLOW : 0)); }));
    if (!opened && own && errno == ENOTDIR) return not_ours(directory);
    bool const too_many = !opened && (errno == EMFILE || errno == ENFILE);  // looking and removing need no descriptor
    if (!opened && !too_many) return core::fail_errno(errno, path);
    struct stat found = {};
    auto const look = [&] { return opened ? ::fstat(opened.get(), &found) : ::lstat(directory.c_str(), &found); };
    if (own && (look() != 0 || !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0))
        return not_ours(directory);
    if (too_many) return Whereabouts{{}, path};
    return Whereabouts{std::move(opened), slash == path.npos ? path : path.substr(slash + 1)};
}

}  // namespace

bool is_job_directory(std::string const& directory)
{
    constexpr std::string_view prefix = "tapioca-";
    auto const name = directory.substr(directory.rfind('/') + 1);
    return name.starts_with(prefix) && name.size() == prefix.size() + 2 * sizeof(OpeningId) &&
           name.find_first_not_of("0123456789abcdef", prefix.size()) == name.npos;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0))
{
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept
{
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

MappedFile::~MappedFile()
{
    if (data_) ::munmap(data_, bytes_);
}

core::Result<MappedFile> MappedFile::of(int fd, std::uint64_t begin, std::uint64_t bytes, bool writable)
{
    MappedFile mapped;
    if (bytes == 0) return mapped;
    void* const data = ::mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd,
                              static_cast<off_t>(begin));
    if (data == MAP_FAILED) return core::fail_errno(errno, fmt::format("mapping {} bytes of the log", bytes));
    mapped.data_ = static_cast<std::byte*>(data);
    mapped.bytes_ = bytes;
    return mapped;
}

int MappedFile::populate(bool writable) const
{
    if (!data_) return 0;
    return ::madvise(data_, bytes_, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0 ? 0 : errno;
}

core::Result<std::string> directory_of(std::string const& parent, OpeningId const& identity)
{
    std::error_code error;
    auto const absolute = std::filesystem::absolute(parent, error);
    if (error) return core::fail_errno(error.value(), parent);
    return absolute.lexically_normal().string() + "/tapioca-" + to_hex(identity);
}

core::Result<std::string> make_directory(std::string const& parent, OpeningId const& identity)
{
    Descriptor const where(
        core::uninterrupted([&] { return ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!where) return core::fail_errno(errno, parent);
    auto const name = "tapioca-" + to_hex(identity);
    auto const found_path = directory_of(parent, identity);
    if (!found_path) return found_path;
    auto const& path = *found_path;
    remove_empty_jobs(parent);
    if (::mkdirat(where.get(), name.c_str(), 0700) != 0 && errno != EEXIST) return core::fail_errno(errno, path);
    struct stat found = {};
    if (::fstatat(where.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return core::fail_errno(errno, path);
    if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) return not_ours(path);
    return path;
}

core::Status remove_private(std::string const& path)
{
    auto const where = find_directory_of(path);
    if (!where && where.error().sys_errno == ENOENT) return {};
    if (!where) return tl::unexpected(where.error());
    int const directory = where->at();
    struct stat found = {};
    if (::fstatat(directory, where->name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? core::Status() : core::fail_errno(errno, path);
    if (found.st_uid != ::geteuid())  // root could open another user's
        return core::fail(Errc::permission, fmt::format("{}: belongs to user {}, not to you", path, found.st_uid));
    if (::unlinkat(directory, where->name.c_str(), 0) != 0 && errno != ENOENT) return core::fail_errno(errno, path);
    return {};
}

core::Status remove_log(LogPlace const& place)
{
    auto status = remove_private(place.meta());
    return status ? remove_private(place.data()) : status;
}

void remove_directory(std::string const& directory)
{
    auto where = find_directory_of(directory + "/full");
    if (!where) where = find_directory_of(directory + "/full");  // nobody will remove what is left
    if (where) (void)::unlinkat(where->at(), "full", 0);
    struct stat found = {};
    if (::lstat(directory.c_str(), &found) == 0 && found.st_uid == ::geteuid()) (void)::rmdir(directory.c_str());
}

core::Status rename_private(std::string const& from, std::string const& to)
{
    auto const where = find_directory_of(from);
    if (!where) return tl::unexpected(where.error());
    auto const name = where->directory ? to.substr(to.rfind('/') + 1) : to;
    int const directory = where->at();
    if (::renameat(directory, where->name.c_str(), directory, name.c_str()) != 0) return core::fail_errno(errno, to);
    return {};
}

core::Result<Descriptor> create_private(std::string const& path)
{
    auto const where = find_directory_of(path);
    if (!where) return tl::unexpected(where.error());
    Descriptor file(core::uninterrupted([&] {
        return ::openat(where->at(), where->name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }));
    if (!file) return core::fail_errno(errno, path);
    return file;
}

core::Result<Descriptor> open_private(std::string const& path, bool writable)
{
    auto const where = find_directory_of(path);
    if (!where) return tl::unexpected(where.error());
    Descriptor file(core::uninterrupted([&] {
        return ::openat(where->at(), where->name.c_str(),
                        (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    }));
    if (!file && errno == ENXIO) return core::fail(Errc::io, path + ": not a plain file");  // for example a socket
    if (!file) return core::fail_errno(errno, path);
    struct stat found = {};
    if (::fstat(file.get(), &found) != 0) return core::fail_errno(errno, path);
    if (!S_ISREG(found.st_mode)) return core::fail(Errc::io, path + ": not a plain file");
    if (found.st_uid != ::geteuid())
        return core::fail(Errc::permission, fmt::format("{}: belongs to user {}, not to you", path, found.st_uid));
    if ((found.st_mode & 022) != 0) return core::fail(Errc::permission, path + ": others may write to it");
    return file;
}

bool is_named(Descriptor const& file, std::string const& path)
{
    struct stat opened = {};
    struct stat named = {};
    auto const where = find_directory_of(path);
    return where && ::fstat(file.get(), &opened) == 0 &&
           ::fstatat(where->at(), where->name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool is_ours(std::string const& path)
{
    struct stat found = {};
    return ::lstat(path.c_str(), &found) == 0 && found.st_uid == ::geteuid();
}

void hold(Descriptor const& file)
{
    auto lock = whole_file(F_RDLCK);
    (void)::fcntl(file.get(), F_OFD_SETLK, &lock);
}

bool hold_alone(Descriptor const& file)
{
    auto lock = whole_file(F_WRLCK);
    return ::fcntl(file.get(), F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

bool hold_for_certain(Descriptor const& file)
{
    auto lock = whole_file(F_WRLCK);
    return ::fcntl(file.get(), F_OFD_SETLK, &lock) == 0;
}

bool is_held(Descriptor const& file)
{
    auto lock = whole_file(F_WRLCK);
    return ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

core::Status write_all(int fd, std::uint64_t offset, std::span<std::byte const> bytes)
{
    return core::write_all(fd, offset, bytes, "the log");
}

core::Status read_all(int fd, std::uint64_t offset, std::span<std::byte> bytes)
{
    return core::read_all(fd, offset, bytes, "the log");
}

Lock::Lock(std::string const& directory)
{
    if (directory.empty()) return;
    auto const links = is_job_directory(directory) ? O_NOFOLLOW : 0;  // another user's could stay locked
    directory_ = Descriptor(
        core::uninterrupted([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | links); }));
    struct stat found = {};
    if (directory_ && (::fstat(directory_.get(), &found) != 0 || found.st_uid != ::geteuid())) directory_ = {};
    while (directory_ && ::flock(directory_.get(), LOCK_EX) != 0 && errno == EINTR) {}
}

OpeningId new_identity()
{
    OpeningId identity = {};
    if (::getrandom(identity.data(), identity.size(), 0) != static_cast<ssize_t>(identity.size())) std::abort();
    return identity;
}

}  // namespace tapioca::stage
