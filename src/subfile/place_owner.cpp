#include "subfile/place_owner.hpp"

#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/output.hpp"
#include "subfile/directory_files.hpp"

namespace tapioca::subfile {

namespace {

bool is_stub_of(std::string const& path, SetId const& identity)
{
    auto const stub = find_stub(path);
    return stub && *stub && (*stub)->identity == identity;
}

/// The name that the set's stub has now in the directory `around`; empty: none. Fails if that cannot be said, because a
/// file that may be the stub cannot be read.
core::Result<std::string> find_renamed(std::string const& around, SetId const& identity)
{
    core::Descriptor const directory(::open(around.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory) return core::fail_errno(errno, around);
    std::string found;
    core::Status readable;
    auto const status = each_name(directory.get(), [&](std::string const& name) {
        struct stat file = {};
        bool const may_be = found.empty() &&
                            ::fstatat(directory.get(), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 &&
                            S_ISREG(file.st_mode) && file.st_size == static_cast<off_t>(stub_bytes);
        if (!may_be) return;
        core::Descriptor const opened(
            ::openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
        if (!opened && errno != ENOENT) core::keep_first(readable, core::fail_errno(errno, around + name));
        if (opened && is_stub_of(around + name, identity)) found = around + name;
    });
    if (status && found.empty() && !readable) return tl::unexpected(readable.error());
    if (!status) return tl::unexpected(status.error());
    return found;
}

}  // namespace

PlaceOwner find_owner(TierPlace const& place)
{
    std::string const path = place.entry.path;
    auto const around = path.substr(0, path.rfind('/') + 1);
    struct stat directory = {};
    auto const unknown = [&](std::string const& reason) { return PlaceOwner{Belonging::unknown, path, reason}; };
    if (::stat(around.c_str(), &directory) != 0) return unknown(fmt::format("{}: {}", around, std::strerror(errno)));
    if (is_stub_of(path, place.entry.identity)) return {Belonging::file, path, {}};
    if (place.entry.around != 0 && place.entry.around != directory.st_ino)
        return unknown(around + " is another directory than before: perhaps its file system is not mounted");
    auto const renamed = find_renamed(around, place.entry.identity);
    if (!renamed) return unknown(renamed.error().text);
    if (!renamed->empty()) return {Belonging::file, *renamed, {}};
    struct stat file = {};
    if (::lstat(path.c_str(), &file) != 0)
        return errno == ENOENT ? PlaceOwner{Belonging::gone, path, {}} : unknown(path + ": " + std::strerror(errno));
    auto const stub = find_stub(path);
    bool const readable = ::access(path.c_str(), R_OK) == 0;
    if (!stub || !readable) return unknown(stub ? path + ": cannot be read" : path + ": " + stub.error().text);
    return {Belonging::other, path, {}};
}

std::string original_of(TierPlace const& place, int stub)
{
    auto const owner = find_owner(place);
    struct stat its = {};
    struct stat ours = {};
    bool const other = owner.belonging == Belonging::file && ::stat(owner.path.c_str(), &its) == 0 &&
                       ::fstat(stub, &ours) == 0 && (its.st_ino != ours.st_ino || its.st_dev != ours.st_dev);
    return other ? owner.path : std::string();
}

core::Status check_original(TierPlace const& place, std::string const& path, int stub)
{
    auto const original = original_of(place, stub);
    if (original.empty()) return {};
    return core::fail(
        Errc::invalid_state,
        fmt::format("{} is a copy of {}, to which the data on this node belongs: name that, or remove one of them",
                    core::printable(path), core::printable(original)));
}

void note_moved(TierPlace const& place, std::string const& path)
{
    auto const belonging = find_owner(place).belonging;
    struct stat around = {};
    // A directory that is not found under its old name may just have another one.
    bool const same_directory = belonging == Belonging::unknown && place.entry.around != 0 &&
                                ::stat(path.substr(0, path.rfind('/') + 1).c_str(), &around) == 0 &&
                                around.st_ino == place.entry.around;
    if (belonging == Belonging::gone || belonging == Belonging::other || same_directory) rename_entry(place, path);
}

void remove_orphans(std::string const& place, SetId const& identity)
{
    auto const found = find_tier_place(place, identity);
    if (!found || !*found) return;
    auto const belonging = find_owner(**found).belonging;
    if (belonging == Belonging::gone || belonging == Belonging::other) (void)remove_tier_place(place);
}

}  // namespace tapioca::subfile
