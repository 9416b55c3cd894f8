// Slices: all ranks examine a pattern together, section by section, and each rank is responsible for one slice of a
// section.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/team.hpp"
#include "pattern/summary.hpp"

namespace tapioca::engine {

/// A part of the file that is examined in one pass.
struct FileSection {
    std::int64_t begin;
    std::int64_t end;
};

/// So many sections that small pieces take little memory, provided that they are spread evenly. The same on all ranks.
std::vector<FileSection> sections_of(pattern::Summary const& total);

/// How many bytes of a section a rank is responsible for.
std::int64_t slice_of(comm::Team const& team, FileSection const& section);

/// Calls visit(rank, from, to) for every part of [begin, end), which lies in the section, that falls to one rank.
template <class Visit>
void each_slice(comm::Team const& team, FileSection const& section, std::int64_t begin, std::int64_t end,
                Visit const& visit)
{
    auto const width = slice_of(team, section);
    while (begin < end) {
        auto const slice = (begin - section.begin) / width;
        auto const limit = section.begin + slice * width;
        auto const to = section.end - limit < width ? end : std::min(end, limit + width);
        visit(static_cast<std::size_t>(slice), begin, to);
        begin = to;
    }
}

}  // namespace tapioca::engine
