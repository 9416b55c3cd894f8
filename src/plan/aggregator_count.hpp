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
    std::string why;  ///< a note for people; empty where there is nothing to say
};

/// For writing, each with a partition.
ChosenCount writers(Job const& job);
/// For reading: on one node they share a ring of buffers, on several they have partitions.
ChosenCount readers(Job const& job);

/// No round is made smaller than that without need; nor has a partition less, where the model chooses their number.
inline constexpr std::uint64_t least_round = 64 * core::KiB;

/// Buffers of an aggregator, as asked for or by default.
int buffers(Job const& job);
/// The round that a writer's buffer takes if there is enough data. `populates`: see machine::Reserve.
std::uint64_t full_write_round(Job const& job, bool populates);
std::uint64_t full_read_round(Job const& job);

}  // namespace tapioca::plan
