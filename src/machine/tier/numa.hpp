// Memory that find_tiers() finds in addition to ordinary memory: each has a tier of the kind numa.
#pragma once

#include <array>
#include <string_view>

namespace tapioca::machine {

struct NumaMemory {
    std::string_view name;                     ///< name of its tier
    std::array<std::string_view, 2> in_hwloc;  ///< prefixes of subtypes and of MemoryTier attributes; may be empty
    double latency, write, read;               ///< multiples of dram's figures, if hwloc has none
};

inline constexpr std::array<NumaMemory, 6> numa_memories = {{
    {"hbm", {"HBM", "MCDRAM"}, 1.2, 1.5, 1.5},
    {"nvm", {"NVM"}, 3, 0.2, 0.6},
    {"cxl", {"CXL"}, 2.5, 0.8, 0.8},
    {"spm", {"SPM"}, 1.5, 0.8, 0.8},  // "specific-purpose": hwloc does not know what it is
    {"gpu", {"GPU"}, 5, 0.5, 0.2},
    {"", {}, 1.5, 0.8, 0.8},  // must stay the last: nodes that hwloc has no name for
}};
static_assert(numa_memories.back().name.empty());

}  // namespace tapioca::machine
