// Find: the logs that belong to a path as people give it: a target, a directory of logs, or one log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stage/marker.hpp"

namespace tapioca::stage {

/// A log, and what the marker says of it.
struct Sought {
    LogPlace place;
    std::string host;                  ///< empty without a marker
    std::vector<std::uint32_t> ranks;  ///< empty without a marker
    bool beside = false;               ///< beside the target: where a rank's log went on when its tier was full
};
struct FoundLogs {
    std::optional<Marker> marker;
    std::string target;  ///< with a marker: as it was given, without the marker's ending
    std::vector<Sought> logs;
};
/// Local. Fails if there is nothing of that name, or no log.
core::Result<FoundLogs> find_logs(std::string const& path);

/// All logs that a marker names, and those beside the target that are there, behind the log that they go on from.
std::vector<Sought> logs_in(Marker const& marker);
/// Removes what ranks left beside the target that were killed while they made a log there; nothing in it was
/// acknowledged. To be called while the marker is there: nobody else makes one then.
void remove_unfinished(Marker const& marker);
/// Of the logs beside the target in which `said` ranks of a log go on, how many are not among `logs`.
std::uint64_t lost_continuations(Sought const& sought, std::uint64_t said, std::vector<Sought> const& logs);
/// Removes the marker and the logs of a job that is over if they are all here and nothing in them is missing from the
/// target. True if it did.
bool clear_flushed(std::string const& target);
/// Fails if a log is not the one that the marker means.
core::Status check_belongs(Sought const& sought, Head const& head, Marker const& marker);
/// The file is there, for this user.
bool is_here(LogPlace const& place);

}  // namespace tapioca::stage
