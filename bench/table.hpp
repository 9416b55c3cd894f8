// The benchmark's results for users and for programs.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"

namespace bench {

/// 12345.6 as "12,346".
std::string thousands(double value);

/// One workload's rows: median, spread, and ratios to the limit and to the better MPI-IO; and, if the rate of the
/// nodes' links is given, the rate that they allow.
std::string table(std::string const& title, BenchOutcome const& outcome, double link_bytes_per_s);

/// All cells as a JSON array.
std::string to_json(std::vector<Cell> const& cells);

}  // namespace bench
