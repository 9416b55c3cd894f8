// tapioca target drop: removes what this node has of a file, or of files that are no longer there.
#include <algorithm>
#include <ctime>

#include <fmt/core.h>
#include <sys/stat.h>

#include "core/output.hpp"
#include "core/units.hpp"
#include "target_verbs.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;
namespace subfile = tapioca::subfile;

/// Under the lock of the set, so that no job begins to write there.
core::Status remove_place(OpenSet const& set, std::string const& place)
{
    if (set.contents->state() == subfile::SetState::interrupted) return subfile::remove_tier_place(place);
    auto const lock = subfile::take_lock(set.opened.get(), *set.contents, set.stub.identity,
                                         {1, 1, 0, "drop", set.path.substr(set.path.rfind('/') + 1)});
    if (!lock) return tl::unexpected(lock.error());
    if (!*lock)
        return core::fail(tapioca::Errc::invalid_state, set.path + ": a job or another command has begun to use it");
    auto const status = subfile::remove_tier_place(place);
    subfile::give_back_lock(set.opened.get(), *set.contents);
    return status;
}

int drop_file(std::string const& path, bool force)
{
    auto const set = open_set(path);
    if (!set) return fail_sub("target drop", set.error().text);
    if (set->contents->state() == subfile::SetState::live)
        return fail_sub("target drop", fmt::format("{}: {} is writing it", set->path, to_text(set->contents->writer())),
                        1);
    auto const found = look_for_subfiles(*set);
    if (!found) return fail_sub("target drop", found.error().text, 1);
    if (auto const status = check_no_copy(*set, *found); !status)
        return fail_sub("target drop", status.error().text, 1);
    auto const shown = core::printable(set->path);
    if (found->here.empty()) {
        auto const cleared = found->place.empty() ? core::Status() : subfile::remove_from_tier(found->place, {});
        if (!cleared) return fail_sub("target drop", cleared.error().text, 1);
        fmt::print("{}: nothing to drop on this node\n", shown);
        return 0;
    }
    std::uint64_t lost = 0;
    for (auto const& one : found->subfiles)
        if (one.where == SubfilePlace::here) lost += one.size;
    auto const subfiles = found->count(SubfilePlace::here);
    if (lost > 0 && !force)
        return fail_sub("target drop",
                        fmt::format("{}: {} in {} subfile{} are nowhere else and would be lost: `tapioca target drain` "
                                    "keeps them; --force removes them",
                                    set->path, core::format_bytes(lost), subfiles, subfiles == 1 ? "" : "s"),
                        1);
    if (auto const status = remove_place(*set, found->place); !status)
        return fail_sub("target drop", status.error().text, 1);
    fmt::print("{}: removed {} subfile{} of this node; {} are lost\n", shown, found->here.size(),
               found->here.size() == 1 ? "" : "s", core::format_bytes(lost));
    return 0;
}

/// Removes a directory that nobody has completed for a minute: its job was killed. Returns whether there was one.
bool drop_unfinished(std::string const& place)
{
    struct stat facts = {};
    bool const old = ::lstat(place.c_str(), &facts) == 0 && std::time(nullptr) - facts.st_mtime > 60;
    if (!old || !subfile::remove_tier_place(place)) return false;
    fmt::print("{}: removed what a killed job had begun\n", core::printable(place));
    return true;
}

std::string why_removed(PlaceOwner const& owner)
{
    switch (owner.belonging) {
    case Belonging::gone: return "the file is gone, or was moved";
    case Belonging::other: return "the file is another one now";
    default: return core::printable(owner.reason);
    }
}

/// Removes what belongs to files that certainly are not there any more. `force`: also if that is not certain.
int drop_gone(std::string const& tier, bool force)
{
    auto const directory = directory_of_tier(tier);
    if (!directory) return fail_sub("target drop", directory.error().text);
    auto const catalogue = subfile::read_catalogue(*directory);
    if (!catalogue) return fail_sub("target drop", catalogue.error().text);
    int status = 0;
    std::size_t removed = 0;
    for (auto const& place : catalogue->places) {
        auto const owner = find_owner(place);
        auto const path = core::printable(owner.path);
        bool const unknown = owner.belonging == Belonging::unknown;
        if (unknown && !force)
            fmt::print("{}: kept {}: {}; --force removes it\n", path, place.path, core::printable(owner.reason));
        if (owner.belonging == Belonging::file || (unknown && !force)) continue;
        auto const bytes = bytes_in(place);
        if (auto const done = subfile::remove_tier_place(place.path); !done) {
            status = fail_sub("target drop", done.error().text, 1);
            continue;
        }
        ++removed;
        fmt::print("{}: {}: removed {} in {} subfiles\n", path, why_removed(owner), core::format_bytes(bytes),
                   place.subfiles.size());
    }
    for (auto const& place : catalogue->unfinished) removed += drop_unfinished(place) ? 1 : 0;
    for (auto const& line : catalogue->damaged) fmt::print("kept: {}\n", line);
    if (removed == 0) fmt::print("nothing to drop on this node\n");
    return status;
}

}  // namespace

int drop_target(Words const& words)
{
    std::string path;
    std::string tier;
    bool force = false;
    CLI::App app(
        "Removes what this node has of a file; with --gone, of files that do not exist any more, or that others have "
        "replaced. What belongs to a directory that is not there is kept: perhaps its file system is not mounted. A "
        "file that was moved to another directory counts as gone until it is opened there.");
    auto* const file = app.add_option("FILE", path, "the file");
    auto* const gone = app.add_option(
        "--gone", tier, "instead of FILE: all files with data on this tier, such as ssd:/scratch, that are gone");
    app.add_flag("--force", force,
                 "also data that is nowhere else; with --gone, also of files whose directory is not there");
    file->excludes(gone);
    if (auto const status = parse_words(app, "target drop", words)) return *status;
    if (path.empty() && tier.empty()) return fail_sub("target drop", "name a file, or a tier with --gone");
    return tier.empty() ? drop_file(path, force) : drop_gone(tier, force);
}

}  // namespace tools
