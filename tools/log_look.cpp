#include "log_look.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/units.hpp"

namespace tools {

namespace {

namespace core = tapioca::core;
namespace fs = std::filesystem;
namespace stage = tapioca::stage;

/// Reads a rank's entries: counts them and, with `data`, verifies their data.
void walk(stage::Snapshot const& log, std::uint32_t rank, std::uint64_t flushed, bool data, LogFacts& facts)
{
    auto const& image = log.image();
    stage::LogImage::EntryCursor cursor;
    std::string damage;
    std::uint64_t waiting = 0;
    while (true) {
        auto const bytes = image.next(rank, cursor, damage);
        if (bytes.empty()) break;
        auto const number = cursor.entries - 1;
        auto const request = stage::decode(bytes, image.seed());
        if (!request) {
            damage = fmt::format("rank {}: entry {}: {}", rank, number, request.error().text);
            break;
        }
        if (request->gone()) {  // everything before it is in the target
            waiting = 0;
            continue;
        }
        ++facts.entries;
        facts.bytes += request->note.data_bytes;
        if (request->note.epoch > flushed) ++waiting;
        if (!data) continue;
        auto const checked = log.data_of(request->note, image.head().generation);
        if (!checked) facts.damage.push_back(fmt::format("rank {}: entry {}: {}", rank, number, checked.error().text));
    }
    facts.waiting += waiting;
    if (!damage.empty()) facts.damage.push_back(log.place().meta() + ": " + damage);
}

std::string state_of(LogFacts const& facts)
{
    if (facts.foreign) return "not yours";
    if (!facts.here) return "not here";
    if (facts.live) return "live";
    if (!facts.damage.empty()) return "damaged";
    if (!facts.marked) return "no marker";
    return facts.waiting == 0 ? "flushed" : "unfinished";
}

/// Whether the marker beside the target that a log names refers to this log.
bool is_marked(stage::Head const& head)
{
    if (!stage::has_marker(head.target)) return false;
    auto const marker = stage::read_marker(head.target);
    return marker && marker->identity == head.identity;
}

void look_into(stage::Sought const& sought, stage::Marker const* marker, bool data, LogFacts& facts)
{
    auto const log = stage::Snapshot::of(sought.place);
    if (!log) {
        facts.foreign = log.error().code == tapioca::Errc::permission;
        facts.damage.push_back(log.error().text);
        return;
    }
    auto const& head = log->image().head();
    facts.target = head.target;
    facts.host = head.host;
    facts.ranks = head.ranks;
    facts.mapping = head.mapping;
    facts.generation = head.generation;
    facts.live = log->is_live();
    facts.marked = marker || is_marked(head);
    if (auto const missing = log->image().missing_entries(); missing && log->image().damage().empty())
        facts.damage.push_back(sought.place.meta() + ": " + *missing);
    for (auto const& what : log->image().damage()) facts.damage.push_back(sought.place.meta() + ": " + what);
    if (auto status = log->check_data_head(); !status) facts.damage.push_back(status.error().text);
    if (marker)
        if (auto status = stage::check_belongs(sought, head, *marker); !status)
            facts.damage.push_back(status.error().text);
    for (auto const rank : log->image().ranks()) walk(*log, rank, marker ? marker->flushed : 0, data, facts);
}

/// Targets in a directory that have a marker.
std::vector<std::string> marked_in(std::string const& directory)
{
    std::vector<std::string> targets;
    std::error_code error;
    for (auto const& entry : fs::directory_iterator(directory, error))
        if (entry.path().extension() == ".tapioca" && entry.symlink_status(error).type() == fs::file_type::regular)
            targets.push_back((entry.path().parent_path() / entry.path().stem()).string());
    std::sort(targets.begin(), targets.end());
    return targets;
}

/// A marker in a directory that cannot be read; the others are still listed.
LogFacts bad_marker(std::string const& target, core::Failure const& failure)
{
    LogFacts facts;
    facts.target = target;
    facts.marked = true;
    facts.foreign = failure.code == tapioca::Errc::permission;
    facts.damage.push_back(failure.text);
    facts.state = facts.foreign ? "not yours" : "damaged";
    return facts;
}

}  // namespace

LogFacts look_at(stage::Sought const& sought, stage::Marker const* marker, bool data)
{
    LogFacts facts;
    facts.sought = sought;
    facts.host = sought.host;
    if (marker) {
        facts.target = marker->target;
        facts.ranks = marker->ranks;
        facts.mapping = marker->mapping;
        facts.marked = true;
    }
    facts.here = stage::is_here(sought.place);
    if (facts.here) look_into(sought, marker, data, facts);
    facts.state = state_of(facts);
    return facts;
}

core::Result<std::vector<LogFacts>> look_at_all(std::vector<std::string> const& paths, bool data)
{
    std::vector<LogFacts> all;
    std::set<std::string> seen;
    auto const add = [&](std::string const& path) -> core::Status {
        auto const finding = stage::find_logs(path);
        if (!finding) return tl::unexpected(finding.error());
        for (auto const& sought : finding->logs) {
            std::error_code error;
            if (!seen.insert(fs::weakly_canonical(sought.place.meta(), error)).second) continue;
            all.push_back(look_at(sought, finding->marker ? &*finding->marker : nullptr, data));
        }
        return {};
    };
    for (auto const& path : paths) {
        std::error_code error;
        bool const directory = fs::is_directory(path, error);
        auto const targets = directory ? marked_in(path) : std::vector<std::string>();
        for (auto const& target : targets)
            if (auto const status = add(target); !status) all.push_back(bad_marker(target, status.error()));
        auto const status = add(path);
        bool const nothing = !status && status.error().code == tapioca::Errc::not_found;
        if (!status && !(directory && nothing)) return tl::unexpected(status.error());
    }
    return all;
}

std::string to_text(tapioca::StagedRequest const& request)
{
    auto const& array = request.array;
    std::string form = "contiguous";
    if (request.kind == tapioca::StagedKind::layout) form = "pieces";
    if (request.kind == tapioca::StagedKind::subarray) {
        form = fmt::format("subarray of [{}] at {}, elements of {} B: start [{}], count [{}]",
                           fmt::join(array.shape, ", "), array.file_offset, array.element_size,
                           fmt::join(array.start, ", "), fmt::join(array.count, ", "));
        if (!array.stride.empty()) form += fmt::format(", stride [{}]", fmt::join(array.stride, ", "));
    }
    auto const* const where = request.in_target ? ", also in the target" : "";
    return fmt::format("rank {}, request {}: epoch {}, variable {}, {} B to [{}, {}): {}{}", request.rank,
                       request.number, request.epoch, request.variable, request.bytes, request.begin, request.end, form,
                       where);
}

}  // namespace tools
