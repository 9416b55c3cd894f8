// What the verbs of `tapioca log` find out about a log before they show or remove it.
#pragma once

#include <string>
#include <vector>

#include <tapioca/stage.hpp>

#include "stage/find_logs.hpp"
#include "stage/snapshot.hpp"

namespace tools {

/// The present state of one log.
struct LogFacts {
    tapioca::stage::Sought sought;
    std::string target;
    std::string host;
    std::uint32_t ranks = 0;  ///< of the job
    tapioca::StageMapping mapping = {};
    std::uint64_t generation = 0;
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;    ///< of the requests' data
    std::uint64_t waiting = 0;  ///< entries that are not known to be in the target
    std::string state;          ///< one word or two
    bool here = false;
    bool live = false;
    bool marked = false;   ///< the target's marker refers to this log
    bool foreign = false;  ///< belongs to another user, or others may have put it there; nothing else is known
    std::vector<std::string> damage;
    /// The log's first file, or the marker if there is nothing else.
    [[nodiscard]] std::string name() const
    {
        return sought.place.name.empty() ? target + ".tapioca" : sought.place.meta();
    }
};
/// Reads the entries of a log; with `data`, also verifies the checksums of their data.
LogFacts look_at(tapioca::stage::Sought const& sought, tapioca::stage::Marker const* marker, bool data);

/// The logs that belong to paths given by a user, each once.
tapioca::core::Result<std::vector<LogFacts>> look_at_all(std::vector<std::string> const& paths, bool data);

/// "rank 2, request 5: epoch 3, variable 0, 64 B: ..."
std::string to_text(tapioca::StagedRequest const& request);

}  // namespace tools
