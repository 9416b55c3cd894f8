// Figures of platform files as users write them: "12.5GiB/s", "200Mbit/s", "1.5us".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "machine/topology/topology.hpp"

namespace tapioca::machine {

/// Bytes per second. B, KB, KiB, ... and bit, Kbit, ... each with "/s"; K is 1000, Ki 1024.
std::optional<double> parse_bandwidth(std::string_view text);
/// Seconds, from s, ms, us or ns.
std::optional<double> parse_latency(std::string_view text);

/// An unknown link: 100 Gbit/s and 1.5 us, as in a common cluster.
Level assumed_level(std::string name);

/// TOML values that parse to exactly the same number: text if that is short, otherwise a number.
std::string bandwidth_value(double bytes_per_second);
std::string latency_value(double seconds);
std::string bytes_value(std::uint64_t bytes);
std::string text_value(std::string_view text);

}  // namespace tapioca::machine
