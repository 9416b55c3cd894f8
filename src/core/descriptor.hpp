// Descriptor: an open descriptor and its owner; and all of some bytes of a file, or none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <unistd.h>

#include "core/result.hpp"

namespace tapioca::core {

/// Closed in the end, unless it is given away. Errors of that close() are ignored.
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
    /// The caller's from now on.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

/// All of `bytes` at `offset`. Not a byte less. `what` is what is written or read, for messages.
Status write_all(int fd, std::uint64_t offset, std::span<std::byte const> bytes, char const* what);
/// As above; a file that ends too early is a failure without an errno.
Status read_all(int fd, std::uint64_t offset, std::span<std::byte> bytes, char const* what);

/// How long the file is that `path` was opened as.
Result<std::uint64_t> size_of(int fd, std::string const& path);

}  // namespace tapioca::core
