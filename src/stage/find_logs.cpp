#include "stage/find_logs.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>
#include <sys/stat.h>

#include "core/host.hpp"
#include "stage/snapshot.hpp"

namespace tapioca::stage {

namespace {

namespace fs = std::filesystem;

/// The number in "rank12" or "node3"; nothing for other names.
std::optional<std::uint64_t> number_in(std::string const& name)
{
    if (!name.starts_with("rank") && !name.starts_with("node")) return {};
    auto const digits = name.substr(4);
    if (digits.empty() || digits.size() > 10) return {};
    if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) return {};
    return std::stoull(digits);
}

/// The logs in a directory, in the order of their ranks or nodes.
std::vector<Sought> logs_in(fs::path const& directory)
{
    std::vector<std::pair<std::uint64_t, Sought>> found;
    std::error_code error;
    for (auto const& entry : fs::directory_iterator(directory, error)) {
        auto const name = entry.path().stem().string();
        auto const number = number_in(name);
        if (number && entry.path().extension() == ".meta")
            found.push_back({*number, {{directory, name}, {}, {}, false}});
    }
    std::sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    std::vector<Sought> logs;
    for (auto& log : found) logs.push_back(std::move(log.second));
    return logs;
}

/// Whether the log beside the target was left by another job, or the file was put there by another user. Neither is
/// damage.
bool is_of_another(LogPlace const& place, Marker const& marker)
{
    if (!is_ours(place.meta())) return true;
    auto const meta = open_private(place.meta(), false);
    std::vector<std::byte> first(head_bytes);
    if (!meta || !read_all(meta->get(), 0, first)) return false;
    auto const head = read_head(first, meta_magic);
    return head && head->identity != marker.identity;
}

/// Whether everything in a log that nobody writes any more is in the target. False for a damaged log.
bool is_flushed(Sought const& sought, Marker const& marker, std::vector<Sought> const& logs)
{
    auto const log = Snapshot::of(sought.place);
    if (!log || log->is_live() || !log->check_data_head()) return false;
    auto const& image = log->image();
    if (!check_belongs(sought, image.head(), marker) || !image.damage().empty() || image.missing_entries())
        return false;
    if (lost_continuations(sought, image.continued(), logs) > 0) return false;
    for (auto const rank : image.ranks()) {
        LogImage::EntryCursor cursor;
        std::string damage;
        while (!image.next(rank, cursor, damage).empty()) {}
        if (!damage.empty() || cursor.epoch > marker.flushed) return false;  // entries are in ascending order of epochs
    }
    return true;
}

/// The logs in a directory, or in the jobs' directories in it.
std::vector<Sought> logs_below(fs::path const& directory)
{
    auto logs = logs_in(directory);
    if (!logs.empty()) return logs;
    std::error_code error;
    std::vector<fs::path> jobs;
    for (auto const& entry : fs::directory_iterator(directory, error))
        if (is_job_directory(entry.path().string()) && entry.symlink_status(error).type() == fs::file_type::directory)
            jobs.push_back(entry.path());
    std::sort(jobs.begin(), jobs.end());
    for (auto const& job : jobs)
        for (auto& log : logs_in(job)) logs.push_back(std::move(log));
    return logs;
}

/// `path` without `ending`, if it ends so.
std::optional<std::string> without(std::string const& path, std::string const& ending)
{
    if (!path.ends_with(ending)) return {};
    return path.substr(0, path.size() - ending.size());
}

}  // namespace

std::vector<Sought> logs_in(Marker const& marker)
{
    std::vector<Sought> logs;
    std::vector<Sought> beside;
    for (std::size_t n = 0; n < marker.nodes.size(); ++n) {
        auto const& node = marker.nodes[n];
        if (marker.mapping == StageMapping::node)
            logs.push_back({{node.directory, log_name(marker.mapping, static_cast<std::uint32_t>(n))},
                            node.host,
                            node.ranks,
                            false});
        for (auto const rank : node.ranks) {
            if (marker.mapping == StageMapping::process)
                logs.push_back({{node.directory, log_name(marker.mapping, rank)}, node.host, {rank}, false});
            auto const place = overflow_place(marker.target, rank);
            if (is_here(place) && !is_of_another(place, marker)) beside.push_back({place, node.host, {rank}, true});
        }
    }
    logs.insert(logs.end(), beside.begin(), beside.end());
    return logs;
}

void remove_unfinished(Marker const& marker)
{
    for (auto const& node : marker.nodes)
        for (auto const rank : node.ranks) {
            auto const place = overflow_place(marker.target, rank);
            (void)remove_log(unfinished_place(place));
            if (!is_here(place)) (void)remove_log(place);  // its data file may already have had its final name
        }
}

std::uint64_t lost_continuations(Sought const& sought, std::uint64_t said, std::vector<Sought> const& logs)
{
    auto const there = std::count_if(logs.begin(), logs.end(), [&](Sought const& other) {
        return other.beside &&
               std::find(sought.ranks.begin(), sought.ranks.end(), other.ranks.front()) != sought.ranks.end();
    });
    return said - std::min(said, static_cast<std::uint64_t>(there));
}

bool clear_flushed(std::string const& target)
{
    auto const held = open_private(marker_path(target), true);
    if (!held || !hold_for_certain(*held)) return false;
    auto const marker = read_marker(target);
    if (!marker || !is_named(*held, marker_path(target))) return false;
    // On other hosts, somebody may still write the logs: locks of some file systems do not reach other hosts.
    for (auto const& node : marker->nodes)
        if (node.host != core::host_name()) return false;
    auto const logs = logs_in(*marker);
    if (!std::all_of(logs.begin(), logs.end(), [&](Sought const& log) { return is_flushed(log, *marker, logs); }))
        return false;
    remove_unfinished(*marker);
    if (!remove_marker(target)) return false;
    (void)keep_marker_away(target);
    for (auto const& log : logs) (void)remove_log(log.place);
    for (auto const& node : marker->nodes) remove_directory(node.directory);
    return true;
}

core::Status check_belongs(Sought const& sought, Head const& head, Marker const& marker)
{
    auto const mapping = sought.beside ? StageMapping::process : marker.mapping;
    if (head.identity == marker.identity && head.ranks == marker.ranks && head.mapping == mapping &&
        head.rank == sought.ranks.front())
        return {};
    return core::fail(Errc::io, sought.place.meta() + ": is not the log that the marker names");
}

bool is_here(LogPlace const& place)
{
    struct stat found = {};
    return ::lstat(place.meta().c_str(), &found) == 0;
}

core::Result<FoundLogs> find_logs(std::string const& path)
{
    FoundLogs finding;
    std::error_code error;
    if (fs::is_directory(path, error)) {
        finding.logs = logs_below(fs::path(path).lexically_normal());
        if (finding.logs.empty()) return core::fail(Errc::not_found, path + ": there are no logs in this directory");
        return finding;
    }
    auto log = without(path, ".meta");
    if (!log) log = without(path, ".data");
    if (log && fs::exists(path, error) && !has_marker(path)) {
        fs::path const place(*log);
        auto const parent = place.parent_path();
        finding.logs.push_back({{parent.empty() ? "." : parent.string(), place.filename().string()}, {}, {}, false});
        return finding;
    }
    finding.target = path;
    if (auto const target = without(path, ".tapioca"); target && !has_marker(path)) finding.target = *target;
    if (!has_marker(finding.target))
        return core::fail(Errc::not_found, fmt::format("{}: nothing is staged: there is no {}", finding.target,
                                                       marker_path(finding.target)));
    auto marker = read_marker(finding.target);
    if (!marker) return tl::unexpected(marker.error());
    finding.marker = std::move(*marker);
    finding.logs = logs_in(*finding.marker);
    return finding;
}

}  // namespace tapioca::stage
