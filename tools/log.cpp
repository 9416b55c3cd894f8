#include "log.hpp"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <set>
#include <thread>

#include <fmt/core.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "core/output.hpp"
#include "core/units.hpp"
#include "launch.hpp"
#include "log_look.hpp"
#include "text.hpp"

namespace {

namespace core = tapioca::core;
namespace stage = tapioca::stage;
using Json = nlohmann::ordered_json;

char const* const usage =
    "tapioca log: the logs of staged files, which are beside the target's marker TARGET.tapioca, or left of a crash\n"
    "\n"
    "  tapioca log list [PATH...]        what logs there are: in directories, or of targets [. /dev/shm]\n"
    "  tapioca log dump PATH             every request\n"
    "  tapioca log verify PATH...        checks everything; status 1 and a line for each thing that is wrong\n"
    "  tapioca log read PATH             a request's data, or the requests of a log that is being written\n"
    "  tapioca log recover TARGET        brings the logs into the file; alone, or under mpiexec on all hosts\n"
    "  tapioca log discard PATH          removes logs and marker: what is in them is lost\n"
    "\n"
    "PATH is a target, a directory of logs or a .meta file. Each has a --help.\n";

int fail_log(std::string const& verb, std::string const& what, int status = 2)
{
    fmt::print(stderr, "tapioca log {}: {}\n", verb, core::printable(what));
    return status;
}

/// Nothing, or the exit status with which to end.
std::optional<int> parse(CLI::App& app, std::string const& verb, std::vector<std::string> const& words)
{
    app.name("tapioca log " + verb);
    try {
        app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (CLI::ParseError const& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        return fail_log(verb, error.what());
    }
    return {};
}

char const* name_of(stage::Mapping mapping)
{
    return mapping == stage::Mapping::node ? "node" : "process";
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

int list(std::vector<std::string> const& words)
{
    std::vector<std::string> paths;
    bool json = false;
    CLI::App app("What logs there are.");
    app.add_option("PATH", paths, "directories, targets or .meta files [. /dev/shm]");
    app.add_flag("--json", json, "as JSON");
    if (auto const status = parse(app, "list", words)) return *status;
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

Json to_json(tapioca::StagedRequest const& request, std::vector<tapioca::StagedPiece> const& pieces)
{
    Json json{{"rank", request.rank},   {"request", request.number},    {"generation", request.generation},
              {"epoch", request.epoch}, {"variable", request.variable}, {"bytes", request.bytes},
              {"begin", request.begin}, {"end", request.end},           {"in_target", request.in_target}};
    auto const& array = request.array;
    if (request.kind == tapioca::StagedKind::contiguous) json["kind"] = "contiguous";
    if (request.kind == tapioca::StagedKind::subarray) {
        json["kind"] = "subarray";
        json["shape"] = array.shape;
        json["start"] = array.start;
        json["count"] = array.count;
        json["stride"] = array.stride;
        json["element_size"] = array.element_size;
        json["file_offset"] = array.file_offset;
    }
    if (request.kind == tapioca::StagedKind::layout) {
        json["kind"] = "layout";
        for (auto const& piece : pieces) json["pieces"].push_back({piece.offset, piece.length, piece.position});
    }
    return json;
}

/// Calls visit(request) for all there are; what cannot be read is told, and makes the status 1.
template <class Visit>
int each(tapioca::StageReader& reader, std::string const& verb, Visit const& visit)
{
    int status = 0;
    while (true) try {
            auto const request = reader.next();
            if (!request) return status;
            visit(*request);
        } catch (tapioca::Error const& error) {
            status = fail_log(verb, std::string(error.what()).substr(9), 1);
        }
}

int dump(std::vector<std::string> const& words)
{
    std::string path;
    bool json = false;
    CLI::App app("The heads of logs, and every request.");
    app.add_option("PATH", path, "a target, a directory of logs or a .meta file")->required();
    app.add_flag("--json", json, "as JSON, with the pieces [offset, length, position in the data] of layouts");
    if (auto const status = parse(app, "dump", words)) return *status;
    auto const all = look_at_all({path}, false);
    if (!all) return fail_log("dump", all.error().text);
    auto document = Json::array();
    int status = 0;
    for (auto const& facts : *all) {
        auto log = to_json(facts);
        if (!json)
            fmt::print("{}: target {}, host {}, {} ranks, mapping {}, generation {}, {} requests, {} B, {}\n",
                       core::printable(facts.name()), core::printable(facts.target), core::printable(facts.host),
                       facts.ranks, name_of(facts.mapping), facts.generation, facts.entries, facts.bytes, facts.state);
        log["requests"] = Json::array();
        if (facts.here) try {
                tapioca::StageReader reader(facts.sought.place.meta());
                auto const show = [&](tapioca::StagedRequest const& request) {
                    if (json)
                        log["requests"].push_back(to_json(request, reader.pieces(request)));
                    else
                        fmt::print("  {}\n", to_text(request));
                };
                status = std::max(status, each(reader, "dump", show));
            } catch (tapioca::Error const& error) {
                status = fail_log("dump", std::string(error.what()).substr(9), 1);
            }
        document.push_back(std::move(log));
    }
    if (json) fmt::print("{}\n", document.dump(1, ' ', false, Json::error_handler_t::replace));
    return status;
}

int verify(std::vector<std::string> const& words)
{
    std::vector<std::string> paths;
    CLI::App app("Checks heads, blocks, entries and the data's checksums. Status 1 if something is wrong or missing.");
    app.add_option("PATH", paths, "targets, directories of logs or .meta files")->required();
    if (auto const status = parse(app, "verify", words)) return *status;
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

struct Reading {
    std::string path;
    std::optional<std::uint32_t> rank;
    std::optional<std::uint64_t> request;
    std::string output;
    bool follow = false;
};

core::Status write_out(std::vector<std::byte> const& data, std::string const& output)
{
    if (!output.empty()) return core::write_output(output, data);
    bool const written = std::fwrite(data.data(), 1, data.size(), stdout) == data.size();
    if (!written || std::fflush(stdout) != 0) return core::fail_errno(errno, "stdout");
    return {};
}

/// The data of one request.
int read_data(tapioca::StageReader& reader, Reading const& a)
{
    std::optional<tapioca::StagedRequest> found;
    int const status = each(reader, "read", [&](tapioca::StagedRequest const& request) {
        if (request.rank == *a.rank && request.number == *a.request) found = request;
    });
    if (!found)
        return status != 0
                   ? status
                   : fail_log("read", fmt::format("{}: rank {} has no request {}", a.path, *a.rank, *a.request), 1);
    auto const written = write_out(reader.data(*found), a.output);
    return written ? 0 : fail_log("read", written.error().text, 1);
}

/// One line for each request; with --follow also for those to come, until the writers have ended.
int read_lines(tapioca::StageReader& reader, Reading const& a)
{
    auto generation = std::optional<std::uint64_t>();
    auto const show = [&](tapioca::StagedRequest const& request) {
        if (a.rank && request.rank != *a.rank) return;
        if (generation && *generation != request.generation)
            fmt::print("generation {}: what was there before is in the file\n", request.generation);
        generation = request.generation;
        fmt::print("{}\n", to_text(request));
    };
    int status = 0;
    while (true) {
        bool const last = !a.follow || reader.finished();
        status = std::max(status, each(reader, "read", show));
        std::fflush(stdout);
        if (last) return status;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

int read(std::vector<std::string> const& words)
{
    Reading a;
    CLI::App app("The requests of a log, finished or live, or the data of one.");
    app.add_option("PATH", a.path, "a target, a directory of logs or a .meta file")->required();
    auto* const rank = app.add_option("--rank", a.rank, "requests of this rank")->option_text("R");
    auto* const request =
        app.add_option("--request", a.request, "the data of this one, counted from 0")->option_text("N")->needs(rank);
    app.add_option("--output", a.output, "file for the data [stdout]")->option_text("FILE")->needs(request);
    app.add_flag("--follow", a.follow, "wait for further requests while the program runs")->excludes(request);
    if (auto const status = parse(app, "read", words)) return *status;
    try {
        tapioca::StageReader reader(a.path);
        for (auto const& missing : reader.missing()) fail_log("read", "not here: " + missing);
        return a.request ? read_data(reader, a) : read_lines(reader, a);
    } catch (tapioca::Error const& error) {
        return fail_log("read", std::string(error.what()).substr(9), 1);
    }
}

bool asked(std::string const& question)
{
    fmt::print("{} [y/N] ", question);
    std::fflush(stdout);
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "yes";
}

/// Removes logs and, if they have one, their marker, which goes first.
core::Status remove(std::vector<LogFacts> const& all, std::string const& target)
{
    if (!target.empty())
        if (auto status = stage::remove_marker(target); !status) return status;
    std::set<std::string> directories;
    for (auto const& facts : all) {
        if (!facts.here) continue;
        if (auto status = stage::remove_log(facts.sought.place); !status) return status;
        directories.insert(facts.sought.place.directory);
    }
    for (auto const& directory : directories) stage::remove_directory(directory);
    return {};
}

/// Leaves out what another user has there, which root could remove.
core::Status leave_foreign(std::vector<LogFacts>& all)
{
    std::vector<LogFacts> ours;
    for (auto const& facts : all) {
        if (facts.foreign) fmt::print("left alone: {}\n", core::printable(facts.damage.front()));
        if (!facts.foreign) ours.push_back(facts);
    }
    if (ours.empty() && !all.empty()) return core::fail(tapioca::Errc::permission, "none of this is yours");
    all = std::move(ours);
    return {};
}

/// What must not be removed in this way.
core::Status check_removable(std::vector<LogFacts> const& all, bool by_target)
{
    for (auto const& facts : all) {
        auto const name = facts.sought.place.meta();
        if (facts.live) return core::fail(tapioca::Errc::invalid_state, name + ": a running job is writing it");
        if (!by_target && facts.marked)
            return core::fail(tapioca::Errc::invalid_state, fmt::format("{}: belongs to {}: say tapioca log discard {}",
                                                                        name, facts.target, facts.target));
    }
    return {};
}

int discard(std::vector<std::string> const& words)
{
    std::string path;
    bool yes = false;
    CLI::App app("Removes logs and their marker. What is in them and not in the target is lost.");
    app.add_option("PATH", path, "a target, or a directory with logs that no marker means")->required();
    app.add_flag("--yes", yes, "do not ask");
    if (auto const status = parse(app, "discard", words)) return *status;
    auto finding = stage::find_logs(path);
    std::vector<LogFacts> all;
    std::string target;
    if (finding) {
        if (finding->marker) target = finding->target;
        for (auto const& log : finding->logs)
            all.push_back(look_at(log, finding->marker ? &*finding->marker : nullptr, false));
    } else if (stage::has_marker(path)) {
        if (!stage::is_ours(stage::marker_path(path)))
            return fail_log("discard", finding.error().text + ": remove it with rm if it was put there", 1);
        fmt::print("{}\nthe marker cannot be read: only it will be removed\n", core::printable(finding.error().text));
        target = path;
    } else if (finding.error().code == tapioca::Errc::not_found && ::access(path.c_str(), F_OK) == 0) {
        fmt::print("{}: nothing to discard\n", path);
        return 0;
    } else {
        return fail_log("discard", finding.error().text);
    }
    if (auto status = leave_foreign(all); !status) return fail_log("discard", status.error().text, 1);
    auto const marker = target.empty() ? core::Result<stage::Descriptor>(stage::Descriptor())
                                       : stage::open_private(stage::marker_path(target), true);
    if (!target.empty() && marker &&
        !stage::hold_alone(*marker))  // its logs may be on hosts that are not seen from here
        return fail_log("discard", target + ": a running job, or a recovery, has the file open", 1);
    if (auto status = check_removable(all, !target.empty()); !status)
        return fail_log("discard", status.error().text, 1);
    if (!all.empty()) fmt::print("{}", to_table(all));
    std::uint64_t lost = 0;
    for (auto const& facts : all) lost += facts.waiting;
    if (!yes && !asked(fmt::format("Remove this? {} requests are lost.", lost))) {
        fmt::print("nothing was removed\n");
        return 1;
    }
    if (finding && finding->marker) stage::remove_unfinished(*finding->marker);
    if (auto status = remove(all, target); !status) return fail_log("discard", status.error().text, 1);
    std::size_t removed = 0;
    for (auto const& facts : all) removed += facts.here ? 1 : 0;
    fmt::print("removed {} logs{}; {} requests are lost\n", removed, target.empty() ? "" : " and the marker", lost);
    for (auto const& facts : all)
        if (!facts.here) fmt::print("not here: {}: {}\n", core::printable(facts.host), core::printable(facts.name()));
    return 0;
}

/// An MPI program, which also works alone; under mpiexec every process becomes it.
int recover(std::vector<std::string> const& words)
{
    auto const how = take_launch(words, false);
    if (!how) return fail_log("recover", how.error().text);
    bool const alone = how->rest.size() == words.size();
    return alone ? start_alone("tapioca-recover", words) : launch("tapioca-recover", *how);
}

}  // namespace

int log(std::vector<std::string> const& words)
{
    if (words.empty() || words[0] == "--help" || words[0] == "-h") {
        fmt::print("{}", usage);
        return words.empty() ? 2 : 0;
    }
    std::vector<std::string> const rest(words.begin() + 1, words.end());
    if (words[0] == "list") return list(rest);
    if (words[0] == "dump") return dump(rest);
    if (words[0] == "verify") return verify(rest);
    if (words[0] == "read") return read(rest);
    if (words[0] == "recover") return recover(rest);
    if (words[0] == "discard") return discard(rest);
    return fail(fmt::format("log: unknown command {}: try tapioca log --help", words[0]));
}
