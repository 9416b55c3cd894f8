#include "page_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

namespace bench {

namespace {

[[noreturn]] void fail(std::string const& path, char const* what)
{
    throw std::runtime_error(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

class OpenedFile {
public:
    OpenedFile(std::string path, int flags)
        : path_(std::move(path)), fd_(::open(path_.c_str(), flags | O_CLOEXEC, 0600))
    {
        if (fd_ < 0 && errno != ENOENT) fail(path_, "open");
    }
    OpenedFile(OpenedFile const&) = delete;
    OpenedFile& operator=(OpenedFile const&) = delete;
    ~OpenedFile()
    {
        if (exists()) ::close(fd_);
    }
    /// Other hosts may have removed it meanwhile.
    [[nodiscard]] bool exists() const { return fd_ >= 0; }
    [[nodiscard]] std::string const& path() const { return path_; }
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] std::size_t bytes() const
    {
        auto const end = ::lseek(fd_, 0, SEEK_END);
        if (end < 0) fail(path_, "lseek");
        return static_cast<std::size_t>(end);
    }

private:
    std::string path_;
    int fd_;
};

template <class Visit>
void for_each_file(Directories const& directories, Visit visit)
{
    for (auto const& directory : directories)
        for (auto const& entry : std::filesystem::recursive_directory_iterator(directory))
            if (entry.is_regular_file() && !entry.is_symlink())
                if (OpenedFile const file(entry.path().string(), O_RDONLY); file.exists()) visit(file);
}

/// Pages of the first `bytes` of a file that are in the cache.
std::size_t cached_pages(OpenedFile const& file, std::size_t bytes, std::size_t page)
{
    if (bytes == 0) return 0;
    void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.fd(), 0);
    if (data == MAP_FAILED) fail(file.path(), "mmap");
    std::vector<unsigned char> pages((bytes + page - 1) / page);
    int const result = ::mincore(data, bytes, pages.data());
    ::munmap(data, bytes);
    if (result != 0) fail(file.path(), "mincore");
    return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](auto p) { return (p & 1U) != 0; }));
}

constexpr std::size_t fill_block = std::size_t{1} << 20;

/// Calls move(offset) for every block of `bytes`, in random order.
template <class Move>
void in_random_order(std::int64_t bytes, std::mt19937_64& random, Move move)
{
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(bytes) / fill_block + 1);
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (auto const block : blocks) move(block * static_cast<std::int64_t>(fill_block));
}

}  // namespace

double cached_share(Directories const& directories)
{
    auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::size_t all = 0;
    std::size_t cached = 0;
    for_each_file(directories, [&](OpenedFile const& file) {
        auto const bytes = file.bytes();
        all += (bytes + page - 1) / page;
        cached += cached_pages(file, bytes, page);
    });
    return all == 0 ? 0 : static_cast<double>(cached) / static_cast<double>(all);
}

void drop_from_cache(Directories const& directories)
{
    for_each_file(directories, [](OpenedFile const& file) {
        if (::fsync(file.fd()) != 0) fail(file.path(), "fsync");  // pages that are not written yet cannot be dropped
        if (int const error = ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED); error != 0) {
            errno = error;
            fail(file.path(), "posix_fadvise");
        }
    });
}

void fill_cache(std::string const& path, std::int64_t bytes)
{
    OpenedFile const file(path, O_RDWR | O_CREAT | O_EXCL);
    std::vector<std::byte> block(fill_block, std::byte{0x5A});
    std::mt19937_64 random(1);
    bool whole = true;
    in_random_order(bytes, random, [&](std::int64_t offset) {
        whole = whole && ::pwrite(file.fd(), block.data(), block.size(), offset) == std::ssize(block);
    });
    in_random_order(bytes, random, [&](std::int64_t offset) {
        whole = whole && ::pread(file.fd(), block.data(), block.size(), offset) == std::ssize(block);
    });
    int const error = errno;
    ::unlink(path.c_str());
    errno = error;
    if (!whole) fail(path, "filling the cache with other data");
}

}  // namespace bench
