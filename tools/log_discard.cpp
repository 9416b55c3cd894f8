// tapioca log discard: removes logs and their marker.
#include <cstdio>
#include <iostream>
#include <set>

#include <fmt/core.h>
#include <unistd.h>

#include "core/output.hpp"
#include "log_verbs.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;
namespace stage = tapioca::stage;

bool asked(std::string const& question)
{
    fmt::print("{} [y/N] ", question);
    std::fflush(stdout);
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "yes";
}

/// Removes logs and, if they have one, their marker, which is removed first.
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

/// Leaves out logs of other users, which root could remove.
core::Status leave_foreign(std::vector<LogFacts>& all)
{
    std::vector<LogFacts> ours;
    for (auto const& facts : all) {
        if (facts.foreign) fmt::print("left alone: {}\n", core::printable(facts.damage.front()));
        if (!facts.foreign) ours.push_back(facts);
    }
    if (ours.empty() && !all.empty()) return core::fail(tapioca::Errc::permission, "none of these logs belong to you");
    all = std::move(ours);
    return {};
}

/// Fails if something must not be removed in this way.
core::Status check_removable(std::vector<LogFacts> const& all, bool by_target)
{
    for (auto const& facts : all) {
        auto const name = facts.sought.place.meta();
        if (facts.live) return core::fail(tapioca::Errc::invalid_state, name + ": a running job is writing it");
        if (!by_target && facts.marked)
            return core::fail(tapioca::Errc::invalid_state,
                              fmt::format("{}: belongs to {}: use tapioca log discard {}", name, facts.target,
                                          core::shell_word(facts.target)));
    }
    return {};
}

}  // namespace

int discard_logs(Words const& words)
{
    std::string path;
    bool yes = false;
    CLI::App app("Removes logs and their marker. Data that is only in the logs is lost.");
    app.add_option("PATH", path, "a target, or a directory with logs that no marker names")->required();
    app.add_flag("--yes", yes, "do not ask");
    if (auto const status = parse_log(app, "discard", words)) return *status;
    auto finding = stage::find_logs(path);
    std::vector<LogFacts> all;
    std::string target;
    if (finding) {
        if (finding->marker) target = finding->target;
        for (auto const& sought : finding->logs)
            all.push_back(look_at(sought, finding->marker ? &*finding->marker : nullptr, false));
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
        !stage::hold_alone(*marker))  // its logs may be on hosts that are not visible from here
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

}  // namespace tools
