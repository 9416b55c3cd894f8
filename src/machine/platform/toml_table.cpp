#include "machine/platform/toml_table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/units.hpp"
#include "machine/platform/figures.hpp"

namespace tapioca::machine {

TomlTable const& TomlTable::only(Keys const& keys) const
{
    for (auto const& [key, value] : *table_) {
        if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
        auto const close = core::nearest(key.str(), keys);
        auto const hint = core::edit_distance(key.str(), close) <= 3
                              ? fmt::format("did you mean '{}'?", close)
                              : fmt::format("there are {}", fmt::join(keys, ", "));
        refuse_at(key.source().begin,
                  fmt::format("unknown key '{}'{}: {}", key.str(), name_.empty() ? "" : " in " + name_, hint));
    }
    return *this;
}

void TomlTable::one_of(std::string_view key, std::string const& word, Keys const& words) const
{
    if (std::find(words.begin(), words.end(), word) == words.end())
        refuse(key, fmt::format("'{}' is unknown: did you mean '{}'? There are {}", word, core::nearest(word, words),
                                fmt::join(words, ", ")));
}

std::optional<std::string> TomlTable::text(std::string_view key) const
{
    auto const* const node = table_->get(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_string()) refuse(key, "must be a string");
    return node->as_string()->get();
}

std::optional<bool> TomlTable::flag(std::string_view key) const
{
    auto const* const node = table_->get(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_boolean()) refuse(key, "must be true or false");
    return node->as_boolean()->get();
}

int TomlTable::integer_of(toml::node const& node, std::string_view key, int least, int most) const
{
    auto const* const value = node.as_integer();
    if (value == nullptr || value->get() < least || value->get() > most)
        refuse(node, key, fmt::format("must be a whole number from {} to {}", least, most));
    return static_cast<int>(value->get());
}

std::vector<int> TomlTable::integers_of(toml::node const& node, std::string_view key, int least, int most) const
{
    if (!node.is_array()) refuse(node, key, "must be a list of whole numbers");
    std::vector<int> result;
    for (auto const& element : *node.as_array()) result.push_back(integer_of(element, key, least, most));
    return result;
}

std::optional<int> TomlTable::integer(std::string_view key, int least, int most) const
{
    auto const* const node = table_->get(key);
    if (node == nullptr) return std::nullopt;
    return integer_of(*node, key, least, most);
}

std::optional<std::vector<int>> TomlTable::integers(std::string_view key, int least, int most) const
{
    auto const* const node = table_->get(key);
    if (node == nullptr) return std::nullopt;
    return integers_of(*node, key, least, most);
}

std::optional<std::vector<std::vector<int>>> TomlTable::matrix(std::string_view key, int least, int most) const
{
    auto const* const rows = array(key);
    if (rows == nullptr) return std::nullopt;
    std::vector<std::vector<int>> result;
    for (auto const& row : *rows) result.push_back(integers_of(row, key, least, most));
    return result;
}

std::optional<std::uint64_t> TomlTable::bytes(std::string_view key) const
{
    auto const* const node = table_->get(key);
    if (node == nullptr) return std::nullopt;
    std::optional<std::uint64_t> value;
    if (auto const* const number = node->as_integer(); number != nullptr && number->get() > 0)
        value = static_cast<std::uint64_t>(number->get());
    if (auto const* const string = node->as_string()) value = core::parse_bytes(string->get());
    if (!value || *value == 0 || *value > std::uint64_t{1} << 62)  // exact as a double, as tiers store it
        refuse(key, "must be a positive number of bytes such as 16777216 or \"16MiB\"");
    return value;
}

std::optional<double> TomlTable::figure(std::string_view key, std::optional<double> (*parse)(std::string_view)) const
{
    auto const* const node = table_->get(key);
    auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (auto const* const string = node->as_string()) value = parse(string->get());
    return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<double> TomlTable::bandwidth(std::string_view key) const
{
    if (!has(key)) return std::nullopt;
    auto const value = figure(key, &parse_bandwidth);
    if (!value || *value <= 0)
        refuse(key,
               "must be a positive bandwidth such as \"12.5GiB/s\", \"200Mbit/s\" or a number of bytes per second");
    return value;
}

std::optional<double> TomlTable::latency(std::string_view key) const
{
    if (!has(key)) return std::nullopt;
    auto const value = figure(key, &parse_latency);
    if (!value || *value < 0)
        refuse(key, "must be a latency of at least 0 such as \"1.5us\", \"30ms\" or a number of seconds");
    return value;
}

std::optional<TomlTable> TomlTable::section(std::string_view key) const
{
    auto const* const node = table_->get(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_table()) refuse(key, fmt::format("must be a table: [{}]", full(key)));
    return TomlTable(*where_, *node->as_table(), fmt::format("[{}]", full(key)));
}

std::vector<TomlTable> TomlTable::sections(std::string_view key) const
{
    std::vector<TomlTable> result;
    auto const* const node = table_->get(key);
    if (node == nullptr) return result;
    if (!node->is_array()) refuse(key, fmt::format("must be tables: [[{}]]", full(key)));
    for (auto const& element : *node->as_array()) {
        if (!element.is_table()) refuse(element, key, fmt::format("must be tables: [[{}]]", full(key)));
        result.emplace_back(*where_, *element.as_table(), fmt::format("[[{}]]", full(key)));
    }
    return result;
}

toml::array const* TomlTable::array(std::string_view key) const
{
    auto const* const node = table_->get(key);
    if (node != nullptr && !node->is_array()) refuse(key, "must be a list");
    return node == nullptr ? nullptr : node->as_array();
}

void TomlTable::refuse(std::string_view key, std::string const& why) const
{
    auto const* const value = table_->get(key);
    refuse(value == nullptr ? *table_ : *value, key, why);
}

void TomlTable::refuse(toml::node const& at, std::string_view key, std::string const& why) const
{
    refuse_at(at.source().begin, fmt::format("{} {}", full(key), why));
}

void TomlTable::refuse_at(toml::source_position at, std::string const& text) const
{
    throw Refused{fmt::format("{}:{}:{}: {}", *where_, std::max(at.line, 1U), std::max(at.column, 1U), text)};
}

std::string TomlTable::full(std::string_view key) const
{
    std::string name = name_;
    std::erase_if(name, [](char c) { return c == '[' || c == ']'; });
    return name.empty() ? std::string(key) : fmt::format("{}.{}", name, key);
}

}  // namespace tapioca::machine
