// The stand-ins for all calls except those of support/faults.hpp: open, mmap, operator new and so on; every way in
// which a call may fail; and the resources of a process, for comparison.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/faults.hpp"

namespace tapioca::faults {

char const* name(Op op);
std::string describe(Fault const& fault);
/// Every way in which a kind of call may fail; `at` is 0.
std::vector<Fault> all_faults();

/// The resources of a process, which must be the same before and after.
struct Belongings {
    int descriptors = 0;
    int threads = 0;
    int shared_mappings = 0;       ///< of files
    std::int64_t allocations = 0;  ///< by operator new, not yet deleted
};
Belongings look();
/// The first file or directory that the library under test has created since arm() and that still exists, except those
/// in `directory`; or nothing.
std::string left_over(std::string const& directory);
/// The resources of which there are more, in words; empty if there are none.
std::string surplus(Belongings const& before, Belongings const& after);

}  // namespace tapioca::faults
