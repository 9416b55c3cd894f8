#include "stage/files.hpp"

#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept
{
    std::swap(fd_, other.fd_);
    return *this;
}

Descriptor::~Descriptor()
{
    if (fd_ >= 0) ::close(fd_);
}

Mapped::Mapped(Mapped&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0))
{
}

Mapped& Mapped::operator=(Mapped&& other) noexcept
{
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

Mapped::~Mapped()
{
    if (data_) ::munmap(data_, bytes_);
}

core::Result<Mapped> Mapped::of(int fd, std::uint64_t begin, std::uint64_t bytes, bool writable)
{
    Mapped mapped;
    if (bytes == 0) return mapped;
    void* const data = ::mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd,
                              static_cast<off_t>(begin));
    if (data == MAP_FAILED) return core::fail_errno(errno, fmt::format("mapping {} bytes of the log", bytes));
    mapped.data_ = static_cast<std::byte*>(data);
    mapped.bytes_ = bytes;
    return mapped;
}

int Mapped::populate(bool writable) const
{
    if (!data_) return 0;
    return ::madvise(data_, bytes_, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0 ? 0 : errno;
}

core::Result<std::string> directory_of(std::string const& parent, Identity const& identity)
{
    std::error_code error;
    auto const absolute = std::filesystem::absolute(parent, error);
    if (error) return core::fail_errno(error.value(), parent);
    return absolute.lexically_normal().string() + "/tapioca-" + to_hex(identity);
}

core::Result<std::string> make_directory(std::string const& parent, Identity const& identity)
{
    Descriptor const where(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!where) return core::fail_errno(errno, parent);
    auto const name = "tapioca-" + to_hex(identity);
    auto const found_path = directory_of(parent, identity);
    if (!found_path) return found_path;
    auto const& path = *found_path;
    if (::mkdirat(where.get(), name.c_str(), 0700) != 0 && errno != EEXIST) return core::fail_errno(errno, path);
    struct stat found = {};
    if (::fstatat(where.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return core::fail_errno(errno, path);
    if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0)
        return core::fail(Errc::permission, fmt::format("{}: not a directory of ours alone", path));
    return path;
}

core::Status remove_log(Place const& place)
{
    for (auto const& path : {place.meta(), place.data()})
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) return core::fail_errno(errno, path);
    return {};
}

void remove_directory(std::string const& directory)
{
    (void)::unlink((directory + "/full").c_str());
    (void)::rmdir(directory.c_str());
}

core::Result<Descriptor> create_private(std::string const& path)
{
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return core::fail_errno(errno, path);
    return file;
}

core::Result<Descriptor> open_private(std::string const& path, bool writable)
{
    Descriptor file(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file) return core::fail_errno(errno, path);
    struct stat found = {};
    if (::fstat(file.get(), &found) != 0) return core::fail_errno(errno, path);
    if (!S_ISREG(found.st_mode)) return core::fail(Errc::io, path + ": not a plain file");
    if (found.st_uid != ::geteuid())
        return core::fail(Errc::permission, fmt::format("{}: belongs to user {}, not to you", path, found.st_uid));
    if ((found.st_mode & 022) != 0) return core::fail(Errc::permission, path + ": others may write it");
    return file;
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

bool is_held(Descriptor const& file)
{
    auto lock = whole_file(F_WRLCK);
    return ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

core::Result<std::uint64_t> size_of(Descriptor const& file, std::string const& path)
{
    struct stat found = {};
    if (::fstat(file.get(), &found) != 0) return core::fail_errno(errno, path);
    return static_cast<std::uint64_t>(found.st_size);
}

core::Status write_all(int fd, std::uint64_t offset, std::span<std::byte const> bytes)
{
    while (!bytes.empty()) {
        auto const done = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return core::fail_errno(done < 0 ? errno : EIO, "writing the log");
        offset += static_cast<std::uint64_t>(done);
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return {};
}

core::Status read_all(int fd, std::uint64_t offset, std::span<std::byte> bytes)
{
    while (!bytes.empty()) {
        auto const done = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return core::fail_errno(errno, "reading the log");
        if (done == 0) return core::fail(Errc::io, "the log is damaged: it ends too early");
        offset += static_cast<std::uint64_t>(done);
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return {};
}

Lock::Lock(std::string const& directory)
{
    if (directory.empty()) return;
    directory_ = Descriptor(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    while (directory_ && ::flock(directory_.get(), LOCK_EX) != 0 && errno == EINTR) {}
}

Identity new_identity()
{
    Identity identity = {};
    if (::getrandom(identity.data(), identity.size(), 0) != static_cast<ssize_t>(identity.size())) std::abort();
    return identity;
}

}  // namespace tapioca::stage
