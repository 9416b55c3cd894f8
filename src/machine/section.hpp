// Section: a table of a platform file that hands out its values checked, and says where a bad one is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Its parser asserts of bad input, such as "[+]", what it then refuses properly.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

namespace tapioca::machine {

/// Why a platform file is refused. Thrown inside of parse_platform() only, which makes a Failure of it: checking after
/// every value would hide what a file may hold.
struct Refused {
    std::string text;
};

/// Values are absent if their key is; a value of the wrong type or out of range is refused.
class Section {
public:
    using Keys = std::vector<std::string_view>;

    /// `name` is "" for the file as a whole. `where` and `table` must outlive the section.
    Section(std::string const& where, toml::table const& table, std::string name)
        : where_(&where), table_(&table), name_(std::move(name))
    {
    }

    /// Refuses keys other than `keys`.
    Section const& only(Keys const& keys) const;
    [[nodiscard]] bool has(std::string_view key) const { return table_->contains(key); }

    [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
    [[nodiscard]] std::optional<bool> flag(std::string_view key) const;
    [[nodiscard]] std::optional<int> integer(std::string_view key, int least, int most) const;
    [[nodiscard]] std::optional<std::uint64_t> bytes(std::string_view key) const;
    [[nodiscard]] std::optional<double> bandwidth(std::string_view key) const;
    [[nodiscard]] std::optional<double> latency(std::string_view key) const;
    [[nodiscard]] std::optional<std::vector<int>> integers(std::string_view key, int least, int most) const;
    [[nodiscard]] std::optional<std::vector<std::vector<int>>> matrix(std::string_view key, int least, int most) const;
    [[nodiscard]] std::optional<Section> section(std::string_view key) const;
    /// [[key]]: none if there are none.
    [[nodiscard]] std::vector<Section> sections(std::string_view key) const;
    /// The value as such; null if there is none.
    [[nodiscard]] toml::array const* array(std::string_view key) const;
    [[nodiscard]] toml::table const& table() const { return *table_; }

    /// "file:line:column: section.key why", at the key's value if there is one, else at the section.
    [[noreturn]] void refuse(std::string_view key, std::string const& why) const;
    [[noreturn]] void refuse(toml::node const& at, std::string_view key, std::string const& why) const;

private:
    [[nodiscard]] std::string full(std::string_view key) const;
    [[noreturn]] void refuse_at(toml::source_position at, std::string const& text) const;
    [[nodiscard]] int integer_of(toml::node const& node, std::string_view key, int least, int most) const;
    [[nodiscard]] std::vector<int> integers_of(toml::node const& node, std::string_view key, int least, int most) const;
    [[nodiscard]] std::optional<double> figure(std::string_view key,
                                               std::optional<double> (*parse)(std::string_view)) const;

    std::string const* where_;
    toml::table const* table_;
    std::string name_;
};

}  // namespace tapioca::machine
