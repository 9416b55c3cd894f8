#include "comm/segment.hpp"

#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "comm/team.hpp"
#include "core/units.hpp"

namespace tapioca::comm {

namespace {

struct Descriptor {
    int fd = -1;
    Descriptor() = default;
    Descriptor(Descriptor const&) = delete;
    Descriptor& operator=(Descriptor const&) = delete;
    ~Descriptor()
    {
        if (fd >= 0) ::close(fd);
    }
};

/// A new file that nobody else can have put there, with all its pages.
core::Status create_file(std::string const& name, std::uint64_t bytes, Descriptor& file)
{
    auto const what = fmt::format("{} of shared memory in {} (lower TAPIOCA_BUFFERSIZE or TAPIOCA_MEMORY)",
                                  core::format_bytes(bytes), name);
    if (bytes > INT64_MAX) return core::fail_errno(ENOMEM, what);
    file.fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file.fd < 0) return core::fail_errno(errno, what);
    int error = EINTR;
    while (error == EINTR) error = ::posix_fallocate(file.fd, 0, static_cast<off_t>(bytes));
    if (error != 0) return core::fail_errno(error, what);
    return {};
}

core::Status map_file(std::string const& name, std::uint64_t bytes, Descriptor& file, std::byte*& data)
{
    if (file.fd < 0) file.fd = ::open(name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file.fd < 0) return core::fail_errno(errno, "opening " + name);
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.fd, 0);
    if (memory == MAP_FAILED)
        return core::fail_errno(errno, fmt::format("mapping {} of {}", core::format_bytes(bytes), name));
    data = static_cast<std::byte*>(memory);
    return {};
}

}  // namespace

Segment::Segment(Segment&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0))
{
}

Segment& Segment::operator=(Segment&& other) noexcept
{
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

Segment::~Segment()
{
    if (data_) ::munmap(data_, bytes_);
}

core::Result<Segment> Segment::create(MPI_Comm node, std::uint64_t bytes, std::string const& directory)
{
    int rank = 0;
    MPI_Comm_rank(node, &rank);
    Descriptor file;
    core::Status status;
    std::string name;
    if (rank == 0) {
        std::uint64_t nonce = 0;
        if (::getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) nonce = static_cast<std::uint64_t>(::getpid());
        name = fmt::format("{}/tapioca-{}-{:016x}", directory, ::getpid(), nonce);
        status = create_file(name, bytes, file);
        if (!status && file.fd >= 0) ::unlink(name.c_str());
    }
    std::string const shared_name = broadcast(node, status ? name : std::string());
    Segment segment;
    if (!shared_name.empty()) {
        status = map_file(shared_name, bytes, file, segment.data_);
        segment.bytes_ = segment.data_ ? bytes : 0;
    }
    status = agree(node, status);
    if (rank == 0 && !shared_name.empty()) ::unlink(shared_name.c_str());
    if (!status) return tl::unexpected(status.error());
    return segment;
}

}  // namespace tapioca::comm
