// Slices: all ranks look at a pattern together, section by section, and each rank looks after one slice of a section.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/team.hpp"
#include "pattern/summary.hpp"

namespace tapioca::engine {

/// A part of the file that is looked at in one go.
struct FileSection {
    std::int64_t begin;
    std::int64_t end;
};

/// So many that small pieces take little memory, as long as they are spread evenly. The same on all ranks.
std::vector<FileSection> sections_of(pattern::Summary const& total);

/// How many bytes of a section a rank looks after.
std::int64_t slice_of(comm::Team const& team, FileSection const& section);

}  // namespace tapioca::engine
