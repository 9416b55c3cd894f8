// find_logs: the logs that belong to a path given by a user: a target, a directory of logs, or one log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stage/marker.hpp"

namespace tapioca::stage {

/// A log, and what the marker says about it.
struct Sought {
    LogPlace place;
    std::string host;                  ///< empty without a marker
    std::vector<std::uint32_t> ranks;  ///< empty without a marker
    bool beside = false;               ///< beside the target, where a rank's log continues when its tier is full
};
struct FoundLogs {
    std::optional<Marker> marker;
    std::string target;  ///< with a marker: the path as it was given, without the marker's ending
    std::vector<Sought> logs;
};
/// Local. Fails if there is no file of that name, or no log.
core::Result<FoundLogs> find_logs(std::string const& path);

/// All logs that a marker names, and the existing logs beside the target, each after the log that it continues.
std::vector<Sought> logs_in(Marker const& marker);
/// Removes what ranks left beside the target when they were killed while making a log there; nothing in it was
/// acknowledged. To be called while the marker exists, because then nobody else makes a log there.
void remove_unfinished(Marker const& marker);
/// `said` ranks of a log continue beside the target. Returns how many of those continuations are not among `logs`.
std::uint64_t lost_continuations(Sought const& sought, std::uint64_t said, std::vector<Sought> const& logs);
/// Removes the marker and the logs of a job that has ended, if all of them are on this host and everything in them is
/// in the target. Returns true if it did.
bool clear_flushed(std::string const& target);
/// Fails if a log is not the one that the marker names.
core::Status check_belongs(Sought const& sought, Head const& head, Marker const& marker);
/// True if the file exists and belongs to this user.
bool is_here(LogPlace const& place);

}  // namespace tapioca::stage
