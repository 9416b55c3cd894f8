// Result and Status: how local functions report failure. They never communicate and never throw.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tapioca/error.hpp>
#include <tl/expected.hpp>

namespace tapioca::core {

struct Failure {
    Errc code = Errc::ok;
    int sys_errno = 0;
    int rank = -1;     ///< set by the agreement
    std::string text;  ///< what failed, where, and what to do; the rank and the path are added later
};

template <class T>
using Result = tl::expected<T, Failure>;
using Status = Result<void>;

[[nodiscard]] inline tl::unexpected<Failure> fail(Errc code, std::string text)
{
    return tl::unexpected<Failure>(Failure{code, 0, -1, std::move(text)});
}

[[nodiscard]] constexpr Errc errc_of(int sys_errno)
{
    switch (sys_errno) {
    case ENOENT:
    case ENOTDIR: return Errc::not_found;
    case EACCES:
    case EPERM:
    case EROFS: return Errc::permission;
    case EISDIR: return Errc::is_directory;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return Errc::no_space;
    case ENOMEM: return Errc::memory;
    default: return Errc::io;
    }
}

/// A system call's failure: `what` followed by errno's text.
[[nodiscard]] inline tl::unexpected<Failure> fail_errno(int sys_errno, std::string const& what)
{
    return tl::unexpected<Failure>(Failure{errc_of(sys_errno), sys_errno, -1, what + ": " + std::strerror(sys_errno)});
}

/// Encodes a failure as bytes, for another rank. The rank is not included.
std::vector<std::byte> pack(Failure const& failure);
Failure unpack(std::span<std::byte const> bytes);

/// Keeps the first failure, since later ones are its consequences.
inline void keep_first(Status& kept, Status const& next)
{
    if (kept && !next) kept = next;
}

}  // namespace tapioca::core
