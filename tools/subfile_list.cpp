// tapioca subfile list: which files consist of subfiles, and what is in them.
#include <algorithm>
#include <ctime>
#include <filesystem>

#include <fmt/core.h>

#include "core/output.hpp"
#include "core/units.hpp"
#include "subfile/stub.hpp"
#include "subfile_verbs.hpp"
#include "text.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;
namespace fs = std::filesystem;

/// Local time; "?" if it is not known.
std::string time_text(std::uint64_t seconds)
{
    auto const time = static_cast<std::time_t>(seconds);
    std::tm local = {};
    char text[64] = {};
    bool const known = seconds > 0 && ::localtime_r(&time, &local) &&
                       std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local) > 0;
    return known ? text : "?";
}

Json json_of(SetFacts const& facts)
{
    Json json{{"file", facts.path}, {"state", facts.state}};
    if (!facts.damage.empty()) {
        json["damage"] = facts.damage;
        return json;
    }
    json["size"] = facts.size;
    json["layout"] = facts.layout;
    json["subfiles"] = facts.subfiles;
    if (!facts.tier.empty()) json["tier"] = facts.tier;
    if (!facts.tier.empty()) json["on_tiers"] = facts.on_tiers;
    json["chunks"] = facts.chunks;
    json["data_bytes"] = facts.data_bytes;
    json["dead_bytes"] = facts.dead_bytes ? Json(*facts.dead_bytes) : Json();
    json["host"] = facts.host;
    json["process"] = facts.process > 0 ? Json(facts.process) : Json();
    json["ranks"] = facts.ranks;
    json["nodes"] = facts.nodes;
    json["written"] = facts.written;
    return json;
}

std::string state_text(SetFacts const& facts)
{
    if (facts.state == "live") return fmt::format("being written by process {} on {}", facts.process, facts.host);
    if (facts.state == "interrupted" && facts.process > 0)
        return fmt::format("interrupted (process {} on {})", facts.process, facts.host);
    if (facts.on_tiers > 0)
        return fmt::format("{}, {} subfile{} on {} of the nodes", facts.state, facts.on_tiers,
                           facts.on_tiers == 1 ? "" : "s", facts.tier);
    return facts.state;
}

/// One row for each set, and a line for each that cannot be read.
std::string table_of(std::vector<SetFacts> const& all)
{
    Rows rows{{"file", "size", "subfiles", "chunks", "data", "dead", "layout", "state", "by", "written"}};
    std::string damaged;
    for (auto const& facts : all) {
        if (!facts.damage.empty()) {
            damaged += fmt::format("damaged: {}\n", core::printable(facts.damage));
            continue;
        }
        rows.push_back(
            {facts.path, core::format_bytes(static_cast<std::uint64_t>(facts.size)), std::to_string(facts.subfiles),
             std::to_string(facts.chunks), core::format_bytes(facts.data_bytes),
             facts.dead_bytes ? core::format_bytes(*facts.dead_bytes) : "?", facts.layout, state_text(facts),
             facts.ranks > 0 ? fmt::format("{} rank{} on {}", facts.ranks, facts.ranks == 1 ? "" : "s", facts.host)
                             : "?",
             time_text(facts.written)});
    }
    for (auto& row : rows)
        for (auto& cell : row) cell = core::printable(cell);
    return (rows.size() > 1 ? table(rows, 4) : "") + damaged;
}

/// The stubs in a directory, the damaged ones among them.
core::Result<std::vector<std::string>> stubs_in(std::string const& directory)
{
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
        std::error_code unknown;
        if (at->symlink_status(unknown).type() != fs::file_type::regular) continue;
        auto const path = directory == "." ? at->path().filename().string() : at->path().string();
        auto const stub = tapioca::subfile::find_stub(path);
        if (!stub || *stub) found.push_back(path);
    }
    if (error) return core::fail_errno(error.value(), directory);
    std::sort(found.begin(), found.end());
    return found;
}

}  // namespace

int list_sets(Words const& words)
{
    std::vector<std::string> paths;
    bool json = false;
    CLI::App app("Which files consist of subfiles.");
    app.add_option("PATH", paths, "directories, or files that consist of subfiles [.]");
    app.add_flag("--json", json, "as JSON");
    if (auto const status = parse_words(app, "subfile list", words)) return *status;
    if (paths.empty()) paths = {"."};
    std::vector<SetFacts> all;
    for (auto const& path : paths) {
        std::error_code error;
        bool const directory = fs::is_directory(path, error);
        auto const stub = tapioca::subfile::find_stub(path);
        if (!directory && stub && !*stub) {
            auto const why = open_set(path);
            return fail_sub("subfile list", why ? path : why.error().text);
        }
        core::Result<std::vector<std::string>> const stubs =
            directory ? stubs_in(path) : std::vector<std::string>{path};
        if (!stubs) return fail_sub("subfile list", stubs.error().text);
        for (auto const& one : *stubs) all.push_back(look_at_set(one));
    }
    if (json) {
        auto rows = Json::array();
        for (auto const& facts : all) rows.push_back(json_of(facts));
        fmt::print("{}\n", rows.dump(1, ' ', false, Json::error_handler_t::replace));
    } else {
        fmt::print("{}", all.empty() ? std::string("no files that consist of subfiles\n") : table_of(all));
    }
    return 0;
}

}  // namespace tools
