#include "subfile/set_files.hpp"

#include <algorithm>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/host.hpp"
#include "core/interrupt.hpp"
#include "core/output.hpp"
#include "subfile/directory_files.hpp"
#include "subfile/tier_place.hpp"

namespace tapioca::subfile {

SetFiles::SetFiles(std::string directory, SetId const& identity, target::OpenMode access, std::string on_tier)
    : path_(std::move(directory)), identity_(identity), access_(access), on_tier_(std::move(on_tier))
{
}

core::Status SetFiles::look()
{
    std::lock_guard const lock(mutex_);
    return refresh();
}

core::Result<std::vector<Holding>> SetFiles::find(std::int64_t begin, std::int64_t end)
{
    std::lock_guard const lock(mutex_);
    if (auto status = refresh(); !status) return tl::unexpected(status.error());
    return contents_->map().find(begin, end);
}

core::Result<std::vector<Holding>> SetFiles::find_known(std::int64_t begin, std::int64_t end)
{
    std::lock_guard const lock(mutex_);
    if (!last_look_) return tl::unexpected(last_look_.error());
    return contents_->map().find(begin, end);
}

core::Result<std::int64_t> SetFiles::end_of_chunks()
{
    std::lock_guard const lock(mutex_);
    if (auto status = refresh(); !status) return tl::unexpected(status.error());
    return contents_->map().end();
}

std::string SetFiles::host_of(std::uint32_t number)
{
    std::lock_guard const lock(mutex_);
    return contents_ ? contents_->map().host_of(number) : std::string();
}

core::Result<std::int64_t> SetFiles::size()
{
    auto const end = end_of_chunks();
    if (!end) return end;
    auto const fd = rest(false);
    if (!fd) return tl::unexpected(fd.error());
    if (*fd < 0) return end;
    auto const bytes = core::size_of(*fd, rest_name);
    if (!bytes) return tl::unexpected(bytes.error());
    return std::max(*end, static_cast<std::int64_t>(*bytes));
}

core::Result<int> SetFiles::subfile(std::uint32_t number)
{
    std::lock_guard const lock(mutex_);
    if (auto const known = subfiles_.find(number); known != subfiles_.end()) {
        struct stat file = {};
        bool const drained = !on_tier_.empty() && ::fstat(known->second.get(), &file) == 0 && file.st_nlink == 0;
        if (!drained) return known->second.get();
        leave(number);
    }
    if (auto status = open_directory_once(); !status) return tl::unexpected(status.error());
    auto file = find_subfile(number);
    // A set may have thousands of subfiles, and pieces of all of them may be wanted at once.
    if (!file && file.error().sys_errno == EMFILE && core::allow_more_descriptors()) file = find_subfile(number);
    if (file) return subfiles_.emplace(number, std::move(*file)).first->second.get();
    return tl::unexpected(file.error());
}

core::Status SetFiles::write(std::uint32_t number, std::uint64_t at, std::span<std::byte const> from)
{
    while (true) {
        auto const fd = subfile(number);
        if (!fd) return tl::unexpected(fd.error());
        if (on_tier_.empty()) return core::write_all(*fd, at, from, "a subfile");
        std::lock_guard const writing(writing_);
        wait_for_lock(*fd, Sharing::with_others);
        bool const drained = was_drained(number, *fd);
        auto const status = drained ? core::Status() : core::write_all(*fd, at, from, "a subfile");
        unlock(*fd);
        if (!drained) return status;
        std::lock_guard const lock(mutex_);
        if (auto const known = subfiles_.find(number); known != subfiles_.end() && known->second.get() == *fd)
            leave(number);
    }
}

/// Whether the directory has the subfile now. A drain that was killed at its end may have left the one on the tier.
bool SetFiles::was_drained(std::uint32_t number, int fd) const
{
    struct stat file = {};
    struct stat there = {};
    if (::fstat(fd, &file) != 0) return false;
    if (file.st_nlink == 0) return true;
    auto const name = subfile_name(number);
    bool const is_there = ::fstatat(directory_.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
    return is_there && (there.st_ino != file.st_ino || there.st_dev != file.st_dev);
}

/// The next access opens the subfile again. Other threads may still use the old descriptor.
void SetFiles::leave(std::uint32_t number)
{
    auto const known = subfiles_.find(number);
    drained_.push_back(std::move(known->second));
    subfiles_.erase(known);
}

/// In the directory, or on this node's tier.
core::Result<core::Descriptor> SetFiles::find_subfile(std::uint32_t number) const
{
    auto const name = subfile_name(number);
    auto file = open(name, 0);
    if (file) return file;
    bool const on_tier = !on_tier_.empty() && file.error().code == Errc::not_found;
    if (on_tier) {
        file = open_on_tier(on_tier_, number, access_ == target::OpenMode::read ? O_RDONLY : O_RDWR);
        if (!file && file.error().code == Errc::not_found) file = open(name, 0);  // it may have been drained just now
        if (file || file.error().code != Errc::not_found) return file;
        return core::fail(Errc::not_found, why_not_here(number));
    }
    file.error().text += "; the data in this subfile cannot be read: `tapioca subfile verify` lists it";
    return file;
}

/// Why a subfile is neither in the directory nor on this node's tier.
std::string SetFiles::why_not_here(std::uint32_t number) const
{
    auto const name = subfile_name(number);
    auto const host = contents_ ? contents_->map().host_of(number) : std::string();
    if (host == core::host_name())
        return fmt::format(
            "{} is gone, which this node, {}, has written: the tier was cleared, or its directory {} was "
            "removed or cannot be read; `tapioca target list FILE` shows what is left",
            name, core::printable(host), on_tier_);
    return fmt::format(
        "{} is not on this node{}: a collective read with a rank there reaches it; "
        "`tapioca target drain` brings it to the file system",
        name, host.empty() ? "" : fmt::format(", but on {}", core::printable(host)));
}

core::Result<int> SetFiles::rest(bool make)
{
    std::lock_guard const lock(mutex_);
    if (rest_) return rest_.get();
    if (auto status = open_directory_once(); !status) return tl::unexpected(status.error());
    auto file = open(rest_name, make ? O_CREAT : 0);
    if (!file && !make && file.error().code == Errc::not_found) return -1;
    if (!file) return tl::unexpected(file.error());
    rest_ = std::move(*file);
    return rest_.get();
}

void SetFiles::leave_drained()
{
    std::lock_guard const lock(mutex_);
    std::erase_if(subfiles_, [](auto const& known) {
        struct stat file = {};
        return ::fstat(known.second.get(), &file) == 0 && file.st_nlink == 0;
    });
    drained_.clear();
}

core::Status SetFiles::sync()
{
    std::lock_guard const lock(mutex_);
    core::Status status;
    auto const one = [&](core::Descriptor const& file) {
        if (file && core::uninterrupted([&] { return ::fsync(file.get()); }) != 0)
            core::keep_first(status, core::fail_errno(errno, "fsync"));
    };
    one(rest_);
    for (auto const& [number, file] : subfiles_) one(file);
    if (rest_) one(directory_);  // it may have made this file
    return status;
}

core::Status SetFiles::close()
{
    std::lock_guard const lock(mutex_);
    core::Status status;
    auto const one = [&](core::Descriptor& file) {
        if (file && ::close(file.release()) != 0 && errno != EINTR)
            core::keep_first(status, core::fail_errno(errno, "closing"));
    };
    one(rest_);
    for (auto& [number, file] : subfiles_) one(file);
    subfiles_.clear();
    drained_.clear();
    contents_.reset();
    last_look_ = core::fail(Errc::invalid_state, "the set is closed");
    directory_ = {};
    return status;
}

core::Result<core::Descriptor> SetFiles::open(std::string const& name, int flags) const
{
    int const mode = access_ == target::OpenMode::read ? O_RDONLY : O_RDWR | flags;
    auto file = open_in(directory_.get(), name.c_str(), mode);
    struct stat found = {};
    if (file && ::fstat(file->get(), &found) == 0 && !S_ISREG(found.st_mode))
        file = core::fail(Errc::io, name + " is not a plain file");
    if (!file) file.error().text = path_ + "/" + file.error().text;
    return file;
}

core::Status SetFiles::open_directory_once()
{
    if (directory_) return {};
    auto opened = open_directory(path_);
    if (!opened) return tl::unexpected(opened.error());
    directory_ = std::move(*opened);
    contents_ = std::make_unique<SetContents>(directory_.get(), identity_);
    return {};
}

core::Status SetFiles::refresh()
{
    last_look_ = refresh_contents();
    return last_look_;
}

core::Status SetFiles::refresh_contents()
{
    if (auto status = open_directory_once(); !status) return status;
    if (auto status = contents_->refresh_map(); !status) return status;
    if (contents_->is_there()) return {};
    return core::fail(Errc::invalid_state, path_ +
                                               ": these subfiles were joined, removed or replaced meanwhile: open "
                                               "the file again");
}

}  // namespace tapioca::subfile
