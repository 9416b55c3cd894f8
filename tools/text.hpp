// Formats figures and tables for verbs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

using Rows = std::vector<std::vector<std::string>>;
inline constexpr char const* indent = "          ";

/// "100 ns", "12.5 us".
std::string seconds(double s);
/// "118.0 MB/s", "2.4 GB/s".
std::string rate(double bytes_per_s);
/// Columns are as wide as necessary; the first and the last `words` columns are left-aligned, figures are
/// right-aligned.
std::string table(Rows const& rows, std::size_t words);
