// A row of the table of settings, with functions that read a value into Options and show it again.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tapioca/options.hpp>

namespace tapioca::settings {

/// A setting: a member of Options, the hint tapioca_NAME, and the variable TAPIOCA_NAME.
struct Row {
    std::string_view name;
    std::string_view meaning;
    std::string_view otherwise;  ///< the default, for people; empty if none need be mentioned
    bool (*parse)(Row const& row, Options& options, std::string const& text);  ///< false for a bad value
    std::optional<std::string> (*show)(Options const& options);                ///< nothing if it is not set
    std::string_view expects = {};                           ///< what a value looks like; empty: it is one of the words
    int least = 0, most = 0;                                 ///< range of a whole number
    std::array<std::string_view, 5> words = {};              ///< the words, as they are kept; empty ones do not count
    std::span<std::string_view const> (*names)() = nullptr;  ///< words from a table elsewhere
    std::string_view standard_hint = {};                     ///< a standard hint of MPI with the same meaning
    bool of_job = false;                                     ///< depends on the job, so not for platform files

    /// What a value looks like, for people.
    [[nodiscard]] std::string expected() const;
    /// The meaning and the default.
    [[nodiscard]] std::string described() const;
    /// The word that equals `text`, ignoring case; empty if there is none.
    [[nodiscard]] std::string_view find_word(std::string_view text) const;
    /// TAPIOCA_NAME.
    [[nodiscard]] std::string variable() const;
};

std::string lower(std::string_view text);
std::string upper(std::string_view text);

/// All settings, in the order in which they are listed.
std::span<Row const> table();
/// Null if there is no setting of this name.
Row const* find_row(std::string_view name);

}  // namespace tapioca::settings
