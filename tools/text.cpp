#include "text.hpp"

#include <algorithm>

#include <fmt/core.h>

std::string seconds(double s)
{
    if (s < 1e-6) return fmt::format("{:.4g} ns", s * 1e9);
    if (s < 1e-3) return fmt::format("{:.4g} us", s * 1e6);
    return fmt::format("{:.4g} ms", s * 1e3);
}

std::string rate(double bytes_per_s)
{
    return bytes_per_s < 1e9 ? fmt::format("{:.1f} MB/s", bytes_per_s / 1e6)
                             : fmt::format("{:.1f} GB/s", bytes_per_s / 1e9);
}

std::string table(Rows const& rows, std::size_t words)
{
    std::vector<std::size_t> width(rows[0].size());
    for (auto const& row : rows)
        for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
    std::string text;
    for (auto const& row : rows) {
        std::string line = indent;
        for (std::size_t c = 0; c < row.size(); ++c)
            line += c == 0 || c + words >= row.size() ? fmt::format("{:<{}}  ", row[c], width[c])
                                                      : fmt::format("{:>{}}  ", row[c], width[c]);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    return text;
}
