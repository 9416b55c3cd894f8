// Sieve: reads the pieces of an independent read; pieces that lie close together are read with one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/result.hpp"
#include "target/target.hpp"

namespace tapioca::mpiio {

class Sieve {
public:
    /// Loads the bytes of the file from `begin` on; zeros where the file has none.
    using LoadBytes = std::function<core::Status(std::int64_t begin, std::span<std::byte> to)>;
    /// `size`: of the file. The places of the pieces are relative to `to`.
    Sieve(LoadBytes load, std::int64_t size, std::byte* to) : load_(std::move(load)), size_(size), to_(to) {}

    /// The next piece, in the order of the buffer.
    void take(std::int64_t offset, std::int64_t length, std::int64_t place);
    /// Returns how many bytes were read; fewer than asked for at the end of the file.
    core::Result<std::int64_t> finish();

private:
    static constexpr std::int64_t gap = 16 * 1024;  ///< reading this many bytes takes no longer than another call
    static constexpr std::int64_t most = 1024 * 1024;

    struct SievePiece {
        std::int64_t offset;
        std::int64_t length;
        std::int64_t place;
    };

    void read();

    LoadBytes load_;
    std::int64_t size_;
    std::byte* to_;
    std::vector<SievePiece> pieces_;  ///< to be read with the next call
    std::int64_t begin_ = 0;
    std::int64_t end_ = 0;
    std::vector<std::byte> window_;
    std::int64_t bytes_ = 0;
    core::Status status_;
};

/// Loads bytes of a target; zeros where it has none.
core::Status load(target::Target& target, std::int64_t begin, std::span<std::byte> to);

}  // namespace tapioca::mpiio
