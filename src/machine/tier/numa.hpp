// Memory that find_tiers() finds beside the ordinary: each has a tier, whose kind is numa.
#pragma once

#include <array>
#include <string_view>

namespace tapioca::machine {

struct NumaMemory {
    std::string_view name;                     ///< of its tier
    std::array<std::string_view, 2> in_hwloc;  ///< beginnings of subtypes and of MemoryTier attributes; may be empty
    double latency, write, read;               ///< where hwloc has no figures: multiples of those of dram
};

inline constexpr std::array<NumaMemory, 6> numa_memories = {{
    {"hbm", {"HBM", "MCDRAM"}, 1.2, 1.5, 1.5},
    {"nvm", {"NVM"}, 3, 0.2, 0.6},
    {"cxl", {"CXL"}, 2.5, 0.8, 0.8},
    {"spm", {"SPM"}, 1.5, 0.8, 0.8},  // "specific-purpose": hwloc cannot tell what it is
    {"gpu", {"GPU"}, 5, 0.5, 0.2},
    {"", {}, 1.5, 0.8, 0.8},  // stays the last: nodes that hwloc has no name for
}};
static_assert(numa_memories.back().name.empty());

}  // namespace tapioca::machine
