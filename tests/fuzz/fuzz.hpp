// What the fuzzers share: decoding of an input, and claims that end the program if they do not hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace tapioca::fuzz {

/// Ends the program if the claim does not hold; libFuzzer takes this for a crash and keeps the input.
inline void claim(bool holds, char const* what, std::string_view detail = {})
{
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n%.*s\n", what, static_cast<int>(detail.size()), detail.data());
    std::abort();
}

/// A message must be one line that is not empty.
inline void claim_one_line(std::string_view text)
{
    claim(!text.empty(), "a message says something");
    auto const control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; };
    claim(std::none_of(text.begin(), text.end(), control), "a message is one line", text);
}

inline void claim_one_line(core::Failure const& failure)
{
    claim(failure.code != Errc::ok, "a failure has a code");
    claim_one_line(failure.text);
}

/// The input, consumed from its beginning. When it is used up, it yields zeros.
class Input {
public:
    Input(std::uint8_t const* data, std::size_t size) : rest_(data, size) {}

    [[nodiscard]] bool empty() const { return rest_.empty(); }
    [[nodiscard]] std::size_t left() const { return rest_.size(); }

    template <class Number>
    Number take()
    {
        Number value{};
        auto const bytes = std::min(sizeof value, rest_.size());
        if (bytes > 0) std::memcpy(&value, rest_.data(), bytes);
        rest_ = rest_.subspan(bytes);
        return value;
    }
    /// From `low` to `high`, from one byte.
    std::int64_t pick(std::int64_t low, std::int64_t high)
    {
        return low + static_cast<std::int64_t>(take<std::uint8_t>()) % (high - low + 1);
    }
    /// Any number; small ones take a byte.
    std::int64_t number()
    {
        auto const first = take<std::uint8_t>();
        if (first < 0xF0) return first;
        if (first < 0xF6) return take<std::uint16_t>();
        if (first < 0xFA) return -static_cast<std::int64_t>(take<std::uint8_t>());
        if (first < 0xFD) return std::int64_t{1} << take<std::uint8_t>() % 63;
        return take<std::int64_t>();
    }
    std::string_view text(std::size_t bytes)
    {
        bytes = std::min(bytes, rest_.size());
        std::string_view const taken(reinterpret_cast<char const*>(rest_.data()), bytes);
        rest_ = rest_.subspan(bytes);
        return taken;
    }
    /// Up to the next `end`, which is skipped; or the rest of the input.
    std::string_view until(char end)
    {
        std::string_view const all(reinterpret_cast<char const*>(rest_.data()), rest_.size());
        auto const taken = all.substr(0, all.find(end));
        rest_ = rest_.subspan(std::min(taken.size() + 1, rest_.size()));
        return taken;
    }
    std::string_view all() { return text(rest_.size()); }

private:
    std::span<std::uint8_t const> rest_;
};

}  // namespace tapioca::fuzz
