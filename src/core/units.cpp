#include "core/units.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>
#include <vector>

#include <fmt/core.h>

namespace tapioca::core {

std::optional<std::uint64_t> parse_bytes(std::string_view text)
{
    std::uint64_t number = 0;
    auto const [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    std::string unit(rest, text.data() + text.size());
    std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
    constexpr std::string_view letters = "kmgt";
    int shift = 0;
    if (!unit.empty() && unit != "b") {
        auto const at = letters.find(unit[0]);
        bool const known = unit.size() == 1 || unit.substr(1) == "ib" || unit.substr(1) == "b";
        if (at == std::string_view::npos || !known) return std::nullopt;
        shift = 10 * (static_cast<int>(at) + 1);
    }
    if (number > (UINT64_MAX >> shift)) return std::nullopt;
    return number << shift;
}

std::string format_bytes(std::uint64_t bytes)
{
    constexpr std::string_view names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t unit = 0;
    auto value = static_cast<double>(bytes);
    while (value >= 1024 && unit + 1 < std::size(names)) {
        value /= 1024;
        ++unit;
    }
    bool const whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
    return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, names[unit]);
}

std::size_t edit_distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            std::size_t const above = row[j];
            bool const same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                              std::tolower(static_cast<unsigned char>(b[j - 1]));
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1)});
            diagonal = above;
        }
    }
    return row.back();
}

}  // namespace tapioca::core
