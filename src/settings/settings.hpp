// Settings: one table of names; values from code, hints and the environment, with their origin.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tapioca/options.hpp>

#include "core/result.hpp"

namespace tapioca::settings {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// The options in force and where each set one came from: "code", "hint" or "environment".
struct Settings {
    Options options;
    std::map<std::string, std::string> origins;  ///< by name; absent: the default

    /// name=value pairs of what is set, with origin; in the table's order.
    struct Line {
        std::string name, value, origin;
    };
    [[nodiscard]] std::vector<Line> lines() const;
    /// A setting that is set, as the user wrote it: `Options::stage=tape`, `tapioca_stage=tape`, `TAPIOCA_STAGE=tape`.
    [[nodiscard]] std::string as_given(std::string_view name) const;
};

/// TAPIOCA_TIMEOUT where nothing is set: long enough for a rank that is merely late, and short of a lost day.
inline constexpr double default_timeout = 3600;

/// Environment beats hints, hints beat code. `environment` and `hints` may hold foreign names, which are
/// ignored; an unknown name of ours, or a bad value, is an error that names the nearest valid one.
core::Result<Settings> resolve(Options const& code, Pairs const& hints, Pairs const& environment);

/// Sets what is not set yet; `defaults` come from `origin`.
core::Status add_defaults(Settings& settings, Pairs const& defaults, std::string const& origin);

/// The TAPIOCA_* variables of this process.
Pairs read_environment();

/// For people: each that is set as "name=value (origin)".
std::vector<std::string> describe(Settings const& settings);

/// A Settings as text and back, so that rank 0's can be broadcast.
std::string pack(Settings const& settings);
Settings unpack(std::string_view text);

}  // namespace tapioca::settings
