// The benchmark's results for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"

namespace bench {

/// One workload's rows: median, spread, and ratios to the limit and to the better MPI-IO; and, where the rate of the
/// nodes' links is given, what they allow.
std::string table(std::string const& title, BenchOutcome const& outcome, double link_bytes_per_s);

/// All cells as a JSON array.
std::string to_json(std::vector<Cell> const& cells);

}  // namespace bench
