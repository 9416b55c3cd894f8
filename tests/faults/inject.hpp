// The stand-ins for all calls but those of support/faults.hpp: open, mmap, operator new and so on; every way in which a
// call may fail; and what a process has, to be compared.
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

/// What a process has: to be the same before and after.
struct Belongings {
    int descriptors = 0;
    int threads = 0;
    int shared_mappings = 0;       ///< of files
    std::int64_t allocations = 0;  ///< by operator new, not yet deleted
};
Belongings look();
/// The first of the files and directories that our code has made since arm() and that is still there, but for those
/// in `directory`; or nothing.
std::string left_over(std::string const& directory);
/// What there is more of, in words; empty if nothing.
std::string surplus(Belongings const& before, Belongings const& after);

}  // namespace tapioca::faults
