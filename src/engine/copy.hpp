// Copies between a packed buffer and its places in a round: the inner loop of everything.
#pragma once

#include <cstddef>
#include <cstring>

#include "pattern/layout.hpp"

namespace tapioca::engine {

namespace detail {

template <std::size_t Length>
void spread(std::byte* to, std::byte const* from, std::int64_t count, std::int64_t to_step, std::int64_t from_step)
{
    for (std::int64_t i = 0; i < count; ++i, to += to_step, from += from_step) std::memcpy(to, from, Length);
}

/// `count` pieces; the usual small lengths get a loop of their own, without a call for each piece.
inline void copy_pieces(std::byte* to, std::byte const* from, std::int64_t length, std::int64_t count,
                        std::int64_t to_step, std::int64_t from_step)
{
    switch (count == 1 ? 0 : length) {
    case 2: return spread<2>(to, from, count, to_step, from_step);
    case 4: return spread<4>(to, from, count, to_step, from_step);
    case 8: return spread<8>(to, from, count, to_step, from_step);
    case 16: return spread<16>(to, from, count, to_step, from_step);
    case 24: return spread<24>(to, from, count, to_step, from_step);
    case 32: return spread<32>(to, from, count, to_step, from_step);
    case 64: return spread<64>(to, from, count, to_step, from_step);
    case 128: return spread<128>(to, from, count, to_step, from_step);
    default:
        for (std::int64_t i = 0; i < count; ++i, to += to_step, from += from_step)
            std::memcpy(to, from, static_cast<std::size_t>(length));
    }
}

}  // namespace detail

/// `round` is the place of file offset `origin`, in the run's own offsets.
inline void copy_in(std::byte* round, std::int64_t origin, pattern::Run const& run, std::byte const* data)
{
    detail::copy_pieces(round + (run.offset - origin), data + run.buffer, run.length, run.count, run.stride,
                        run.length);
}

inline void copy_out(std::byte const* round, std::int64_t origin, pattern::Run const& run, std::byte* data)
{
    detail::copy_pieces(data + run.buffer, round + (run.offset - origin), run.length, run.count, run.length,
                        run.stride);
}

}  // namespace tapioca::engine
