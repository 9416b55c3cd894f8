// Byte counts as users write and read them, and the rounding that alignment needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tapioca::core {

inline constexpr std::uint64_t KiB = 1024;
inline constexpr std::uint64_t MiB = 1024 * KiB;
inline constexpr std::uint64_t GiB = 1024 * MiB;

/// Parses "4096", "64K", "16M", "16MiB", "5g": powers of 1024. Refuses anything else, and overflow.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// "4 KiB", "16 MiB", "1.5 GiB", "38 B".
std::string format_bytes(std::uint64_t bytes);

constexpr std::int64_t align_down(std::int64_t value, std::int64_t unit)
{
    return value - value % unit;
}
constexpr std::int64_t align_up(std::int64_t value, std::int64_t unit)
{
    return align_down(value + unit - 1, unit);
}
/// The product, or UINT64_MAX if it would overflow.
constexpr std::uint64_t multiply(std::uint64_t a, std::uint64_t b)
{
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
/// The quotient rounded up, without overflow of intermediate results. `value` must not be negative.
constexpr std::int64_t divide_up(std::int64_t value, std::int64_t unit)
{
    return value / unit + (value % unit == 0 ? 0 : 1);
}

/// The name in `names` closest to `word` (edit distance), for "did you mean".
template <class Names>
std::string_view nearest(std::string_view word, Names const& names);

std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Names>
std::string_view nearest(std::string_view word, Names const& names)
{
    std::string_view best;
    std::size_t least = SIZE_MAX;
    for (std::string_view name : names)
        if (auto distance = edit_distance(word, name); distance < least) {
            least = distance;
            best = name;
        }
    return best;
}

}  // namespace tapioca::core
