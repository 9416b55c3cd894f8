#include "subfile/coverage.hpp"

#include <algorithm>
#include <vector>

#include "subfile/holding_pieces.hpp"

namespace tapioca::subfile {

namespace {

/// Bytes of the file that are looked at together, at first; and how many stretches there should be among them.
constexpr std::int64_t first_window = std::int64_t{64} << 20;
constexpr std::size_t few_stretches = 1000;
constexpr std::size_t many_stretches = 100'000;

}  // namespace

void each_stretch(ExtentMap const& map, std::function<void(FilePart const&)> const& visit)
{
    auto const end = map.end();
    auto window = first_window;
    for (std::int64_t begin = 0; begin < end;) {
        auto const to = end - begin > window ? begin + window : end;
        auto const found = latest_parts(map.find(begin, to), begin, to, false);
        for (auto const& part : found) visit(part);
        begin = to;
        if (found.size() < few_stretches && window < end) window *= 2;
        if (found.size() > many_stretches) window = std::max(window / 4, std::int64_t{4096});
    }
}

std::uint64_t count_pieces(ExtentMap const& map)
{
    std::uint64_t sum = 0;
    for (auto const& holding : map.find(0, map.end())) sum += static_cast<std::uint64_t>(holding.part->layout.pieces());
    return sum;
}

std::optional<std::uint64_t> dead_bytes(ExtentMap const& map, std::uint64_t most_pieces)
{
    if (map.chunks() > most_pieces || count_pieces(map) > most_pieces) return std::nullopt;
    std::uint64_t live = 0;
    each_stretch(map, [&](FilePart const& part) { live += static_cast<std::uint64_t>(part.length); });
    return map.data_bytes() - live;
}

}  // namespace tapioca::subfile
