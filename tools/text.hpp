// How verbs show figures and tables.
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
/// Columns as wide as they must be; the first and the last `words` ones are to the left, figures to the right.
std::string table(Rows const& rows, std::size_t words);
