// tapioca log list and verify: which logs there are, and whether they are sound.
#include <fmt/core.h>

#include "core/output.hpp"
#include "core/units.hpp"
#include "log_verbs.hpp"
#include "text.hpp"

namespace tools {

namespace core = tapioca::core;
namespace stage = tapioca::stage;

char const* name_of(tapioca::StageMapping mapping)
{
    return mapping == tapioca::StageMapping::node ? "node" : "process";
}

Json to_json(LogFacts const& facts)
{
    return {{"target", facts.target},
            {"host", facts.host},
            {"log", facts.name()},
            {"ranks", facts.ranks},
            {"mapping", name_of(facts.mapping)},
            {"generation", facts.generation},
            {"entries", facts.entries},
            {"bytes", facts.bytes},
            {"state", facts.state},
            {"damage", facts.damage}};
}

std::string to_table(std::vector<LogFacts> const& all)
{
    Rows rows{{"target", "ranks", "generation", "requests", "bytes", "mapping", "state", "host", "log"}};
    for (auto const& facts : all) {
        bool const known = facts.here && facts.ranks > 0;
        rows.push_back({facts.target.empty() ? "?" : facts.target, facts.ranks > 0 ? std::to_string(facts.ranks) : "?",
                        known ? std::to_string(facts.generation) : "?", known ? std::to_string(facts.entries) : "?",
                        known ? core::format_bytes(facts.bytes) : "?", facts.ranks > 0 ? name_of(facts.mapping) : "?",
                        facts.state, facts.host.empty() ? "?" : facts.host, facts.name()});
    }
    for (auto& row : rows)
        for (auto& cell : row) cell = core::printable(cell);
    return table(rows, 4);
}

int list_logs(Words const& words)
{
    std::vector<std::string> paths;
    bool json = false;
    CLI::App app("What logs there are.");
    app.add_option("PATH", paths, "directories, targets or .meta files [. /dev/shm]");
    app.add_flag("--json", json, "as JSON");
    if (auto const status = parse_log(app, "list", words)) return *status;
    if (paths.empty()) paths = {".", "/dev/shm"};
    auto const all = look_at_all(paths, false);
    if (!all) return fail_log("list", all.error().text);
    if (json) {
        auto rows = Json::array();
        for (auto const& facts : *all) rows.push_back(to_json(facts));
        fmt::print("{}\n", rows.dump(1, ' ', false, Json::error_handler_t::replace));
    } else {
        fmt::print("{}", all->empty() ? std::string("no logs\n") : to_table(*all));
    }
    return 0;
}

int verify_logs(Words const& words)
{
    std::vector<std::string> paths;
    CLI::App app("Checks heads, blocks, entries and the data's checksums. Status 1 if something is wrong or missing.");
    app.add_option("PATH", paths, "targets, directories of logs or .meta files")->required();
    if (auto const status = parse_log(app, "verify", words)) return *status;
    auto const all = look_at_all(paths, true);
    if (!all) return fail_log("verify", all.error().text);
    int status = 0;
    for (auto const& facts : *all) {
        auto const name = core::printable(facts.name());
        if (facts.foreign) {
            fmt::print("not yours: {}\n", core::printable(facts.damage.front()));
            continue;
        }
        if (!facts.here && facts.damage.empty()) fmt::print("missing: {}: {}\n", core::printable(facts.host), name);
        for (auto const& what : facts.damage) fmt::print("damaged: {}\n", core::printable(what));
        bool const sound = facts.here && facts.damage.empty();
        if (sound) fmt::print("{}: sound: {} requests, {} B\n", name, facts.entries, facts.bytes);
        if (!sound) status = 1;
    }
    return status;
}

}  // namespace tools
