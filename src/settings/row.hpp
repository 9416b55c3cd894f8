// A row of the table of settings, and how the kinds of values are read into Options and shown again.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tapioca/options.hpp>

namespace tapioca::settings {

/// A setting: a member of Options, a hint tapioca_NAME, a variable TAPIOCA_NAME.
struct Row {
    std::string_view name;
    std::string_view meaning;
    std::string_view otherwise;  ///< the default, for people; empty: none worth a word
    bool (*parse)(Row const& row, Options& options, std::string const& text);  ///< false: a bad value
    std::optional<std::string> (*show)(Options const& options);                ///< nothing where it is not set
    std::string_view expects = {};                           ///< what a value is; empty: one of the words
    int least = 0, most = 0;                                 ///< of a whole number
    std::array<std::string_view, 5> words = {};              ///< as they are kept; empty ones do not count
    std::span<std::string_view const> (*names)() = nullptr;  ///< words that somebody else has a table of
    std::string_view standard_hint = {};                     ///< one of MPI's that means the same
    bool of_job = false;                                     ///< no matter of the machine: not for platform files

    /// What a value is, for people.
    [[nodiscard]] std::string expected() const;
    /// The meaning and the default.
    [[nodiscard]] std::string described() const;
    /// The word that `text` is, in whatever case; empty if it is none.
    [[nodiscard]] std::string_view find_word(std::string_view text) const;
    /// TAPIOCA_NAME.
    [[nodiscard]] std::string variable() const;
};

std::string lower(std::string_view text);
std::string upper(std::string_view text);

/// In the order in which they are listed.
std::span<Row const> table();
/// Null if there is no setting of this name.
Row const* find_row(std::string_view name);

}  // namespace tapioca::settings
