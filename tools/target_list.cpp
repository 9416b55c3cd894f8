// tapioca target list: which files have data on this node's tiers, or where the subfiles of a file are.
#include <ctime>

#include <fmt/core.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/output.hpp"
#include "core/units.hpp"
#include "target_verbs.hpp"
#include "text.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;
namespace subfile = tapioca::subfile;
using TargetJson = nlohmann::ordered_json;

/// "3 d", "2 h", "5 min", "12 s"; "?" if it lies in the future.
std::string age_text(std::uint64_t made)
{
    auto const now = static_cast<std::uint64_t>(std::time(nullptr));
    if (made == 0 || made > now) return "?";
    auto const age = now - made;
    if (age >= 2 * 86400) return fmt::format("{} d", age / 86400);
    if (age >= 2 * 3600) return fmt::format("{} h", age / 3600);
    return age >= 120 ? fmt::format("{} min", age / 60) : fmt::format("{} s", age);
}

/// What is to be known, or done, about data on a tier.
std::string state_on_tier(PlaceOwner const& owner)
{
    if (owner.belonging == Belonging::gone) return "the file is gone, or was moved";
    if (owner.belonging == Belonging::other) return "the file is another one now";
    if (owner.belonging == Belonging::unknown) return "not known: " + owner.reason;
    auto const facts = look_at_set(owner.path);
    if (facts.state == "live") return fmt::format("being written by process {} on {}", facts.process, facts.host);
    if (facts.state == "interrupted") return "interrupted: tapioca subfile recover " + core::shell_word(owner.path);
    return facts.damage.empty() ? facts.state : "damaged: " + facts.damage;
}

struct TierRow {
    subfile::TierPlace place;
    PlaceOwner owner;
    std::string state;
};

std::string text_of_tier(std::vector<TierRow> const& all)
{
    Rows rows{{"file", "here", "subfiles", "age", "job", "host", "state"}};
    for (auto const& [place, owner, state] : all)
        rows.push_back({owner.path, core::format_bytes(bytes_in(place)), std::to_string(place.subfiles.size()),
                        age_text(place.entry.made), place.entry.job[0] ? place.entry.job : "-", place.entry.host,
                        state});
    for (auto& row : rows)
        for (auto& cell : row) cell = core::printable(cell);
    return rows.size() > 1 ? table(rows, 3) : "no file has data there\n";
}

/// Whether a name that is no file is meant to be one: tiers are words, or have a colon.
bool looks_like_file(std::string const& name)
{
    return name.find(':') == std::string::npos && name.find_first_of("./") != std::string::npos;
}

int list_tier(std::string const& tier, bool json)
{
    if (looks_like_file(tier))
        return fail_sub("target list", core::printable(tier) + ": no such file, and no tier, such as ssd:/scratch");
    auto const directory = directory_of_tier(tier);
    if (!directory) return fail_sub("target list", directory.error().text);
    auto const catalogue = subfile::read_catalogue(*directory);
    if (!catalogue) return fail_sub("target list", catalogue.error().text);
    std::vector<TierRow> all;
    for (auto const& place : catalogue->places) {
        auto owner = find_owner(place);
        auto state = state_on_tier(owner);
        all.push_back({place, std::move(owner), std::move(state)});
    }
    if (json) {
        auto rows = TargetJson::array();
        for (auto const& [place, owner, state] : all)
            rows.push_back({{"file", owner.path},
                            {"place", place.path},
                            {"bytes", bytes_in(place)},
                            {"subfiles", place.subfiles},
                            {"job", place.entry.job},
                            {"host", place.entry.host},
                            {"made", place.entry.made},
                            {"state", state}});
        fmt::print("{}\n", rows.dump(1, ' ', false, TargetJson::error_handler_t::replace));
    } else {
        fmt::print("{}", text_of_tier(all));
    }
    for (auto const& line : catalogue->damaged) fmt::print(stderr, "tapioca target list: {}\n", line);
    return 0;
}

char const* name_of(SubfilePlace where)
{
    switch (where) {
    case SubfilePlace::in_directory: return "in the directory";
    case SubfilePlace::here: return "here, on the tier";
    case SubfilePlace::elsewhere: return "on another node";
    case SubfilePlace::missing: break;
    }
    return "missing";
}

int list_file(std::string const& path, bool json)
{
    auto const set = open_set(path);
    if (!set) return fail_sub("target list", set.error().text);
    auto const found = look_for_subfiles(*set);
    if (!found) return fail_sub("target list", found.error().text, 1);
    if (json) {
        auto rows = TargetJson::array();
        for (auto const& one : found->subfiles)
            rows.push_back({{"subfile", one.number},
                            {"bytes", one.bytes},
                            {"where", name_of(one.where)},
                            {"size", one.size},
                            {"host", one.host}});
        TargetJson const facts{{"file", set->path}, {"tier", set->stub.tier}, {"subfiles", rows}};
        fmt::print("{}\n", facts.dump(1, ' ', false, TargetJson::error_handler_t::replace));
        return 0;
    }
    Rows rows{{"subfile", "bytes", "written on", "where"}};
    for (auto const& one : found->subfiles)
        rows.push_back(
            {subfile::subfile_name(one.number), core::format_bytes(one.bytes),
             core::printable(one.host.empty() ? "?" : one.host),
             one.where == SubfilePlace::here || one.where == SubfilePlace::in_directory
                 ? fmt::format("{}{}", name_of(one.where),
                               one.size < one.bytes ? fmt::format(", but only {} B of {} B", one.size, one.bytes) : "")
                 : name_of(one.where)});
    fmt::print("{}: {}\n{}", core::printable(set->path),
               set->stub.tier.empty() ? "no tier" : "tier " + core::printable(set->stub.tier), table(rows, 2));
    return 0;
}

}  // namespace

int list_targets(Words const& words)
{
    std::vector<std::string> names;
    bool json = false;
    CLI::App app("Which files have data on this node's tiers, and in which state they are; or where a file's data is.");
    app.add_option("TIER|FILE", names, "tiers, such as ssd:/scratch, or files [TAPIOCA_TARGET]");
    app.add_flag("--json", json, "as JSON");
    if (auto const status = parse_words(app, "target list", words)) return *status;
    if (names.empty()) {
        auto const tier = tier_of_environment();
        if (!tier) return fail_sub("target list", tier.error().text);
        names.push_back(*tier);
    }
    int status = 0;
    for (auto const& name : names)
        status = std::max(status, ::access(name.c_str(), F_OK) == 0 ? list_file(name, json) : list_tier(name, json));
    return status;
}

}  // namespace tools
