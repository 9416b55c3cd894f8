// Copies between a buffer and the positions of its pieces in a round or in a message.
#pragma once

#include <cstddef>

#include "core/copy.hpp"
#include "pattern/layout.hpp"

namespace tapioca::engine {

/// `round` is where file offset `origin` is stored, in the run's own offsets.
inline void copy_in(std::byte* round, std::int64_t origin, pattern::PieceRun const& run, std::byte const* data)
{
    core::copy_pieces(round + (run.offset - origin), data + run.buffer, run.length, run.count, run.stride,
                      run.buffer_stride);
}

inline void copy_out(std::byte const* round, std::int64_t origin, pattern::PieceRun const& run, std::byte* data)
{
    core::copy_pieces(data + run.buffer, round + (run.offset - origin), run.length, run.count, run.buffer_stride,
                      run.stride);
}

/// Packs the run's bytes from `to` on. Returns the end of the packed bytes.
inline std::byte* gather(std::byte* to, pattern::PieceRun const& run, std::byte const* data)
{
    auto const bytes = run.length * run.count;
    if (run.packed())
        core::copy_pieces(to, data + run.buffer, bytes, 1, 0, 0);
    else
        core::copy_pieces(to, data + run.buffer, run.length, run.count, run.length, run.buffer_stride);
    return to + bytes;
}

/// The reverse: copies the run's bytes, which are packed from `from` on, to their places in the buffer.
inline std::byte const* scatter(std::byte const* from, pattern::PieceRun const& run, std::byte* data)
{
    auto const bytes = run.length * run.count;
    if (run.packed())
        core::copy_pieces(data + run.buffer, from, bytes, 1, 0, 0);
    else
        core::copy_pieces(data + run.buffer, from, run.length, run.count, run.buffer_stride, run.length);
    return from + bytes;
}

}  // namespace tapioca::engine
