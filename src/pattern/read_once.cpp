#include "pattern/read_once.hpp"

#include <algorithm>
#include <cstring>

namespace tapioca::pattern {

std::uint64_t ReadOnce::most_bytes(Variable const& variable)
{
    std::uint64_t entries = 0;
    for (auto const& layer : variable.layouts()) entries += layer.entries.size();
    return entries * (2 * sizeof(Layout::ListItem) + sizeof(Copy));
}

ReadOnce::ReadOnce(Variable const& variable)
{
    std::size_t entries = 0;
    for (auto const& layer : variable.layouts()) entries += layer.entries.size();
    std::vector<Layout::ListItem> sorted;
    sorted.reserve(entries);
    for (auto const& layer : variable.layouts())
        sorted.insert(sorted.end(), layer.entries.begin(), layer.entries.end());
    std::sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) { return a.offset < b.offset; });
    layout_.in_order = false;
    layout_.entries.reserve(sorted.size());
    copies_.reserve(sorted.size());
    // Whatever a later entry shares with any earlier one, it also shares with the earlier one that reaches furthest.
    Layout::ListItem furthest{0, 0, 0};
    for (auto const& entry : sorted) {
        auto const covered = furthest.offset + furthest.length;
        auto const end = entry.offset + entry.length;
        if (entry.offset < covered)
            copies_.push_back({entry.offset, std::min(end, covered) - entry.offset,
                               furthest.buffer + entry.offset - furthest.offset, entry.buffer});
        if (end <= covered) continue;
        auto const begin = std::max(entry.offset, covered);
        layout_.entries.push_back({begin, end - begin, entry.buffer + begin - entry.offset});
        furthest = entry;
    }
}

std::uint64_t ReadOnce::spread(std::byte* data, std::uint64_t received) const
{
    // If the file ends too early, its first bytes are there.
    auto left = static_cast<std::int64_t>(received);
    auto file_end = no_offset;
    for (auto const& entry : layout_.entries) {
        if (left < entry.length) {
            file_end = entry.offset + left;
            break;
        }
        left -= entry.length;
    }
    for (auto const& copy : copies_) {
        if (copy.offset >= file_end) continue;
        auto const bytes = static_cast<std::size_t>(std::min(copy.length, file_end - copy.offset));
        std::memcpy(data + copy.to, data + copy.from, bytes);
        received += bytes;
    }
    return received;
}

}  // namespace tapioca::pattern
