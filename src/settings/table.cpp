// The table of settings: rows.inc has the rows, and this file has the kinds of values.
#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/core.h>

#include "core/persistency.hpp"
#include "core/strategies.hpp"
#include "core/units.hpp"
#include "settings/row.hpp"
#include "settings/settings.hpp"

namespace tapioca::settings {

namespace {

using Text = std::optional<std::string>;
using View = std::string_view;

template <class Number>
std::optional<Number> number(std::string const& text)
{
    Number value{};
    auto const end = text.data() + text.size();
    auto const [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return value;
}

template <auto member>
Text show_number(Options const& options)
{
    return options.*member ? Text(fmt::format("{}", *(options.*member))) : Text();
}

template <auto member>
Text show_text(Options const& options)
{
    return options.*member;
}

template <auto member>
bool parse_bytes(Row const& row, Options& options, std::string const& text)
{
    auto const value = core::parse_bytes(text);
    if (!value || *value < static_cast<std::uint64_t>(row.least) || *value > INT64_MAX / 4) return false;
    options.*member = value;
    return true;
}

template <auto member>
constexpr Row bytes(View name, View meaning, View otherwise)
{
    return {name,
            meaning,
            otherwise,
            parse_bytes<member>,
            show_number<member>,
            "a positive number of bytes such as 4194304 or 4M",
            1};
}

/// A number of bytes that may be 0.
constexpr Row may_be_0(Row row)
{
    row.least = 0;
    row.expects = "a number of bytes such as 4194304 or 4M";
    return row;
}

template <auto member>
bool parse_whole(Row const& row, Options& options, std::string const& text)
{
    auto const value = number<int>(text);
    if (!value || *value < row.least || *value > row.most) return false;
    options.*member = value;
    return true;
}

template <auto member>
constexpr Row whole(View name, View meaning, View otherwise, int least, int most)
{
    return {name,  meaning, otherwise, parse_whole<member>, show_number<member>, "a whole number in its range",
            least, most};
}

constexpr std::array<std::pair<View, AggregatorCount>, 3> count_words = {
    {{"auto", AggregatorCount::automatic}, {"poster", AggregatorCount::poster}, {"paper", AggregatorCount::paper}}};

template <auto member>
bool parse_aggregators(Row const&, Options& options, std::string const& text)
{
    auto const value = number<int>(text);
    if (value && *value >= 1 && *value <= 65536) {
        options.*member = *value;
        return true;
    }
    for (auto const& [word, meant] : count_words)
        if (lower(text) == word) {
            options.*member = meant;
            return true;
        }
    return false;
}

template <auto member>
Text show_aggregators(Options const& options)
{
    auto const& value = options.*member;
    for (auto const& [word, meant] : count_words)
        if (value == meant) return Text(word);
    return value ? Text(std::to_string(value->number().value_or(0))) : Text();
}

/// A number of aggregators, or the name of a rule.
template <auto member>
constexpr Row aggregators(View name, View meaning, View otherwise)
{
    return {name,
            meaning,
            otherwise,
            parse_aggregators<member>,
            show_aggregators<member>,
            "a whole number from 1 to 65536, auto, poster or paper"};
}

template <auto member>
bool parse_flag(Row const&, Options& options, std::string const& text)
{
    auto const word = lower(text);
    bool const yes = word == "1" || word == "true" || word == "yes" || word == "on";
    bool const no = word == "0" || word == "false" || word == "no" || word == "off";
    if (yes || no) options.*member = yes;
    return yes || no;
}

template <auto member>
Text show_flag(Options const& options)
{
    return options.*member ? Text(*(options.*member) ? "1" : "0") : Text();
}

template <auto member>
constexpr Row flag(View name, View meaning, View otherwise)
{
    return {name, meaning, otherwise, parse_flag<member>, show_flag<member>, "0 or 1"};
}

template <auto member>
bool parse_word(Row const& row, Options& options, std::string const& text)
{
    auto const word = row.find_word(text);
    if (!word.empty()) options.*member = std::string(word);
    return !word.empty();
}

template <auto member>
constexpr Row one_of(View name, View meaning, View otherwise, std::array<View, 5> words)
{
    return {name, meaning, otherwise, parse_word<member>, show_text<member>, {}, 0, 0, words};
}

constexpr std::array<View, 5> direct_words = {"auto", "never", "always"};
constexpr std::array<View, 5> stage_mapping_words = {"process", "node"};
constexpr std::array<View, 5> target_drain_words = {"never", "close", "background"};
constexpr std::array<View, 5> stage_sync_words = {"write", "collective", "sync"};
constexpr auto persistency_words = [] {
    std::array<View, 5> result;
    std::copy(core::persistency_names.begin(), core::persistency_names.end(), result.begin());
    return result;
}();

template <auto member>
bool parse_value(Row const& row, Options& options, std::string const& text)
{
    auto const word = row.find_word(text);
    if (word.empty()) return false;
    using Value = std::remove_reference_t<decltype(*(options.*member))>;
    options.*member = static_cast<Value>(std::find(row.words.begin(), row.words.end(), word) - row.words.begin());
    return true;
}

template <auto member, auto const& words>
Text show_value(Options const& options)
{
    if (!(options.*member)) return {};
    auto const number = static_cast<std::size_t>(*(options.*member));
    return number < words.size() && !words[number].empty() ? Text(words[number]) : std::to_string(number);
}

/// A value of an enumeration; the words are in the order of its values.
template <auto member, auto const& words>
constexpr Row value_of(View name, View meaning, View otherwise)
{
    return {name, meaning, otherwise, parse_value<member>, show_value<member, words>, {}, 0, 0, words};
}

/// One of the words of a table elsewhere.
template <auto member>
constexpr Row named(View name, View meaning, View otherwise, std::span<View const> (*names)())
{
    return {name, meaning, otherwise, parse_word<member>, show_text<member>, {}, 0, 0, {}, names};
}

template <auto member>
bool parse_text(Row const&, Options& options, std::string const& text)
{
    if (!text.empty()) options.*member = text;
    return !text.empty();
}

template <auto member>
constexpr Row text(View name, View expects, View meaning, View otherwise)
{
    return {name, meaning, otherwise, parse_text<member>, show_text<member>, expects};
}

template <auto member>
bool parse_tier(Row const&, Options& options, std::string const& text)
{
    auto const is_space = [](unsigned char c) { return std::isspace(c); };
    if (text.empty() || std::any_of(text.begin(), text.end(), is_space)) return false;
    auto const kind = std::min(text.find(':'), text.size());  // only the kind ignores case
    options.*member = lower(text.substr(0, kind)) + text.substr(kind);
    return true;
}

template <auto member>
constexpr Row tier(View name, View meaning, View otherwise)
{
    return {name,
            meaning,
            otherwise,
            parse_tier<member>,
            show_text<member>,
            "the name of a tier, such as dram or ssd:/dir"};
}

/// `off`, `on` or a rate.
bool parse_drain(Row const&, Options& options, std::string const& text)
{
    auto const word = lower(text);
    auto const rate = core::parse_bytes(text);
    if (word != "off" && word != "on" && (!rate || *rate == 0)) return false;
    options.stage_drain = word;
    return true;
}

/// A word or, for nodes and files, a word with a number.
bool parse_subfile(Row const&, Options& options, std::string const& text)
{
    auto const value = lower(text);
    auto const colon = value.find(':');
    auto const word = View(value).substr(0, colon);
    constexpr std::array<View, 5> alone = {"off", "node", "switch", "pset", "gateway"};
    bool sound = colon == std::string::npos && std::find(alone.begin(), alone.end(), word) != alone.end();
    if (colon != std::string::npos && (word == "nodes" || word == "files")) {
        auto const count = number<int>(value.substr(colon + 1));
        sound = count && *count >= 1 && *count <= 65536;
    }
    if (sound) options.subfile = value;
    return sound;
}

/// A word, or a path with a slash. Text without a slash is more likely a misspelt word, and is refused.
bool parse_learn(Row const&, Options& options, std::string const& text)
{
    auto const word = lower(text);
    bool const is_word = word == "on" || word == "off" || word == "always";
    if (!is_word && text.find('/') == std::string::npos) return false;
    options.learn = is_word ? word : text;
    return true;
}

bool parse_seconds(Row const&, Options& options, std::string const& text)
{
    auto const value = number<double>(text);
    if (!value || !(*value >= 0)) return false;
    options.timeout = value;
    return true;
}

constexpr Row also_hint(View hint, Row row)
{
    row.standard_hint = hint;
    return row;
}

constexpr Row of_job(Row row)
{
    row.of_job = true;
    return row;
}

constexpr Row rows[] = {
#include "settings/rows.inc"
};

}  // namespace

std::span<Row const> table()
{
    return rows;
}

}  // namespace tapioca::settings
