// Settings: values from code, hints and the environment, with their origin.
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

/// The options in force, and where each of those that are set came from: "code", "hint" or "environment".
struct Settings {
    Options options;
    std::map<std::string, std::string> origins;  ///< by name; absent for a default

    /// Name, value and origin of a setting that is set.
    struct Line {
        std::string name, value, origin;
    };
    /// All settings that are set, in the order of the table.
    [[nodiscard]] std::vector<Line> lines() const;
    /// A setting that is set, as the user wrote it: `Options::stage=tape`, `tapioca_stage=tape`, `TAPIOCA_STAGE=tape`.
    [[nodiscard]] std::string as_given(std::string_view name) const;
};

/// The default of TAPIOCA_TIMEOUT: long enough for a rank that is only late, and short enough not to lose a day.
inline constexpr double default_timeout = 3600;

/// The environment beats hints, and hints beat code. `environment` and `hints` may contain names that are not ours;
/// these are ignored. An unknown name with our prefix, or a bad value, is an error that says what is valid.
core::Result<Settings> resolve(Options const& code, Pairs const& hints, Pairs const& environment);

/// Sets those of `defaults` that are not set yet; `origin` says where they come from.
core::Status add_defaults(Settings& settings, Pairs const& defaults, std::string const& origin);

/// The TAPIOCA_* variables of this process.
Pairs read_environment();

/// For people: every setting that is set, as "name=value (origin)".
std::vector<std::string> describe(Settings const& settings);

/// Turn settings into text and back, so that those of rank 0 can be broadcast.
std::string pack(Settings const& settings);
Settings unpack(std::string_view text);

}  // namespace tapioca::settings
