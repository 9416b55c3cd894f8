#include "core/output.hpp"

#include <algorithm>

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

/// `text` with `escape(bytes)` in place of each control character; those from 0x80 to 0x9f have two bytes in UTF-8.
template <typename Escape>
std::string escape_controls(std::string_view text, Escape const& escape)
{
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
        auto const c = static_cast<unsigned char>(text[i]);
        auto const next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
        bool const second_set = c == 0xc2 && next >= 0x80 && next < 0xa0;
        auto const bytes = text.substr(i, second_set ? 2 : 1);
        result += c < 0x20 || c == 0x7f || second_set ? escape(bytes) : std::string(bytes);
        i += bytes.size();
    }
    return result;
}

/// Three octal digits for each byte: unlike hexadecimal ones, they end where they should in every shell.
std::string in_octal(std::string_view bytes)
{
    std::string result;
    for (unsigned char const c : bytes) result += fmt::format("\\{:03o}", c);
    return result;
}

/// Whether no shell does anything with this character, wherever it is in a word.
bool means_itself(char c)
{
    bool const is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
    return is_letter || (c >= '0' && c <= '9') || std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
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
    return escape_controls(text, [](std::string_view control) {
        return fmt::format("\\x{:02x}", static_cast<unsigned char>(control.back()));
    });
}

std::string shell_word(std::string_view path)
{
    auto const name = (path.starts_with('-') ? "./" : "") + std::string(path);
    bool const has_controls = printable(name) != name;
    if (!has_controls && !name.empty() && std::all_of(name.begin(), name.end(), means_itself)) return name;
    std::string quoted;
    for (char const c : name) {
        if (c == '\'')
            quoted += has_controls ? R"(\')" : R"('\'')";
        else if (c == '\\' && has_controls)
            quoted += R"(\\)";
        else
            quoted += c;
    }
    if (!has_controls) return "'" + quoted + "'";
    return "$'" + escape_controls(quoted, in_octal) + "'";
}

}  // namespace tapioca::core
