#include "subfile/drain.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.hpp"
#include "core/output.hpp"
#include "subfile/directory_files.hpp"
#include "subfile/set_directory.hpp"

namespace tapioca::subfile {

namespace {

using namespace std::chrono_literals;

constexpr char const* record_magic = "TAPIDRAN";
constexpr std::uint32_t record_version = 1;
/// A change within this time after another one may leave a file's time as it is.
constexpr auto clock_step = 50ms;
constexpr std::size_t compared_bytes = std::size_t{4} << 20;

/// What drained.N says. Only the program that wrote it reads it, or a later version, which may leave it alone.
struct DrainRecord {
    char magic[8];
    std::uint32_t version;
    std::uint32_t bytes;  ///< of the record
    SetId identity;
    std::uint64_t from_inode;
    std::uint64_t to_inode;
    std::int64_t changed;  ///< when the subfile had been changed before it was copied
    std::int64_t durable;  ///< so much of the beginning of the copy
    std::uint64_t checksum;
};

std::uint64_t checksum_of(DrainRecord const& record)
{
    return stage::checksum_of(&record, offsetof(DrainRecord, checksum));
}

std::int64_t nanoseconds(timespec const& time)
{
    return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

/// Whether the open file has this name in the directory.
bool is_called(int fd, int directory, std::string const& name)
{
    struct stat opened = {};
    struct stat named = {};
    return ::fstat(fd, &opened) == 0 && ::fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

core::Result<bool> is_same(int one, int other, std::int64_t bytes)
{
    std::vector<std::byte> a(compared_bytes);
    std::vector<std::byte> b(compared_bytes);
    for (std::int64_t at = 0; at < bytes;) {
        auto const count = std::min(compared_bytes, static_cast<std::size_t>(bytes - at));
        auto const offset = static_cast<std::uint64_t>(at);
        auto status = core::read_all(one, offset, std::span(a).first(count), "a subfile");
        if (status) status = core::read_all(other, offset, std::span(b).first(count), "a subfile");
        if (!status) return tl::unexpected(status.error());
        if (std::memcmp(a.data(), b.data(), count) != 0) return false;
        at += static_cast<std::int64_t>(count);
    }
    return true;
}

std::int64_t size_or_zero(int fd)
{
    struct stat file = {};
    return ::fstat(fd, &file) == 0 ? file.st_size : 0;
}

std::int64_t block_at_or_behind(std::int64_t offset)
{
    return (offset + Drain::block_bytes - 1) / Drain::block_bytes * Drain::block_bytes;
}

std::int64_t block_at_or_before(std::int64_t offset)
{
    return offset / Drain::block_bytes * Drain::block_bytes;
}

}  // namespace

void ByteRanges::add(std::int64_t begin, std::int64_t end)
{
    if (begin >= end) return;
    auto at = ends_.upper_bound(begin);
    if (at != ends_.begin() && std::prev(at)->second >= begin) --at;
    while (at != ends_.end() && at->first <= end) {
        begin = std::min(begin, at->first);
        end = std::max(end, at->second);
        at = ends_.erase(at);
    }
    ends_.emplace_hint(at, begin, end);
}

void ByteRanges::remove(std::int64_t begin, std::int64_t end)
{
    if (begin >= end) return;
    for (auto range = next(begin); range.begin < end; range = next(begin)) {
        ends_.erase(range.begin);
        if (range.begin < begin) ends_.emplace(range.begin, begin);
        if (range.end > end) ends_.emplace(end, range.end);
        begin = std::min(range.end, end);
        if (begin == end) return;
    }
}

ByteRanges::Range ByteRanges::next(std::int64_t offset) const
{
    constexpr auto highest = std::numeric_limits<std::int64_t>::max();
    auto at = ends_.upper_bound(offset);
    if (at != ends_.begin() && std::prev(at)->second > offset) --at;
    return at == ends_.end() ? Range{highest, highest} : Range{at->first, at->second};
}

std::string Drain::copy_path() const
{
    return core::printable(subfile_.directory + "/" + draining_name(subfile_.number));
}

std::string Drain::tier_path() const
{
    return core::printable(subfile_.place + "/" + subfile_name(subfile_.number));
}

core::Result<std::unique_ptr<Drain>> Drain::open(Subfile const& subfile, Writer writer)
{
    std::unique_ptr<Drain> drain(new Drain(subfile, writer));
    auto const begun = drain->begin();
    if (!begun) return tl::unexpected(begun.error());
    return *begun ? std::move(drain) : nullptr;
}

/// Returns whether there is something to do.
core::Result<bool> Drain::begin()
{
    auto directory = open_directory(subfile_.directory);
    if (!directory) return tl::unexpected(directory.error());
    directory_ = std::move(*directory);
    auto from = open_on_tier(subfile_.place, subfile_.number, O_RDWR);  // for its lock
    if (!from && from.error().code == Errc::not_found) return false;
    if (!from) return tl::unexpected(from.error());
    from_ = std::move(*from);
    auto const locked = lock();
    if (!locked || !*locked) return locked;
    wait_for_lock(from_.get(), Sharing::alone);  // whoever writes into it holds this lock, too
    struct stat file = {};
    if (::fstat(from_.get(), &file) != 0) return core::fail_errno(errno, tier_path());
    if (file.st_nlink > 1)
        return core::fail(Errc::permission,
                          fmt::format("{} has {} names, so it may be another file, too: it is not drained", tier_path(),
                                      file.st_nlink));
    auto const age =
        std::chrono::system_clock::now().time_since_epoch() - std::chrono::nanoseconds(nanoseconds(file.st_mtim));
    if (writer_ == Writer::ended && age < clock_step && age > -clock_step) {
        std::this_thread::sleep_for(clock_step);
        if (::fstat(from_.get(), &file) != 0) return core::fail_errno(errno, tier_path());
    }
    bytes_ = file.st_size;
    changed_ = nanoseconds(file.st_mtim);
    auto const settled = settle_with_copy();
    if (!settled || *settled) return settled ? core::Result<bool>(false) : settled;
    if (auto status = open_copy(); !status) return tl::unexpected(status.error());
    return true;
}

/// Returns whether this drain has the subfile, which may be gone by now.
core::Result<bool> Drain::lock()
{
    auto const name = drained_name(subfile_.number);
    auto const place = open_directory(subfile_.place);
    if (!place && place.error().code == Errc::not_found) return false;
    if (!place) return tl::unexpected(place.error());
    auto record = open_in(place->get(), name.c_str(), O_RDWR | O_CREAT);
    if (!record && record.error().sys_errno == ENOENT) return false;
    if (!record) return core::fail(record.error().code, core::printable(subfile_.place) + "/" + record.error().text);
    record_ = std::move(*record);
    struct stat file = {};
    if (::fstat(record_.get(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_nlink > 1)
        return core::fail(Errc::permission, core::printable(subfile_.place) + "/" + name + " is in the way");
    if (!lock_alone(record_.get()) || !is_called(record_.get(), place->get(), name)) return false;
    if (is_called(from_.get(), place->get(), subfile_name(subfile_.number))) return true;
    (void)::unlinkat(place->get(), name.c_str(), 0);  // a drain has ended meanwhile
    (void)remove_from_tier(subfile_.place, {}, subfile_.empty);
    return false;
}

/// If the directory has the subfile: it was drained, and only the one on the tier is to be removed. Returns whether it
/// was so.
core::Result<bool> Drain::settle_with_copy()
{
    auto const name = subfile_name(subfile_.number);
    auto const there = open_in(directory_.get(), name.c_str(), O_RDONLY);
    if (!there && there.error().sys_errno == ENOENT) return false;
    auto const path = core::printable(subfile_.directory) + "/" + name;
    if (!there) return core::fail_errno(there.error().sys_errno, path);
    bool const equal_sizes = size_or_zero(there->get()) == bytes_;
    auto const same = equal_sizes ? is_same(from_.get(), there->get(), bytes_) : core::Result<bool>(false);
    if (!same) return same;
    if (!*same)
        return core::fail(Errc::mismatch, fmt::format("{} and {} both exist, and differ; readers take the first: "
                                                      "compare them, and remove one",
                                                      path, tier_path()));
    auto status = sync(there->get(), name.c_str());
    if (status) status = sync(directory_.get(), "the directory of subfiles");
    if (status) status = remove_from_tier(subfile_.place, {subfile_.number}, subfile_.empty);
    if (!status) return tl::unexpected(status.error());
    return true;
}

core::Status Drain::open_copy()
{
    auto to = open_in(directory_.get(), draining_name(subfile_.number).c_str(), O_RDWR | O_CREAT);
    if (!to) return core::fail(to.error().code, core::printable(subfile_.directory) + "/" + to.error().text);
    to_ = std::move(*to);
    struct stat file = {};
    struct stat around = {};
    if (::fstat(to_.get(), &file) != 0 || ::fstat(directory_.get(), &around) != 0)
        return core::fail_errno(errno, copy_path());
    if (!S_ISREG(file.st_mode) || file.st_nlink > 1 || (file.st_uid != ::geteuid() && file.st_uid != around.st_uid))
        return core::fail(Errc::permission, copy_path() + " is in the way, and is not an unfinished copy: remove it");
    find_earlier();
    if (there_ == 0 && core::uninterrupted([&] { return ::ftruncate(to_.get(), 0); }) != 0)
        return core::fail_errno(errno, copy_path());
    return {};
}

/// What an earlier drain has copied counts if the subfile was not changed since. After a crash of the machine, it may
/// even have lost what the copy has.
void Drain::find_earlier()
{
    DrainRecord record = {};
    struct stat from = {};
    struct stat to = {};
    bool const read = writer_ == Writer::ended && size_or_zero(record_.get()) == sizeof record &&
                      core::read_all(record_.get(), 0, std::as_writable_bytes(std::span(&record, 1)), "the record");
    if (!read || ::fstat(from_.get(), &from) != 0 || ::fstat(to_.get(), &to) != 0) return;
    bool const sound = std::memcmp(record.magic, record_magic, sizeof record.magic) == 0 &&
                       record.version == record_version && record.checksum == checksum_of(record) &&
                       record.identity == subfile_.identity;
    if (!sound || record.from_inode != from.st_ino || record.to_inode != to.st_ino) return;
    if (changed_ > record.changed || record.durable > to.st_size || record.durable < 0) return;
    there_ = record.durable;
    copied_.add(0, there_);
}

core::Status Drain::copy(std::int64_t begin, std::int64_t end)
{
    copied_.remove(begin, end);
    complete_.add(begin, end);
    for (auto range = complete_.next(begin); range.begin <= end; range = complete_.next(range.end)) {
        auto const first = block_at_or_behind(range.begin);
        auto const last = block_at_or_before(range.end);
        for (auto at = first; at < last; at += block_bytes)
            if (auto status = copy_now(at, at + block_bytes); !status) return status;
        if (range.end >= end) break;
    }
    return {};
}

core::Status Drain::copy_now(std::int64_t begin, std::int64_t end)
{
    auto status = copier_.copy(from_.get(), begin, to_.get(), begin, end - begin);
    if (status) {
        complete_.remove(begin, end);
        copied_.add(begin, end);
        unsynced_ += end - begin;
        if (unsynced_ >= synced_bytes) status = note_durable();
    }
    if (!status) status.error().text = copy_path() + ": " + status.error().text;
    return status;
}

/// The record comes after the data is durable, so whatever crash follows, it does not say too much.
core::Status Drain::note_durable()
{
    auto const first = copied_.next(0);
    auto const durable = first.begin == 0 ? first.end : 0;
    auto const size = core::size_of(to_.get(), copy_path());
    if (!size) return tl::unexpected(size.error());
    bool const grows = static_cast<std::int64_t>(*size) < durable;  // it ends with a hole
    if (grows && core::uninterrupted([&] { return ::ftruncate(to_.get(), durable); }) != 0)
        return core::fail_errno(errno, "the size of the copy");
    if (core::uninterrupted([&] { return ::fdatasync(to_.get()); }) != 0 && errno != EINVAL)
        return core::fail_errno(errno, "making the copy durable");
    unsynced_ = 0;
    if (writer_ == Writer::writes) return {};
    struct stat from = {};
    struct stat to = {};
    if (::fstat(from_.get(), &from) != 0 || ::fstat(to_.get(), &to) != 0) return core::fail_errno(errno, "the copy");
    DrainRecord record = {};
    std::memcpy(record.magic, record_magic, sizeof record.magic);
    record.version = record_version;
    record.bytes = sizeof record;
    record.identity = subfile_.identity;
    record.from_inode = from.st_ino;
    record.to_inode = to.st_ino;
    record.changed = changed_;
    record.durable = durable;
    record.checksum = checksum_of(record);
    auto status = core::write_all(record_.get(), 0, std::as_bytes(std::span(&record, 1)), "the record");
    return status ? sync(record_.get(), "the record") : status;
}

core::Status Drain::check_unchanged() const
{
    struct stat file = {};
    if (::fstat(from_.get(), &file) != 0) return core::fail_errno(errno, tier_path());
    if (nanoseconds(file.st_mtim) == changed_ && file.st_size == bytes_) return {};
    return core::fail(Errc::invalid_state,
                      tier_path() + " was changed while it was drained: drain it again when no job writes to it");
}

core::Status Drain::finish(std::int64_t bytes)
{
    auto const size = core::size_of(from_.get(), tier_path());
    if (!size) return tl::unexpected(size.error());
    auto const end = std::min(bytes, static_cast<std::int64_t>(*size));
    core::Status status;
    for (std::int64_t at = 0; status && at < end;) {
        auto const known = copied_.next(at);
        if (known.begin <= at) {
            at = known.end;
            continue;
        }
        auto const next = std::min({known.begin, end, block_at_or_before(at) + block_bytes});
        status = copy_now(at, next);
        at = next;
    }
    if (status && writer_ == Writer::ended) status = check_unchanged();
    if (status && core::uninterrupted([&] { return ::ftruncate(to_.get(), std::max(end, there_)); }) != 0)
        status = core::fail_errno(errno, copy_path());
    if (status) status = sync(to_.get(), copy_path().c_str());
    if (status) status = give_name();
    return status ? remove_from_tier(subfile_.place, {subfile_.number}, subfile_.empty) : status;
}

core::Status Drain::give_name()
{
    auto const from = draining_name(subfile_.number);
    auto const to = subfile_name(subfile_.number);
    if (!is_called(to_.get(), directory_.get(), from))
        return core::fail(Errc::invalid_state, copy_path() + " was replaced or removed while it was written");
    if (::faccessat(directory_.get(), to.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return core::fail(Errc::mismatch, fmt::format("{}/{} is there already: {} stays on the tier",
                                                      core::printable(subfile_.directory), to, tier_path()));
    if (::renameat(directory_.get(), from.c_str(), directory_.get(), to.c_str()) != 0)
        return core::fail_errno(errno, "naming " + copy_path());
    return sync(directory_.get(), "the directory of subfiles");
}

core::Result<bool> drain_subfile(Drain::Subfile const& subfile, Drain::Writer writer,
                                 std::function<void(std::int64_t bytes)> const& copied)
{
    auto const drain = Drain::open(subfile, writer);
    if (!drain) return tl::unexpected(drain.error());
    if (!*drain) return false;
    auto& one = **drain;
    copied(one.there());
    for (auto at = one.there(); at < one.bytes();) {
        auto const end = std::min(block_at_or_before(at) + Drain::block_bytes, one.bytes());
        if (auto status = one.copy(at, end); !status) return tl::unexpected(status.error());
        copied(end - at);
        at = end;
    }
    if (auto status = one.finish(one.bytes()); !status) return tl::unexpected(status.error());
    return true;
}

}  // namespace tapioca::subfile
