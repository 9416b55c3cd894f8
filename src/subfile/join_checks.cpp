// What a join looks at before it copies anything.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/output.hpp"
#include "subfile/join.hpp"

namespace tapioca::subfile {

/// What is written must not take the place of a directory, of another set, or of a part of this one.
core::Status Join::check_output() const
{
    auto const there = find_stub(result_);
    struct stat file = {};
    struct stat around = {};
    struct stat directory = {};
    if (!there || *there)
        return core::fail(Errc::invalid_state,
                          result_ + " is a set of subfiles, which would be lost: choose another name");
    if (::stat(result_.c_str(), &file) == 0 && !S_ISREG(file.st_mode))
        return core::fail(Errc::invalid_state, result_ + " exists and is not a plain file: choose another name");
    if (::stat(beside(result_, ".").c_str(), &around) == 0 && ::fstat(directory_.get(), &directory) == 0 &&
        around.st_ino == directory.st_ino && around.st_dev == directory.st_dev)
        return core::fail(Errc::invalid_state, result_ + " would be among the subfiles: choose another directory");
    return {};
}

/// Subfiles on tiers are no part of a join: most of them are on other nodes.
core::Status Join::check_drained() const
{
    if (stub_.tier.empty()) return {};
    std::size_t missing = 0;
    auto const& all = contents_.map().subfiles();
    for (auto const& [number, bytes] : all)
        if (::faccessat(directory_.get(), subfile_name(number).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) ++missing;
    if (missing == 0) return {};
    return core::fail(Errc::invalid_state,
                      fmt::format("{} of {} subfiles are on {} of the nodes that wrote them: first `tapioca target "
                                  "drain {}` on each of these",
                                  missing, all.size(), core::printable(stub_.tier), core::shell_word(path_)));
}

/// Says what cannot be read before anything is copied. Whoever works for another user, as root may, takes nothing but
/// that user's files: their directory is not root's, and links in it could lead to anything.
core::Status Join::check_files() const
{
    auto const check = [&](std::string const& name, std::uint64_t least) -> core::Status {
        struct stat file = {};
        auto const path = directory_path_ + "/" + name;
        if (::fstatat(directory_.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0)
            return least == 0 && errno == ENOENT ? core::Status() : core::fail_errno(errno, path);
        if (!S_ISREG(file.st_mode)) return core::fail(Errc::io, path + " is not a plain file");
        if (owner_ != ::geteuid() && file.st_uid != owner_)
            return core::fail(Errc::permission, path + " does not belong to the owner of the file");
        if (static_cast<std::uint64_t>(file.st_size) >= least) return {};
        return core::fail(Errc::io, fmt::format("{} has {} bytes, and the index says {}", path, file.st_size, least));
    };
    if (auto status = check_drained(); !status) return status;
    auto status = check(rest_name, 0);
    for (auto const& [number, bytes] : contents_.map().subfiles())
        if (status) status = check(subfile_name(number), bytes);
    if (!status && status.error().code != Errc::permission)
        status.error().text +=
            fmt::format(": `tapioca subfile verify {}` lists what cannot be read", core::shell_word(path_));
    return status;
}

}  // namespace tapioca::subfile
