// HeldFile: the locks of named memory, and who may remove its file.
#include <chrono>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.hpp"
#include "machine/tier/kinds.hpp"
#include "machine/tier/memory_head.hpp"
#include "machine/tier/named.hpp"

namespace tapioca::machine {

namespace {

bool lock_file(core::Descriptor const& file, int how)
{
    return core::uninterrupted([&] { return ::flock(file.get(), how); }) == 0;
}

bool is_same_file(struct stat const& a, struct stat const& b)
{
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool still_has_name(core::Descriptor const& file, std::string const& path)
{
    struct stat opened = {};
    struct stat named = {};
    return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && is_same_file(opened, named);
}

/// Reads and checks the head.
core::Result<MemoryHead> read_head(core::Descriptor const& file, std::string const& path)
{
    MemoryHead head = {};
    auto const status = core::read_all(file.get(), 0, std::as_writable_bytes(std::span(&head, 1)), path.c_str());
    if (!status) return tl::unexpected(status.error());
    auto const size = core::size_of(file.get(), path);
    if (!size) return tl::unexpected(size.error());
    if (auto const wrong = what_is_wrong(head, *size); !wrong.empty())
        return core::fail(Errc::io, fmt::format("{} is damaged: {}", path, wrong));
    return head;
}

/// Waits a tenth of a second at most: on NFS, where the two kinds of locks are one, the lock of whoever has the memory
/// is in the way.
void set_removal_lock(core::Descriptor const& file, short type)
{
    struct flock whole = {};
    whole.l_type = type;
    whole.l_whence = SEEK_SET;
    for (int turn = 0; turn < 100; ++turn) {
        if (::fcntl(file.get(), F_OFD_SETLK, &whole) == 0 || (errno != EAGAIN && errno != EACCES)) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

tl::unexpected<core::Failure> gone(std::string const& path)
{
    return core::fail_errno(ENOENT, path);
}

}  // namespace

HeldFile::HeldFile(core::Descriptor file, std::string path, std::uint64_t bytes, Persistency persistency)
    : file_(std::move(file)), path_(std::move(path)), bytes_(bytes), persistency_(persistency)
{
}

HeldFile::HeldFile(HeldFile&& other) noexcept = default;

HeldFile& HeldFile::operator=(HeldFile&& other) noexcept
{
    HeldFile taken(std::move(other));
    std::swap(file_, taken.file_);
    std::swap(path_, taken.path_);
    std::swap(bytes_, taken.bytes_);
    std::swap(persistency_, taken.persistency_);
    return *this;
}

HeldFile::~HeldFile()
{
    if (!file_ || persistency_ != Persistency::none) return;
    ::close(file_.release());  // which drops the lock, unless the process has forked
    remove_unused_memory(path_);
}

core::Result<HeldFile> HeldFile::open(std::string const& path)
{
    auto file = open_file(path);
    if (!file) return tl::unexpected(file.error());
    auto const head = read_head(*file, path);
    if (!head) return tl::unexpected(head.error());
    auto const persistency = static_cast<Persistency>(head->persistency);
    if (persistency == Persistency::none && lock_file(*file, LOCK_EX | LOCK_NB)) {
        if (auto status = remove_name(*file, path); !status) return tl::unexpected(status.error());
        return gone(path);  // those who had it were killed
    }
    (void)lock_file(*file, LOCK_SH);  // without locks, the file stays until it is freed
    if (!still_has_name(*file, path)) return gone(path);
    return HeldFile(std::move(*file), path, head->bytes, persistency);
}

core::Status remove_name(core::Descriptor const& file, std::string const& path)
{
    // Whoever removes the name has this lock and then looks, so that nobody removes the next file of the same name.
    set_removal_lock(file, F_WRLCK);
    auto const failed = still_has_name(file, path) && ::unlink(path.c_str()) != 0 && errno != ENOENT;
    int const error = errno;
    set_removal_lock(file, F_UNLCK);
    return failed ? core::Status(core::fail_errno(error, "removing " + path)) : core::Status();
}

void remove_unused_memory(std::string const& path)
{
    auto const file = open_file(path);
    if (!file) return;
    auto const head = read_head(*file, path);
    if (!head || static_cast<Persistency>(head->persistency) != Persistency::none) return;
    if (lock_file(*file, LOCK_EX | LOCK_NB)) (void)remove_name(*file, path);
}

}  // namespace tapioca::machine
