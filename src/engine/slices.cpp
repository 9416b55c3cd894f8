#include "engine/slices.hpp"

#include "core/units.hpp"

namespace tapioca::engine {

std::vector<FileSection> sections_of(pattern::Summary const& total)
{
    constexpr std::uint64_t pieces = 250'000;
    if (total.bytes == 0) return {};
    auto const count = static_cast<std::int64_t>(1 + total.most_pieces / pieces);
    auto const width = core::divide_up(total.end - total.begin, count);
    std::vector<FileSection> sections;
    for (auto begin = total.begin; begin < total.end;) {
        auto const end = total.end - begin < width ? total.end : begin + width;
        sections.push_back({begin, end});
        begin = end;
    }
    return sections;
}

std::int64_t slice_of(comm::Team const& team, FileSection const& section)
{
    return core::divide_up(section.end - section.begin, team.size());
}

}  // namespace tapioca::engine
