#include "engine/wire.hpp"

#include <cstring>

namespace tapioca::engine::wire {

namespace {

void put(std::uint64_t value, std::vector<std::byte>& to)
{
    for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::byte>(value | 0x80));
    to.push_back(static_cast<std::byte>(value));
}

/// Small numbers of either sign become small numbers.
constexpr std::uint64_t zigzag(std::int64_t value)
{
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

constexpr std::int64_t unzigzag(std::uint64_t value)
{
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::int64_t end_of(pattern::Run const& run)
{
    return run.offset + (run.count - 1) * run.stride + run.length;
}

}  // namespace

void encode(std::span<pattern::Run const> runs, std::int64_t origin, std::vector<std::byte>& to)
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
    for (int shift = 0; used < from_.size(); shift += 7) {
        auto const byte = static_cast<std::uint64_t>(from_[used++]);
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) break;
    }
    from_ = from_.subspan(used);
    return value;
}

bool Runs::next(pattern::Run& run)
{
    if (from_.empty()) return false;
    run.offset = end_ + unzigzag(number());
    run.length = static_cast<std::int64_t>(number());
    run.count = static_cast<std::int64_t>(number());
    run.stride = run.count > 1 ? run.length + unzigzag(number()) : run.length;
    run.buffer = buffer_;
    run.buffer_stride = run.length;
    buffer_ += run.length * run.count;
    end_ = end_of(run);
    return true;
}

Entry take_entry(std::span<std::byte const>& bytes)
{
    Entry entry;
    std::memcpy(&entry.heading, bytes.data(), sizeof entry.heading);
    bytes = bytes.subspan(sizeof entry.heading);
    entry.runs = bytes.first(entry.heading.run_bytes);
    bytes = bytes.subspan(entry.heading.run_bytes);
    if (entry.heading.way == Way::inside) {
        entry.data = bytes.first(entry.heading.data_bytes);
        bytes = bytes.subspan(entry.heading.data_bytes);
    }
    return entry;
}

}  // namespace tapioca::engine::wire
