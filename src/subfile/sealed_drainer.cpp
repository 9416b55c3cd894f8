#include "subfile/sealed_drainer.hpp"

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <sys/statvfs.h>

#include "core/stopwatch.hpp"
#include "subfile/directory_files.hpp"
#include "subfile/set_directory.hpp"

namespace tapioca::subfile {

namespace {

/// What should be free on a tier besides the bytes that are to be written: for the file system itself.
constexpr std::uint64_t spare_bytes = std::uint64_t{1} << 20;

}  // namespace

SealedDrainer::SealedDrainer(Where where, cpu_set_t const& cores)
    : where_(std::move(where)), worker_(cores, [this] {
          std::lock_guard const lock(mutex_);
          if (status_) status_ = tl::unexpected(std::move(lack_));
          draining_ = false;
          launched_ = false;
          changed_.notify_all();
      })
{
}

SealedDrainer::~SealedDrainer()
{
    {
        std::lock_guard const lock(mutex_);
        stop_ = true;
        changed_.notify_all();
    }
    worker_.wait();
}

void SealedDrainer::add(Sealed const& subfile)
{
    std::lock_guard const lock(mutex_);
    auto const same = [&](Sealed const& other) { return other.number == subfile.number; };
    if (std::any_of(waiting_.begin(), waiting_.end(), same)) return;
    launch();
    waiting_.push_back(subfile);
    held_ += subfile.bytes;
    changed_.notify_all();
}

void SealedDrainer::launch()
{
    if (launched_) return;
    auto const status = worker_.launch();
    core::keep_first(status_, status);
    if (!status) return;
    worker_.wait();  // run() may just have ended, for lack of memory
    lack_ = {Errc::memory, 0, -1, "there is not enough memory to drain a subfile"};
    worker_.start([this] { run(); });
    launched_ = true;
}

void SealedDrainer::run()
{
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return stop_ || (!waiting_.empty() && status_); });
        if (stop_) return;
        auto const next = waiting_.front();
        draining_ = true;
        lock.unlock();
        auto const drained = drain(next);
        lock.lock();
        core::keep_first(status_, drained);
        if (drained) {
            waiting_.pop_front();
            held_ -= next.bytes;
        }
        draining_ = false;
        changed_.notify_all();
    }
}

core::Status SealedDrainer::drain(Sealed const& subfile)
{
    double seconds = 0;
    std::uint64_t bytes = 0;
    auto const drained = [&] {
        core::Stopwatch const watch(seconds);
        return drain_subfile({where_.directory, where_.place, where_.identity, subfile.number, EmptyPlace::kept},
                             subfile.writer, [&](std::int64_t more) { bytes += static_cast<std::uint64_t>(more); });
    }();
    std::lock_guard const lock(mutex_);
    counts_.seconds += seconds;
    counts_.bytes += bytes;
    if (!drained) return tl::unexpected(drained.error());
    ++counts_.subfiles;
    return {};
}

bool SealedDrainer::room(std::uint64_t bytes, std::uint64_t held) const
{
    struct statvfs tier = {};
    if (held_ + held + bytes > where_.most) return false;
    auto const wanted = bytes * where_.groups + spare_bytes;
    return ::statvfs(where_.place.c_str(), &tier) == 0 && tier.f_bavail * tier.f_frsize >= wanted;
}

bool SealedDrainer::has_room(std::uint64_t bytes, std::uint64_t held) const
{
    std::lock_guard const lock(mutex_);
    return room(bytes, held);
}

SealedDrainer::Room SealedDrainer::wait_for_room(std::uint64_t bytes, std::uint64_t held)
{
    auto const end = std::chrono::steady_clock::now() + turn;
    std::unique_lock lock(mutex_);
    while (!room(bytes, held)) {
        bool const idle = !draining_ && waiting_.empty();
        if (idle || !status_) return Room::no;
        if (changed_.wait_until(lock, end) == std::cv_status::timeout) return Room::not_yet;
    }
    return Room::yes;
}

bool SealedDrainer::wait_for_end()
{
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, turn, [this] { return !status_ || (waiting_.empty() && !draining_); });
}

core::Status SealedDrainer::status() const
{
    std::lock_guard const lock(mutex_);
    return status_;
}

void SealedDrainer::try_again()
{
    std::lock_guard const lock(mutex_);
    status_ = {};
    if (!waiting_.empty()) launch();
    changed_.notify_all();
}

core::Status SealedDrainer::sync(std::vector<Sealed> const& others)
{
    auto subfiles = [this] {
        std::lock_guard const lock(mutex_);
        return waiting_;
    }();
    subfiles.insert(subfiles.end(), others.begin(), others.end());
    bool synced = false;
    for (auto const& subfile : subfiles) {
        auto const file = open_on_tier(where_.place, subfile.number, O_RDONLY);
        if (!file && file.error().code == Errc::not_found) continue;  // it was drained meanwhile
        auto const status = file ? subfile::sync(file->get(), subfile_name(subfile.number).c_str())
                                 : core::Status(tl::unexpected(file.error()));
        if (!status) return status;
        synced = true;
    }
    if (!synced) return {};
    auto const named = target::sync_directory_of(where_.place + "/" + subfile_name(0));
    return named || named.error().code == Errc::not_found ? core::Status() : named;
}

SealedDrainer::Counts SealedDrainer::counts() const
{
    std::lock_guard const lock(mutex_);
    return counts_;
}

}  // namespace tapioca::subfile
