#include "machine/platform/figures.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>

#include <fmt/core.h>

#include "core/units.hpp"

namespace tapioca::machine {

namespace {

/// `scale` multiplies if `divide` is not set, and divides otherwise: 1.5us is 1.5 / 1e6, which is the nearest number to
/// 1.5e-6.
struct Unit {
    std::string_view name;
    double scale;
    bool divide = false;
};

// In the order in which they are tried: values are shown in the largest suitable unit.
constexpr std::array<Unit, 15> bandwidth_units = {{{"TiB/s", 1099511627776.0},
                                                   {"TB/s", 1e12},
                                                   {"GiB/s", 1073741824.0},
                                                   {"GB/s", 1e9},
                                                   {"MiB/s", 1048576.0},
                                                   {"MB/s", 1e6},
                                                   {"KiB/s", 1024.0},
                                                   {"KB/s", 1e3},
                                                   {"kB/s", 1e3},
                                                   {"B/s", 1},
                                                   {"Tbit/s", 0.125e12},
                                                   {"Gbit/s", 0.125e9},
                                                   {"Mbit/s", 0.125e6},
                                                   {"Kbit/s", 0.125e3},
                                                   {"bit/s", 0.125}}};
constexpr std::array<Unit, 4> latency_units = {{{"s", 1}, {"ms", 1e3, true}, {"us", 1e6, true}, {"ns", 1e9, true}}};

std::optional<double> parse_figure(std::string_view text, std::span<Unit const> units)
{
    double number = 0;
    auto const [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || !std::isfinite(number)) return std::nullopt;
    std::string_view name(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
    if (name.starts_with(' ')) name.remove_prefix(1);
    for (auto const& unit : units)
        if (unit.name == name) return unit.divide ? number / unit.scale : number * unit.scale;
    return std::nullopt;
}

std::string figure_value(double figure, std::span<Unit const> units)
{
    for (auto const& unit : units) {
        auto const in_unit = unit.divide ? figure * unit.scale : figure / unit.scale;
        auto const text = fmt::format("{:.6g}{}", in_unit, unit.name);
        bool const suits = in_unit >= 0.1 && in_unit < 1e4 && text.find('e') == std::string::npos;
        if (suits && parse_figure(text, units) == figure) return fmt::format("\"{}\"", text);
    }
    return fmt::format("{}", figure);
}

}  // namespace

std::optional<double> parse_bandwidth(std::string_view text)
{
    return parse_figure(text, bandwidth_units);
}

std::optional<double> parse_latency(std::string_view text)
{
    return parse_figure(text, latency_units);
}

Level assumed_level(std::string name)
{
    return {std::move(name), 1.5e-6, 12.5e9};
}

std::string bandwidth_value(double bytes_per_second)
{
    return figure_value(bytes_per_second, bandwidth_units);
}

std::string latency_value(double seconds)
{
    return figure_value(seconds, latency_units);
}

std::string bytes_value(std::uint64_t whole)
{
    for (auto const& [unit, name] : {std::pair{core::GiB, "GiB"}, {core::MiB, "MiB"}, {core::KiB, "KiB"}})
        if (whole != 0 && whole % unit == 0) return fmt::format("\"{}{}\"", whole / unit, name);
    return fmt::format("{}", whole);
}

std::string text_value(std::string_view text)
{
    std::string result = "\"";
    for (char const c : text) {
        if (c == '"' || c == '\\')
            result += fmt::format("\\{}", c);
        else if (static_cast<unsigned char>(c) < ' ' || c == 0x7F)
            result += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        else
            result += c;
    }
    return result + '"';
}

}  // namespace tapioca::machine
