#include "settings/settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>
#include <optional>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "core/strategies.hpp"
#include "core/units.hpp"

namespace tapioca::settings {

namespace {

using Text = std::optional<std::string>;

/// One row of the table: how a value is read into Options and shown again. `parse` returns false on a bad value.
struct Row {
    std::string_view name;
    std::string_view expects;
    std::string_view meaning;
    std::function<bool(Options&, std::string const&)> parse;
    std::function<Text(Options const&)> show;
};

std::string lower(std::string_view text)
{
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
    return result;
}

template <class Number>
std::optional<Number> number(std::string const& text)
{
    Number value{};
    auto const end = text.data() + text.size();
    auto const [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return value;
}

Row bytes_row(std::string_view name, std::string_view meaning, std::optional<std::uint64_t> Options::*member)
{
    return {name, "a positive number of bytes such as 4194304 or 4M", meaning,
            [member](Options& options, std::string const& text) {
                auto const value = core::parse_bytes(text);
                if (!value || *value == 0 || *value > INT64_MAX / 4) return false;
                options.*member = value;
                return true;
            },
            [member](Options const& options) {
                return options.*member ? Text(std::to_string(*(options.*member))) : Text();
            }};
}

Row int_row(std::string_view name, std::string_view meaning, int least, int most, std::optional<int> Options::*member)
{
    static constexpr std::string_view expects = "a whole number in its range";
    return {name, expects, meaning,
            [=](Options& options, std::string const& text) {
                auto const value = number<int>(text);
                if (!value || *value < least || *value > most) return false;
                options.*member = value;
                return true;
            },
            [member](Options const& options) {
                return options.*member ? Text(std::to_string(*(options.*member))) : Text();
            }};
}

constexpr std::array<std::pair<std::string_view, int>, 2> number_words = {
    {{"auto", nbaggr_auto}, {"poster", nbaggr_poster}}};

/// A number of aggregators, or one of the words for it.
Row aggregators_row(std::string_view name, std::string_view meaning, std::optional<int> Options::*member)
{
    return {name, "a whole number from 1 to 65536, auto or poster", meaning,
            [member](Options& options, std::string const& text) {
                auto value = number<int>(text);
                if (value && (*value < 1 || *value > 65536)) return false;
                for (auto const& [word, meant] : number_words)
                    if (lower(text) == word) value = meant;
                if (value) options.*member = value;
                return value.has_value();
            },
            [member](Options const& options) {
                for (auto const& [word, meant] : number_words)
                    if (options.*member == meant) return Text(word);
                return options.*member ? Text(std::to_string(*(options.*member))) : Text();
            }};
}

Row bool_row(std::string_view name, std::string_view meaning, std::optional<bool> Options::*member)
{
    return {
        name, "0 or 1", meaning,
        [member](Options& options, std::string const& text) {
            auto const word = lower(text);
            bool const yes = word == "1" || word == "true" || word == "yes" || word == "on";
            bool const no = word == "0" || word == "false" || word == "no" || word == "off";
            if (yes || no) options.*member = yes;
            return yes || no;
        },
        [member](Options const& options) { return options.*member ? Text(*(options.*member) ? "1" : "0") : Text(); }};
}

Row word_row(std::string_view name, std::string_view expects, std::string_view meaning,
             std::vector<std::string_view> const& words, std::optional<std::string> Options::*member)
{
    return {name, expects, meaning,
            [=](Options& options, std::string const& text) {
                for (auto const word : words)
                    if (lower(word) == lower(text)) {
                        options.*member = std::string(word);
                        return true;
                    }
                return false;
            },
            [member](Options const& options) { return options.*member; }};
}

std::string_view one_of_strategies()
{
    static auto const& text = *new std::string(fmt::format("one of {}", fmt::join(core::strategy_names(), ", ")));
    return text;
}

Row text_row(std::string_view name, std::string_view expects, std::string_view meaning,
             std::optional<std::string> Options::*member)
{
    return {name, expects, meaning,
            [member](Options& options, std::string const& text) {
                if (!text.empty()) options.*member = text;
                return !text.empty();
            },
            [member](Options const& options) { return options.*member; }};
}

Row tier_row(std::string_view name, std::string_view meaning, std::optional<std::string> Options::*member)
{
    return {name, "the name of a tier, such as dram or ssd:/dir", meaning,
            [member](Options& options, std::string const& text) {
                auto const is_space = [](unsigned char c) { return std::isspace(c); };
                if (text.empty() || std::any_of(text.begin(), text.end(), is_space)) return false;
                auto const kind = std::min(text.find(':'), text.size());  // a place keeps its case
                options.*member = lower(text.substr(0, kind)) + text.substr(kind);
                return true;
            },
            [member](Options const& options) { return options.*member; }};
}

constexpr std::array<std::string_view, 3> direct_words = {"auto", "never", "always"};

std::vector<Row> const& table()
{
    // Never destroyed: files may be opened and closed while a program exits.
    static auto const& rows = *new std::vector<Row>{
        bytes_row("buffersize", "bytes of one aggregation buffer, rounded up to the file system's block",
                  &Options::buffersize),
        int_row("buffers", "buffers per aggregator, 1 to 64 (default 2; on several nodes 8)", 1, 64, &Options::buffers),
        aggregators_row("nbaggr", "number of aggregators: a number, auto (default) or poster (by memory)",
                        &Options::nbaggr),
        aggregators_row("nbaggr_read", "the same for reading (default: as nbaggr)", &Options::nbaggr_read),
        int_row("aggr_per_ost", "aggregators for each server of a striped file, 1 to 64 (default 2)", 1, 64,
                &Options::aggr_per_ost),
        tier_row("aggrtier", "tier of the aggregation buffers (default: the cheapest with room)", &Options::aggrtier),
        word_row("strategy", one_of_strategies(), "placement of aggregators (default CONTENTION_AWARE)",
                 {core::strategy_names().begin(), core::strategy_names().end()}, &Options::strategy),
        word_row("model", "paper-2024, paper-2017 or default", "cost model that places the aggregators",
                 {"paper-2024", "paper-2017", "default"}, &Options::model),
        text_row("platform", "a file, or the name of a shipped platform", "description of the machine",
                 &Options::platform),
        word_row("persistency", "none, job or permanent", "what the tier of the buffers must outlive (default none)",
                 {"none", "job", "permanent"}, &Options::persistency),
        {"direct", "auto, never or always", "whether ranks access the file themselves (default auto)",
         [](Options& options, std::string const& text) {
             auto const at = std::find(direct_words.begin(), direct_words.end(), lower(text));
             if (at == direct_words.end()) return false;
             options.direct = static_cast<Direct>(at - direct_words.begin());
             return true;
         },
         [](Options const& options) {
             return options.direct ? Text(direct_words[static_cast<std::size_t>(*options.direct)]) : Text();
         }},
        word_row("transport", "p2p or rma", "how data crosses nodes: p2p (messages, default) or rma (put and get)",
                 {"p2p", "rma"}, &Options::transport),
        int_row("ranks_per_node", "pretend that every so many ranks are a node, 1 to 65536", 1, 65536,
                &Options::ranks_per_node),
        bytes_row("memory", "cap for the buffers and bookkeeping of a process", &Options::memory),
        bytes_row("striping_unit", "bytes of a stripe of a new file, where the file system has stripes",
                  &Options::striping_unit),
        int_row("striping_factor", "servers that a new file's stripes go round, 1 to 100000", 1, 100'000,
                &Options::striping_factor),
        tier_row("stage", "tier of a log that writes go to first, such as ssd:/dir or dram (default: none)",
                 &Options::stage),
        word_row("stage_mapping", "process or node", "whose requests share a log (default: by the tier)",
                 {"process", "node"}, &Options::stage_mapping),
        word_row("stage_sync", "write, collective or sync", "when the log is made durable (default sync)",
                 {"write", "collective", "sync"}, &Options::stage_sync),
        {"stage_drain", "off, on or a number of bytes a second such as 500M",
         "whether and how fast the log is drained in the background (default off)",
         [](Options& options, std::string const& text) {
             auto const word = lower(text);
             auto const rate = core::parse_bytes(text);
             if (word != "off" && word != "on" && (!rate || *rate == 0)) return false;
             options.stage_drain = word;
             return true;
         },
         [](Options const& options) { return options.stage_drain; }},
        bytes_row("stage_size", "bytes of log that a process may have (default: what the tier has)",
                  &Options::stage_size),
        bytes_row("stage_through",
                  "drop-in library: independent writes below so many bytes go to the file at once (default 64K)",
                  &Options::stage_through),
        bool_row("devnull", "gather, but do not write", &Options::devnull),
        bool_row("check", "check that ranks pass the same arguments and do not overlap", &Options::check),
        {"timeout", "a number of seconds, not negative",
         "seconds to wait for other ranks before aborting the job (default 3600; 0: for ever)",
         [](Options& options, std::string const& text) {
             auto const value = number<double>(text);
             if (!value || !(*value >= 0)) return false;
             options.timeout = value;
             return true;
         },
         [](Options const& options) { return options.timeout ? Text(fmt::format("{}", *options.timeout)) : Text(); }},
        text_row("report", "a file name", "JSON account of every file, written at close", &Options::report),
        bool_row("off", "drop-in library: leave everything to the MPI library", &Options::off),
        text_row("files", "patterns of paths separated by colons, such as *.h5:/scratch/*",
                 "drop-in library: serve only files whose path or name matches", &Options::files),
        bool_row("commsplit", "accepted for the original library's sake; has no effect", &Options::commsplit),
    };
    return rows;
}

/// Names that belong to sites' module files.
constexpr std::array<std::string_view, 4> of_sites = {"root", "dir", "home", "version"};
/// Standard MPI-IO hints that mean the same as ours.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> standard_hints = {
    {{"cb_nodes", "nbaggr"},
     {"cb_buffer_size", "buffersize"},
     {"striping_unit", "striping_unit"},
     {"striping_factor", "striping_factor"}}};

/// Names and values may hold anything, a message is one line.
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
    auto const row = std::find_if(table().begin(), table().end(), [&](auto const& r) { return r.name == name; });
    if (row == table().end()) {
        std::vector<std::string_view> names;
        for (auto const& r : table()) names.push_back(r.name);
        std::string prefix = shown.substr(0, shown.size() - name.size());
        std::string best(core::nearest(name, names));
        if (origin == "environment")
            std::transform(best.begin(), best.end(), best.begin(), [](unsigned char c) { return std::toupper(c); });
        return refused(fmt::format("unknown setting {}: did you mean {}{}?", shown, prefix, best));
    }
    if (!row->parse(settings.options, value))
        return refused(fmt::format("{}={}: expected {} ({})", shown, value, row->expects, row->meaning));
    settings.origins[std::string(name)] = origin;
    return {};
}

}  // namespace

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

core::Result<Settings> resolve(Options const& code, Pairs const& hints, Pairs const& environment)
{
    Settings settings;
    Settings given{code, {}};
    for (auto const& line : given.lines())  // through the same checks as text
        if (auto status = set(settings, line.name, "option " + line.name, line.value, "code"); !status)
            return tl::unexpected(status.error());

    for (auto const& [hint, name] : standard_hints)
        for (auto const& [key, value] : hints)
            if (key == hint)
                if (auto status = set(settings, name, key, value, "hint"); !status)
                    return tl::unexpected(status.error());
    constexpr std::string_view hint_prefix = "tapioca_";
    for (auto const& [key, value] : hints)
        if (key.starts_with(hint_prefix))
            if (auto status = set(settings, key.substr(hint_prefix.size()), key, value, "hint"); !status)
                return tl::unexpected(status.error());

    constexpr std::string_view prefix = "TAPIOCA_";
    for (auto const& [key, value] : environment) {
        if (!key.starts_with(prefix)) continue;
        auto const name = lower(key.substr(prefix.size()));
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
        if (error != std::errc{}) text = {};  // nothing that pack() made
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

std::string help()
{
    std::string text;
    for (auto const& row : table()) {
        std::string name(row.name);
        std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
        text += fmt::format("  TAPIOCA_{:<15} {}\n", name, row.meaning);
    }
    return text;
}

}  // namespace tapioca::settings
