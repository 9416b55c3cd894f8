// Segment: memory shared by the ranks of a node.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/result.hpp"

namespace tapioca::comm {

/// A mapping whose pages are all there: what does not fit is an error when it is made, never a signal later.
class Segment {
public:
    Segment() = default;
    Segment(Segment&& other) noexcept;
    Segment& operator=(Segment&& other) noexcept;
    ~Segment();

    /// `bytes` zeroed bytes. Collective over `node`, whose ranks share memory; the same answer on all of them.
    /// The file behind it lives in `directory` only until all have mapped it.
    static core::Result<Segment> create(MPI_Comm node, std::uint64_t bytes, std::string const& directory = "/dev/shm");

    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0;
};

}  // namespace tapioca::comm
