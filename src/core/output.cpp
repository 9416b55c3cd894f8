#include "core/output.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tapioca::core {

namespace {

/// Whether everybody may create files in the directory of `path`, and only their owners may remove them.
bool is_in_sticky_directory(std::string const& path, struct stat& directory)
{
    auto const slash = path.rfind('/');
    auto const parent = slash == path.npos ? "." : path.substr(0, slash + 1);
    return ::stat(parent.c_str(), &directory) == 0 && (directory.st_mode & S_ISVTX) != 0 &&
           (directory.st_mode & 022) != 0;
}

/// The same rules as the kernel's protected_symlinks, _regular and _fifos.
Status check_owner(std::string const& path, struct stat const& found)
{
    struct stat directory = {};
    if (!is_in_sticky_directory(path, directory)) return {};
    if (S_ISREG(found.st_mode) && found.st_nlink > 1)
        return fail(Errc::permission,
                    path + ": has another name (a hard link), so somebody else may have chosen what is overwritten");
    if (found.st_uid == ::geteuid() || found.st_uid == directory.st_uid) return {};
    return fail(Errc::permission, fmt::format("{}: belongs to user {}, not to you", path, found.st_uid));
}

}  // namespace

Result<int> open_output(std::string const& path)
{
    constexpr int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
    int fd = ::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK, 0666);
    struct stat found = {};
    int const error = errno;
    // Some kernels return EACCES for a link.
    bool const link_or_pipe = fd < 0 && (error == ELOOP || error == ENXIO || error == EACCES);
    if (link_or_pipe) {  // allowed if they belong to this user: a link is followed, and a pipe waits for its reader
        if (::lstat(path.c_str(), &found) != 0) return fail_errno(error, path);
        if (auto status = check_owner(path, found); !status) return tl::unexpected(status.error());
        fd = ::open(path.c_str(), flags, 0666);
    }
    if (fd < 0) return fail_errno(link_or_pipe ? errno : error, path);
    Status status;
    if (::fstat(fd, &found) != 0) status = fail_errno(errno, path);
    if (status && !link_or_pipe) status = check_owner(path, found);
    if (!status) {
        ::close(fd);
        return tl::unexpected(status.error());
    }
    (void)::fcntl(fd, F_SETFL, O_WRONLY);  // from now on, writes wait
    return fd;
}

Status write_output(std::string const& path, std::span<std::byte const> bytes)
{
    auto const fd = open_output(path);
    if (!fd) return tl::unexpected(fd.error());
    struct stat found = {};
    int error = ::fstat(*fd, &found) == 0 ? 0 : errno;
    if (error == 0 && S_ISREG(found.st_mode) && ::ftruncate(*fd, 0) != 0) error = errno;
    while (error == 0 && !bytes.empty()) {
        auto const done = ::write(*fd, bytes.data(), bytes.size());
        if (done >= 0)
            bytes = bytes.subspan(static_cast<std::size_t>(done));
        else if (errno != EINTR)
            error = errno;
    }
    if (::close(*fd) != 0 && error == 0) error = errno;
    if (error != 0) return fail_errno(error, path);
    return {};
}

std::string printable(std::string_view text)
{
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        auto const c = static_cast<unsigned char>(text[i]);
        auto const next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
        bool const second_set = c == 0xc2 && next >= 0x80 && next < 0xa0;  // UTF-8 of 0x80 to 0x9f
        if (c < 0x20 || c == 0x7f || second_set)
            result += fmt::format("\\x{:02x}", second_set ? next : c);
        else
            result += text[i];
        if (second_set) ++i;
    }
    return result;
}

}  // namespace tapioca::core
