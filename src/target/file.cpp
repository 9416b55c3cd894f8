// The shared file: pread and pwrite, with all the ways in which they may not succeed at once.
#include <algorithm>
#include <array>
#include <climits>
#include <ctime>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/descriptor.hpp"
#include "core/interrupt.hpp"
#include "target/target.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; older kernels refuse it, which is harmless
#endif

namespace tapioca::target {

namespace {

// Linux moves at most 0x7ffff000 bytes per call, whatever the vectors hold.
constexpr std::size_t most_vectors = IOV_MAX;

/// Removes `bytes` bytes, which were moved, from the front of `vectors`.
void drop_front(std::span<iovec>& vectors, std::size_t bytes)
{
    while (!vectors.empty() && bytes >= vectors.front().iov_len) {
        bytes -= vectors.front().iov_len;
        vectors = vectors.subspan(1);
    }
    if (bytes > 0) {
        vectors.front().iov_base = static_cast<char*>(vectors.front().iov_base) + bytes;
        vectors.front().iov_len -= bytes;
    }
}

std::size_t sum(std::span<iovec const> vectors)
{
    std::size_t bytes = 0;
    for (auto const& vector : vectors) bytes += vector.iov_len;
    return bytes;
}

class PosixFile final : public Target {
public:
    explicit PosixFile(core::Descriptor file) : fd_(file.release()) {}
    PosixFile(PosixFile const&) = delete;
    PosixFile& operator=(PosixFile const&) = delete;
    ~PosixFile() override { (void)close(); }

    core::Status write(std::int64_t offset, std::span<iovec> vectors) override
    {
        tell_change();
        drop_front(vectors, 0);
        while (!vectors.empty()) {
            ssize_t const done = core::uninterrupted([&] {
                return vectors.size() == 1 ? ::pwrite(fd_, vectors[0].iov_base, vectors[0].iov_len, offset)
                                           : ::pwritev(fd_, vectors.data(), count(vectors), offset);
            });
            if (done <= 0)  // a write that moves nothing would never make progress
                return core::fail_errno(done < 0 ? errno : EIO,
                                        fmt::format("writing {} bytes at offset {}", sum(vectors), offset));
            offset += done;
            drop_front(vectors, static_cast<std::size_t>(done));
        }
        return {};
    }

    core::Result<std::uint64_t> read(std::int64_t offset, std::span<iovec> vectors) override
    {
        std::uint64_t total = 0;
        drop_front(vectors, 0);
        while (!vectors.empty()) {
            ssize_t const done = core::uninterrupted([&] {
                return vectors.size() == 1 ? ::pread(fd_, vectors[0].iov_base, vectors[0].iov_len, offset)
                                           : ::preadv(fd_, vectors.data(), count(vectors), offset);
            });
            if (done < 0)
                return core::fail_errno(errno, fmt::format("reading {} bytes at offset {}", sum(vectors), offset));
            if (done == 0) break;
            offset += done;
            total += static_cast<std::uint64_t>(done);
            drop_front(vectors, static_cast<std::size_t>(done));
        }
        return total;
    }

    bool reserve(std::int64_t begin, std::int64_t end, machine::Reserve how) override
    {
        if (how == machine::Reserve::nothing || has_data(begin, end)) return false;
        tell_change();
        if (how == machine::Reserve::allocate) {
            (void)::fallocate(fd_, 0, begin, end - begin);
            return false;
        }
        return ::fallocate(fd_, 0, end - 1, 1) == 0;  // pages beyond the end cannot be mapped; never shortens the file
    }

    void populate(std::int64_t begin, std::int64_t end) override
    {
        auto const page = ::sysconf(_SC_PAGESIZE);
        auto const from = begin / page * page;
        auto const bytes = static_cast<std::size_t>(end - from);
        void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, from);
        if (pages == MAP_FAILED) return;
        (void)::madvise(pages, bytes, MADV_POPULATE_WRITE);  // gives an error where a plain access would give a signal
        ::munmap(pages, bytes);
    }

    bool patch(std::int64_t base, std::span<Stretch const> stretches, std::byte const* bytes) override
    {
        tell_change();
        // With its room allocated and its pages present, storing needs no more space on the device: a full device is
        // reported here.
        auto const begin = base + stretches.front().begin;
        auto const end = base + stretches.back().end;
        if (::fallocate(fd_, 0, begin, end - begin) != 0) return false;
        auto const page = ::sysconf(_SC_PAGESIZE);
        auto const from = begin / page * page;
        auto const mapped_bytes = static_cast<std::size_t>(end - from);
        void* const pages = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, from);
        if (pages == MAP_FAILED) return false;
        bool const there = ::madvise(pages, mapped_bytes, MADV_POPULATE_WRITE) == 0;
        bool const stored = there && store(static_cast<std::byte*>(pages) + (base - from), stretches, bytes);
        ::munmap(pages, mapped_bytes);
        return stored;
    }

    void tell_changes(std::shared_ptr<Changes> changes) override { changes_ = std::move(changes); }

    core::Status sync() override
    {
        if (core::uninterrupted([&] { return ::fsync(fd_); }) != 0) return core::fail_errno(errno, "fsync");
        return {};
    }

    core::Result<std::uint64_t> size() override
    {
        struct stat info = {};
        if (::fstat(fd_, &info) != 0) return core::fail_errno(errno, "fstat");
        return static_cast<std::uint64_t>(info.st_size);
    }

    core::Status close() override
    {
        if (fd_ < 0) return {};
        int const fd = std::exchange(fd_, -1);
        if (::close(fd) != 0 && errno != EINTR) return core::fail_errno(errno, "closing");
        return {};
    }

    [[nodiscard]] int descriptor() const override { return fd_; }

private:
    void tell_change()
    {
        if (changes_) changes_->note();
    }

    /// Stores the stretches at mapped[at], by writing them to a file in memory and reading from it into the mapping. If
    /// somebody truncates the target meanwhile, a call fails, whereas a plain store would end the process with SIGBUS.
    bool store(std::byte* mapped, std::span<Stretch const> stretches, std::byte const* bytes)
    {
        if (!scratch_) scratch_ = core::Descriptor(::memfd_create("tapioca", MFD_CLOEXEC));
        if (!scratch_) return false;
        constexpr std::size_t most_bytes = 1 << 20;
        std::array<iovec, most_vectors> sources;
        std::array<iovec, most_vectors> places;
        while (!stretches.empty()) {
            std::size_t count = 0;
            std::size_t total = 0;
            for (; count < std::min(stretches.size(), most_vectors) && total < most_bytes; ++count) {
                auto const [begin, end] = stretches[count];
                auto const length = static_cast<std::size_t>(end - begin);
                sources[count] = {const_cast<std::byte*>(bytes + begin), length};
                places[count] = {mapped + begin, length};
                total += length;
            }
            auto const vectors = static_cast<int>(count);
            auto const all = static_cast<ssize_t>(total);
            if (core::uninterrupted([&] { return ::pwritev(scratch_.get(), sources.data(), vectors, 0); }) != all)
                return false;
            if (core::uninterrupted([&] { return ::preadv(scratch_.get(), places.data(), vectors, 0); }) != all)
                return false;
            stretches = stretches.subspan(count);
        }
        return true;
    }

    /// True if [begin, end) already contains data, so that no room needs to be allocated.
    [[nodiscard]] bool has_data(std::int64_t begin, std::int64_t end) const
    {
        auto const data = ::lseek(fd_, begin, SEEK_DATA);
        return data >= 0 ? data < end : errno != ENXIO;
    }

    static int count(std::span<iovec> vectors) { return static_cast<int>(std::min(vectors.size(), most_vectors)); }

    int fd_;
    std::shared_ptr<Changes> changes_;
    core::Descriptor scratch_;  ///< see store()
};

class Discard final : public Target {
public:
    explicit Discard(std::unique_ptr<Target> file) : file_(std::move(file)) {}
    core::Status write(std::int64_t /*offset*/, std::span<iovec> /*vectors*/) override { return {}; }
    core::Result<std::uint64_t> read(std::int64_t offset, std::span<iovec> vectors) override
    {
        return file_->read(offset, vectors);
    }
    core::Status sync() override { return file_->sync(); }
    core::Result<std::uint64_t> size() override { return file_->size(); }
    core::Status close() override { return file_->close(); }

    [[nodiscard]] int descriptor() const override { return file_->descriptor(); }

private:
    std::unique_ptr<Target> file_;
};

}  // namespace

bool Target::reserve(std::int64_t /*begin*/, std::int64_t /*end*/, machine::Reserve /*how*/)
{
    return false;
}

void Target::populate(std::int64_t /*begin*/, std::int64_t /*end*/) {}

void Target::tell_changes(std::shared_ptr<Changes> /*changes*/) {}

std::uint64_t now_ns()
{
    timespec now = {};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

bool Target::patch(std::int64_t /*base*/, std::span<Stretch const> /*stretches*/, std::byte const* /*bytes*/)
{
    return false;
}

core::Status Target::write(std::int64_t offset, std::span<std::byte const> bytes)
{
    iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return write(offset, {&vector, 1});
}

core::Result<std::uint64_t> Target::read(std::int64_t offset, std::span<std::byte> bytes)
{
    iovec vector{bytes.data(), bytes.size()};
    return read(offset, {&vector, 1});
}

core::Result<std::unique_ptr<Target>> open_file(std::string const& path, OpenMode access)
{
    int const flags = access == OpenMode::create ? O_RDWR | O_CREAT : access == OpenMode::update ? O_RDWR : O_RDONLY;
    // Opening a pipe would wait for its writer, and all ranks with it.
    auto const open = [&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666); };
    core::Descriptor file(core::uninterrupted(open));
    if (!file) return core::fail_errno(errno, "opening");
    struct stat found = {};
    if (::fstat(file.get(), &found) == 0 && (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode)))
        return core::fail_errno(ESPIPE, "opening");
    (void)::fcntl(file.get(), F_SETFL, flags & O_ACCMODE);
    return std::make_unique<PosixFile>(std::move(file));
}

std::int64_t longest_file(int fd)
{
    auto most = INT64_MAX;
    if (::lseek(fd, most, SEEK_SET) < 0 && ::lseek(fd, 0, SEEK_SET) == 0) {
        std::int64_t fits = 0;  // the descriptor's own position is not used; it can only be moved as far as this
        while (most - fits > 1) {
            auto const middle = fits + (most - fits) / 2;
            (::lseek(fd, middle, SEEK_SET) == middle ? fits : most) = middle;
        }
        most = fits;
    }
    rlimit limit = {};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(most))
        most = static_cast<std::int64_t>(limit.rlim_cur);
    return most;
}

core::Status make_empty(int fd)
{
    struct stat file = {};
    if (::fstat(fd, &file) != 0) return core::fail_errno(errno, "fstat");
    if (!S_ISREG(file.st_mode) || file.st_size == 0) return {};
    if (core::uninterrupted([&] { return ::ftruncate(fd, 0); }) != 0) return core::fail_errno(errno, "emptying");
    return {};
}

core::Status sync_directory_of(std::string const& path)
{
    auto const slash = path.rfind('/');
    auto const directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    auto const open = [&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); };
    core::Descriptor const opened(core::uninterrupted(open));
    if (!opened) return core::fail_errno(errno, "opening " + directory);
    int const error = core::uninterrupted([&] { return ::fsync(opened.get()); }) == 0 ? 0 : errno;
    if (error != 0 && error != EINVAL) return core::fail_errno(error, "fsync of " + directory);  // not all can
    return {};
}

std::unique_ptr<Target> discard_writes(std::unique_ptr<Target> file)
{
    return std::make_unique<Discard>(std::move(file));
}

}  // namespace tapioca::target
