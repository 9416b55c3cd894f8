#include "engine/wire.hpp"

#include <algorithm>
#include <cstring>

namespace tapioca::engine::wire {

namespace {

void put(std::uint64_t value, std::vector<std::byte>& to)
{
    for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::byte>(value | 0x80));
    to.push_back(static_cast<std::byte>(value));
}

/// Maps small numbers of either sign to small non-negative numbers.
constexpr std::uint64_t zigzag(std::int64_t value)
{
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

constexpr std::int64_t unzigzag(std::uint64_t value)
{
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::int64_t end_of(pattern::PieceRun const& run)
{
    return run.offset + (run.count - 1) * run.stride + run.length;
}

}  // namespace

void encode(std::span<pattern::PieceRun const> runs, std::int64_t origin, std::vector<std::byte>& to)
{
    auto end = origin;
    for (auto const& run : runs) {
        put(zigzag(run.offset - end), to);
        put(static_cast<std::uint64_t>(run.length), to);
        put(static_cast<std::uint64_t>(run.count), to);
        if (run.count > 1) put(zigzag(run.stride - run.length), to);
        end = end_of(run);
    }
}

std::uint64_t Runs::number()
{
    std::uint64_t value = 0;
    std::size_t used = 0;
    for (int shift = 0; used < from_.size() && shift < 64; shift += 7) {
        auto const byte = static_cast<std::uint64_t>(from_[used++]);
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) break;
    }
    from_ = from_.subspan(used);
    return value;
}

bool Runs::next(pattern::PieceRun& run)
{
    if (from_.empty()) return false;
    auto const gap = unzigzag(number());
    run.length = static_cast<std::int64_t>(number());
    run.count = static_cast<std::int64_t>(number());
    auto const between = run.count > 1 ? unzigzag(number()) : 0;
    run.buffer = buffer_;
    run.buffer_stride = run.length;
    std::int64_t bytes = 0, reach = 0;
    bool const bad =
        run.length <= 0 || run.count <= 0 || __builtin_add_overflow(end_, gap, &run.offset) ||
        __builtin_add_overflow(run.length, between, &run.stride) ||
        __builtin_mul_overflow(run.length, run.count, &bytes) || __builtin_add_overflow(buffer_, bytes, &buffer_) ||
        __builtin_mul_overflow(run.count - 1, run.stride, &reach) ||
        __builtin_add_overflow(reach, run.length, &reach) || __builtin_add_overflow(run.offset, reach, &end_);
    if (bad) from_ = {};
    return !bad;
}

MessageEntry take_entry(std::span<std::byte const>& bytes)
{
    MessageEntry entry;
    auto const take = [&bytes](std::size_t count) {
        auto const taken = bytes.first(std::min(count, bytes.size()));
        bytes = bytes.subspan(taken.size());
        return taken;
    };
    auto const heading = take(sizeof entry.heading);
    std::memcpy(&entry.heading, heading.data(), heading.size());
    entry.runs = take(entry.heading.run_bytes);
    if (entry.heading.way == DataPath::inside) entry.data = take(entry.heading.data_bytes);
    return entry;
}

}  // namespace tapioca::engine::wire
