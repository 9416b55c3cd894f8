// Descriptor: owns an open file descriptor. Also reads and writes that transfer all bytes or fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <unistd.h>

#include "core/result.hpp"

namespace tapioca::core {

/// Closes the descriptor at the end, unless it was released. Errors of that close() are ignored.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor()
    {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    /// Passes ownership to the caller.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

/// Raises the process's soft limit of open files towards its hard limit, after one could not be opened. Returns whether
/// another attempt is worth it.
bool allow_more_descriptors();

/// Writes all of `bytes` at `offset`, or fails. `what` describes the bytes in messages.
Status write_all(int fd, std::uint64_t offset, std::span<std::byte const> bytes, char const* what);
/// Reads all of `bytes`; a file that ends too early is a failure without an errno.
Status read_all(int fd, std::uint64_t offset, std::span<std::byte> bytes, char const* what);

/// The size of the open file `fd`. `path` is for messages.
Result<std::uint64_t> size_of(int fd, std::string const& path);

}  // namespace tapioca::core
