// Copies many pieces at strides. This is the innermost loop of all data movement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tapioca::core {

namespace detail {

template <std::size_t Length>
void spread(std::byte* to, std::byte const* from, std::int64_t count, std::int64_t to_step, std::int64_t from_step)
{
    for (std::int64_t i = 0; i < count; ++i, to += to_step, from += from_step) std::memcpy(to, from, Length);
}

}  // namespace detail

/// Copies `count` pieces. Common small lengths have loops of their own, without a call for each piece.
inline void copy_pieces(std::byte* to, std::byte const* from, std::int64_t length, std::int64_t count,
                        std::int64_t to_step, std::int64_t from_step)
{
    switch (count == 1 ? 0 : length) {
    case 2: return detail::spread<2>(to, from, count, to_step, from_step);
    case 4: return detail::spread<4>(to, from, count, to_step, from_step);
    case 8: return detail::spread<8>(to, from, count, to_step, from_step);
    case 16: return detail::spread<16>(to, from, count, to_step, from_step);
    case 24: return detail::spread<24>(to, from, count, to_step, from_step);
    case 32: return detail::spread<32>(to, from, count, to_step, from_step);
    case 64: return detail::spread<64>(to, from, count, to_step, from_step);
    case 128: return detail::spread<128>(to, from, count, to_step, from_step);
    default:
        for (std::int64_t i = 0; i < count; ++i, to += to_step, from += from_step)
            std::memcpy(to, from, static_cast<std::size_t>(length));
    }
}

}  // namespace tapioca::core
