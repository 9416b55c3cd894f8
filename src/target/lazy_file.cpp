#include "target/lazy_file.hpp"

#include <utility>

#include <fmt/core.h>

#include "core/host.hpp"

namespace tapioca::target {

Target* LazyFile::get()
{
    if (target_) return target_.get();
    auto opened = find();  // what failed before may succeed now
    if (opened)
        keep(std::move(*opened));
    else
        status_ = tl::unexpected(opened.error());
    return target_.get();
}

void LazyFile::keep(std::unique_ptr<Target> found)
{
    status_ = {};
    target_ = target_of(std::move(found));
    if (changes_) target_->tell_changes(changes_);
}

void LazyFile::renew()
{
    if (!target_) return;
    if (auto again = find()) keep(std::move(*again));
}

std::unique_ptr<Target> LazyFile::target_of(std::unique_ptr<Target> found) const
{
    auto target = expected_.made_of ? expected_.made_of(std::move(found)) : std::move(found);
    return expected_.discard ? discard_writes(std::move(target)) : std::move(target);
}

core::Status LazyFile::close()
{
    auto status = target_ ? target_->close() : core::Status();
    target_.reset();
    return status;
}

void LazyFile::tell_changes(std::shared_ptr<Changes> changes)
{
    changes_ = std::move(changes);
    if (target_) target_->tell_changes(changes_);
}

core::Result<std::unique_ptr<Target>> LazyFile::open_again() const
{
    return find().map([&](std::unique_ptr<Target>&& found) {
        return expected_.made_of ? expected_.made_of(std::move(found)) : std::move(found);
    });
}

/// Opens what is under the path, and checks that it is the expected file.
core::Result<std::unique_ptr<Target>> LazyFile::find() const
{
    auto opened = open_file(expected_.path, expected_.access);
    if (!opened) {
        if (opened.error().code == Errc::not_found)
            opened.error().text += fmt::format(
                " on {}; the file that rank 0 has open on {} was removed or renamed: close it "
                "and open it again",
                core::host_name(), expected_.host);
        return opened;
    }
    auto const identity = identity_of((*opened)->descriptor());
    if (!identity) return tl::unexpected(identity.error());
    if (!identity->same_inode(expected_.identity))
        return core::fail(Errc::mismatch,
                          fmt::format("{} finds another file under this name than rank 0 opened on {}: the file was "
                                      "replaced while it was open; close it and open it again",
                                      core::host_name(), expected_.host));
    return opened;
}

}  // namespace tapioca::target
