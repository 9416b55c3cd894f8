// The number of aggregators: by the model, by the poster's formula, by the papers' rules, or as asked for. Pure
// functions.
#pragma once

#include <string>

#include "core/units.hpp"
#include "plan/plan.hpp"

namespace tapioca::plan {

/// How many aggregators there will be.
struct ChosenCount {
    int count = 1;
    std::string why;  ///< a note for users; may be empty
};

/// The number of aggregators for writing; each has a partition.
ChosenCount writers(Job const& job);
/// The number of aggregators for reading. On one node they share a ring of buffers; on several nodes each has a
/// partition.
ChosenCount readers(Job const& job);

/// Rounds are not made smaller than this without need. If the model chooses the number of partitions, a partition has
/// at least this many bytes.
inline constexpr std::uint64_t least_round = 64 * core::KiB;

/// The number of buffers of an aggregator, as asked for or by default.
int buffers(Job const& job);
/// The size of a writer's rounds if there is enough data. `populates`: see machine::Reserve.
std::uint64_t full_write_round(Job const& job, bool populates);
std::uint64_t full_read_round(Job const& job);

}  // namespace tapioca::plan
