#include "core/descriptor.hpp"

#include <cerrno>

#include <sys/resource.h>
#include <sys/stat.h>

namespace tapioca::core {

bool allow_more_descriptors()
{
    constexpr rlim_t more = 4096;
    rlimit limit = {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
    limit.rlim_cur = limit.rlim_max - limit.rlim_cur < more ? limit.rlim_max : limit.rlim_cur + more;
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

Result<std::uint64_t> size_of(int fd, std::string const& path)
{
    struct stat found = {};
    if (::fstat(fd, &found) != 0) return fail_errno(errno, path);
    return static_cast<std::uint64_t>(found.st_size);
}

Status write_all(int fd, std::uint64_t offset, std::span<std::byte const> bytes, char const* what)
{
    while (!bytes.empty()) {
        auto const done = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return fail_errno(done < 0 ? errno : EIO, std::string("writing ") + what);
        offset += static_cast<std::uint64_t>(done);
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return {};
}

Status read_all(int fd, std::uint64_t offset, std::span<std::byte> bytes, char const* what)
{
    while (!bytes.empty()) {
        auto const done = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_errno(errno, std::string("reading ") + what);
        if (done == 0) return fail(Errc::io, std::string(what) + " is damaged: it ends too early");
        offset += static_cast<std::uint64_t>(done);
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return {};
}

}  // namespace tapioca::core
