#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/descriptor.hpp"
#include "core/interrupt.hpp"
#include "core/units.hpp"
#include "machine/tier/kinds.hpp"

namespace tapioca::machine {

namespace {

std::string new_name(std::string const& directory)
{
    return fmt::format("{}/{}", directory, core::new_memory_name());
}

int allocate(int fd, std::uint64_t bytes)
{
    int error = EINTR;
    while (error == EINTR) error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    return error;
}

/// Renames a file, unless there is one called `to`. Returns an errno.
int give_free_name(std::string const& from, std::string const& to)
{
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    if (::link(from.c_str(), to.c_str()) != 0) return errno;  // some file systems do not support the flag
    return ::unlink(from.c_str()) == 0 ? 0 : errno;
}

}  // namespace

TierMapping::TierMapping(std::byte* data, std::uint64_t bytes, std::uint64_t inode)
    : data_(data), bytes_(bytes), inode_(inode)
{
}

TierMapping::TierMapping(TierMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      inode_(std::exchange(other.inode_, 0)),
      name_(std::exchange(other.name_, {})),
      locked_(std::exchange(other.locked_, -1))
{
}

TierMapping& TierMapping::operator=(TierMapping&& other) noexcept
{
    TierMapping taken(std::move(other));
    std::swap(data_, taken.data_);
    std::swap(bytes_, taken.bytes_);
    std::swap(inode_, taken.inode_);
    std::swap(name_, taken.name_);
    std::swap(locked_, taken.locked_);
    return *this;
}

TierMapping::~TierMapping()
{
    unlink();
    if (data_) ::munmap(data_, bytes_);
}

void TierMapping::unlink()
{
    if (!name_.empty() && ::unlink(name_.c_str()) != 0 && errno != ENOENT) return;  // tried again at the end
    name_.clear();
    if (locked_ >= 0) ::close(locked_);
    locked_ = -1;
}

core::Result<core::Descriptor> TierMapping::keep_as(std::string const& path)
{
    (void)::flock(locked_, LOCK_SH | LOCK_NB);
    if (int const error = give_free_name(name_, path); error != 0) return core::fail_errno(error, path);
    name_.clear();
    return core::Descriptor(std::exchange(locked_, -1));
}

void TierMapping::leave()
{
    unlink();
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (data_) (void)::mmap(data_, bytes_, PROT_READ | PROT_WRITE, flags, -1, 0);  // otherwise it stays as it is
    data_ = nullptr;
    bytes_ = 0;
}

core::Status TierMapping::flush() const
{
    if (data_ && ::msync(data_, bytes_, MS_SYNC) != 0)
        return core::fail_errno(errno, fmt::format("flushing {} to its tier", core::format_bytes(bytes_)));
    return {};
}

core::Result<TierMapping> create_file(FileRequest const& request)
{
    auto const& directory = request.directory;
    auto const bytes = request.bytes;
    if (bytes == 0) return TierMapping();
    auto const refuse = [&](int error) {
        auto failed = core::fail_errno(
            error, fmt::format("{} tier: {} in {}", request.tier, core::format_bytes(bytes), directory));
        auto& text = failed.value().text;
        if (error == ENOSPC) text += fmt::format(" ({} free)", core::format_bytes(request.free_bytes));
        bool const fits = failed.value().code != Errc::no_space && failed.value().code != Errc::memory;
        text += ": " + (fits ? "choose another tier or directory with TAPIOCA_AGGRTIER" : request.advice);
        return failed;
    };
    if (bytes > request.free_bytes || bytes > INT64_MAX) return refuse(ENOSPC);

    auto const name = new_name(directory);
    TierMapping mapping;
    mapping.locked_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (mapping.locked_ < 0) return refuse(errno);
    int const fd = mapping.locked_;
    mapping.name_ = name;
    (void)::flock(fd, LOCK_EX | LOCK_NB);  // without locks, nobody removes the file either
    struct stat info = {};
    if (::fstat(fd, &info) != 0) return refuse(errno);
    mapping.inode_ = info.st_ino;
    void* const memory = core::uninterrupted([&] { return ::ftruncate(fd, static_cast<off_t>(bytes)); }) == 0
                             ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                             : MAP_FAILED;
    if (memory == MAP_FAILED) return refuse(errno);
    mapping.data_ = static_cast<std::byte*>(memory);
    mapping.bytes_ = bytes;
    if (request.place)
        if (auto const placed = request.place(mapping.data(), bytes); !placed) return tl::unexpected(placed.error());
    if (int const error = allocate(fd, bytes); error != 0) return refuse(error);
#ifdef MADV_POPULATE_WRITE
    if (request.pages == Pages::now)
        (void)::madvise(memory, bytes, MADV_POPULATE_WRITE);  // older kernels populate at first touch
#endif
    return mapping;
}

core::Result<core::Descriptor> open_file(std::string const& name)
{
    core::Descriptor file(::open(name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file && errno != ELOOP) return core::fail_errno(errno, "opening " + name);
    struct stat info = {};
    if (file && ::fstat(file.get(), &info) != 0) return core::fail_errno(errno, "looking at " + name);
    if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
        return core::fail(Errc::permission, name + ": not a plain file of this user alone: somebody has put it there");
    return file;
}

core::Result<TierMapping> attach_file(std::string const& name, std::uint64_t bytes, Pages pages)
{
    if (bytes == 0) return TierMapping();
    auto const file = open_file(name);
    if (!file) return tl::unexpected(file.error());
    struct stat info = {};
    if (::fstat(file->get(), &info) != 0) return core::fail_errno(errno, "looking at " + name);
    if (static_cast<std::uint64_t>(info.st_size) < bytes)
        return core::fail(Errc::io, fmt::format("{} has only {} of {}", name, info.st_size, bytes));
    // A copy of a file may have holes, for which there may be no room when they are written.
    if (static_cast<std::uint64_t>(info.st_blocks) * 512 < bytes)
        if (int const error = allocate(file->get(), bytes); error != 0)
            return core::fail_errno(error, fmt::format("filling the holes of {}", name));
    int const flags = MAP_SHARED | (pages == Pages::now ? MAP_POPULATE : 0);
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file->get(), 0);
    if (memory == MAP_FAILED)
        return core::fail_errno(errno, fmt::format("mapping {} of {}", core::format_bytes(bytes), name));
    return TierMapping(static_cast<std::byte*>(memory), bytes, info.st_ino);
}

}  // namespace tapioca::machine
