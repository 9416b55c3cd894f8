// One extent of more than 4 GiB, written and read. Its data is a period of 67 MiB, mapped repeatedly, since fresh
// memory costs a virtual machine seconds per GiB.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

constexpr std::uint64_t GiB = std::uint64_t{1} << 30;
constexpr std::size_t period = (std::size_t{67} << 20) + 4096;  // no multiple of it is near 2 or 4 GiB
constexpr std::size_t bytes = 5 * GiB + 8;

/// `bytes` bytes of address space on `period` bytes of memory.
class Repeated {
public:
    Repeated()
    {
        auto const maps = (bytes + period - 1) / period;
        int const fd = ::memfd_create("repeated", MFD_CLOEXEC);
        void* const space =
            ::mmap(nullptr, maps * period, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        bool good = fd >= 0 && ::ftruncate(fd, period) == 0 && space != MAP_FAILED;
        for (std::size_t i = 0; i < maps && good; ++i)
            good = ::mmap(static_cast<std::byte*>(space) + i * period, period, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
        ::close(fd);
        if (good) data_ = static_cast<std::byte*>(space);
        mapped_ = maps * period;
    }
    Repeated(Repeated const&) = delete;
    Repeated& operator=(Repeated const&) = delete;
    ~Repeated()
    {
        if (data_) ::munmap(data_, mapped_);
    }
    [[nodiscard]] std::byte* data() const { return data_; }

private:
    std::byte* data_ = nullptr;
    std::size_t mapped_ = 0;
};

/// A directory with room for the file, or "" and why there is none.
std::string place_for_file(std::string const& directory, std::string& reason)
{
    std::uint64_t memory = 0;
    std::ifstream in("/proc/meminfo");
    for (std::string line; std::getline(in, line);)
        if (line.starts_with("MemAvailable:")) std::istringstream(line.substr(13)) >> memory;
    memory *= 1024;
    auto const room = [](std::string const& path) {
        std::error_code error;
        auto const info = std::filesystem::space(path, error);
        return error ? 0 : static_cast<std::uint64_t>(info.available);
    };
    if (memory > bytes + 2 * GiB && room("/dev/shm") > bytes + GiB) return "/dev/shm";
    if (room(directory) > bytes + GiB) return directory;
    std::ostringstream text;
    text << "needs 6 GiB for a file; free are " << memory / GiB << " GiB of memory, " << room("/dev/shm") / GiB
         << " GiB in /dev/shm, " << room(directory) / GiB << " GiB in the working directory";
    reason = text.str();
    return "";
}

struct Removed {
    std::string path;
    ~Removed() { ::unlink(path.c_str()); }
};

TEST(Size, OneExtentOfFiveGibibytesSurvives)
{
    if (ranks() > 1) GTEST_SKIP() << "one rank is enough";
    Scratch const scratch;
    std::string reason;
    auto const directory = place_for_file(scratch.directory(), reason);
    if (directory.empty()) GTEST_SKIP() << reason;
    Removed const file_name{directory + "/tapioca-test-" + std::to_string(::getpid())};
    Repeated const repeated;
    ASSERT_NE(repeated.data(), nullptr);
    auto const start = std::chrono::steady_clock::now();
    auto const once = stream(9, period);
    std::memcpy(repeated.data(), once.data(), period);

    Options options;
    options.direct = Direct::always;  // the system moves at most 2 GiB a call
    auto file = File::open(MPI_COMM_WORLD, file_name.path, Mode::create, options);
    Pattern pattern;
    pattern.add({{3, static_cast<std::int64_t>(bytes)}});
    auto step = file.declare(pattern);
    step.write(0, std::span<std::byte const>(repeated.data(), bytes));
    EXPECT_EQ(step.finish().bytes, bytes);
    EXPECT_EQ(file.size(), bytes + 3);
    file.close();

    std::memset(repeated.data(), 0, period);
    options.direct = Direct::never;
    auto again = File::open(MPI_COMM_WORLD, file_name.path, Mode::read, options);
    auto reading = again.declare(pattern);
    reading.read(0, std::span<std::byte>(repeated.data(), bytes));
    EXPECT_EQ(reading.finish().bytes, bytes);
    again.close();
    EXPECT_EQ(std::memcmp(repeated.data(), once.data(), period), 0) << "each byte was read at least once";

    int const fd = ::open(file_name.path.c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<std::byte> plain(period);
    for (std::size_t at = 0; at < bytes; at += period) {
        auto const length = std::min(period, bytes - at);
        ASSERT_EQ(::pread(fd, plain.data(), length, static_cast<off_t>(3 + at)), static_cast<ssize_t>(length));
        ASSERT_EQ(std::memcmp(plain.data(), once.data(), length), 0) << "in the file, from byte " << at;
    }
    ::close(fd);
    std::printf("  5 GiB in %s: %.1f s\n", directory.c_str(),
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace
}  // namespace tapioca::test
