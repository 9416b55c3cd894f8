#include "settings/settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "core/units.hpp"
#include "settings/row.hpp"

namespace tapioca::settings {

namespace {

/// Names that module files of computing sites use.
constexpr std::array<std::string_view, 4> of_sites = {"root", "dir", "home", "version"};

constexpr std::string_view hint_prefix = "tapioca_";
constexpr std::string_view variable_prefix = "TAPIOCA_";
constexpr char const* in_code = "Options::";

/// Names and values may contain any character, but a message must be one line.
tl::unexpected<core::Failure> refused(std::string text)
{
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = '?';
    return core::fail(Errc::setting, std::move(text));
}

/// Sets one value. `shown` is the name as the user wrote it.
core::Status set(Settings& settings, std::string_view name, std::string const& shown, std::string const& value,
                 std::string const& origin)
{
    auto const* const row = find_row(name);
    if (row == nullptr) {
        std::vector<std::string_view> names;
        for (auto const& r : table()) names.push_back(r.name);
        std::string prefix = shown.substr(0, shown.size() - name.size());
        std::string best(core::nearest(name, names));
        if (origin == "environment") best = upper(best);
        return refused(fmt::format("unknown setting {}: did you mean {}{}?", shown, prefix, best));
    }
    if (!row->parse(*row, settings.options, value))
        return refused(fmt::format("{}={}: expected {} ({})", shown, value, row->expected(), row->described()));
    settings.origins[std::string(name)] = origin;
    return {};
}

}  // namespace

std::string lower(std::string_view text)
{
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
    return result;
}

std::string upper(std::string_view text)
{
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::toupper(c); });
    return result;
}

std::string Row::expected() const
{
    if (!expects.empty()) return std::string(expects);
    if (names) return fmt::format("one of {}", fmt::join(names(), ", "));
    auto const count = words.size() - static_cast<std::size_t>(std::count(words.begin(), words.end(), ""));
    return fmt::format("{} or {}", fmt::join(std::span(words).first(count - 1), ", "), words[count - 1]);
}

std::string Row::described() const
{
    return otherwise.empty() ? std::string(meaning) : fmt::format("{} (default: {})", meaning, otherwise);
}

std::string_view Row::find_word(std::string_view text) const
{
    auto const all = names ? names() : std::span<std::string_view const>(words);
    auto const found = std::find_if(all.begin(), all.end(),
                                    [&](auto const word) { return !word.empty() && lower(word) == lower(text); });
    return found == all.end() ? std::string_view() : *found;
}

std::string Row::variable() const
{
    return "TAPIOCA_" + upper(name);
}

Row const* find_row(std::string_view name)
{
    auto const rows = table();
    auto const row = std::find_if(rows.begin(), rows.end(), [&](Row const& r) { return r.name == name; });
    return row == rows.end() ? nullptr : &*row;
}

std::vector<Settings::Line> Settings::lines() const
{
    std::vector<Line> result;
    for (auto const& row : table())
        if (auto const value = row.show(options)) {
            auto const origin = origins.find(std::string(row.name));
            result.push_back({std::string(row.name), *value, origin == origins.end() ? "default" : origin->second});
        }
    return result;
}

std::string Settings::as_given(std::string_view name) const
{
    for (auto const& line : lines()) {
        if (line.name != name) continue;
        if (line.origin == "environment") return fmt::format("{}{}={}", variable_prefix, upper(name), line.value);
        if (line.origin == "hint") return fmt::format("{}{}={}", hint_prefix, name, line.value);
        if (line.origin == "code") return fmt::format("{}{}={}", in_code, name, line.value);
        return fmt::format("{}={} ({})", name, line.value, line.origin);
    }
    return std::string(name);
}

core::Result<Settings> resolve(Options const& code, Pairs const& hints, Pairs const& environment)
{
    Settings settings;
    Settings given{code, {}};
    for (auto const& line : given.lines())  // checked in the same way as text
        if (auto status = set(settings, line.name, in_code + line.name, line.value, "code"); !status)
            return tl::unexpected(status.error());

    for (auto const& row : table())
        for (auto const& [key, value] : hints)
            if (!row.standard_hint.empty() && key == row.standard_hint)
                if (auto status = set(settings, row.name, key, value, "hint"); !status)
                    return tl::unexpected(status.error());
    for (auto const& [key, value] : hints)
        if (key.starts_with(hint_prefix))
            if (auto status = set(settings, key.substr(hint_prefix.size()), key, value, "hint"); !status)
                return tl::unexpected(status.error());

    for (auto const& [key, value] : environment) {
        if (!key.starts_with(variable_prefix)) continue;
        auto const name = lower(key.substr(variable_prefix.size()));
        if (std::find(of_sites.begin(), of_sites.end(), name) != of_sites.end()) continue;
        if (auto status = set(settings, name, key, value, "environment"); !status)
            return tl::unexpected(status.error());
    }
    return settings;
}

core::Status add_defaults(Settings& settings, Pairs const& defaults, std::string const& origin)
{
    for (auto const& [name, value] : defaults)
        if (!settings.origins.contains(name))
            if (auto status = set(settings, name, name, value, origin); !status) return status;
    return {};
}

Pairs read_environment()
{
    Pairs pairs;
    for (char** entry = environ; entry && *entry; ++entry) {
        std::string_view const text(*entry);
        auto const equals = text.find('=');
        if (text.starts_with("TAPIOCA_") && equals != std::string_view::npos)
            pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return pairs;
}

std::vector<std::string> describe(Settings const& settings)
{
    std::vector<std::string> texts;
    for (auto const& [name, value, origin] : settings.lines())
        texts.push_back(fmt::format("{}={} ({})", name, value, origin));
    return texts;
}

std::string pack(Settings const& settings)
{
    std::string text;
    for (auto const& [name, value, origin] : settings.lines())
        for (auto const& part : {name, value, origin}) text += fmt::format("{}:{}", part.size(), part);
    return text;
}

Settings unpack(std::string_view text)
{
    auto const next = [&text] {
        std::size_t bytes = 0;
        auto const [colon, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
        text.remove_prefix(static_cast<std::size_t>(colon - text.data()));
        if (text.starts_with(':')) text.remove_prefix(1);
        if (error != std::errc{}) text = {};  // not made by pack()
        std::string part(text.substr(0, bytes));
        text.remove_prefix(part.size());
        return part;
    };
    Settings settings;
    while (!text.empty()) {
        auto const name = next(), value = next(), origin = next();
        (void)set(settings, name, name, value, origin);
    }
    return settings;
}

}  // namespace tapioca::settings
