// Slices: all ranks examine a pattern together, section by section, and each rank is responsible for one slice of a
// section.
#pragma once

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

}  // namespace tapioca::engine
