// Decides which process of a recovery takes which log, or which ranks of a shared one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stage/find_logs.hpp"

namespace recover {

/// What one process sees of a log.
enum class LogView : std::uint8_t {
    absent,
    here,
    in_use,   ///< a process still has it open for writing
    refused,  ///< it cannot be read, or belongs to another file
};

/// Looks for a log on this host. Local. `why` says what is wrong with a log that is refused.
LogView look(tapioca::stage::Sought const& sought, tapioca::stage::Marker const& marker, std::string& why);

/// Which processes take a log.
struct Dealt {
    std::vector<int> takers;  ///< for each of its ranks, a process that sees the log; none if no process does
};
/// Distributes the ranks' requests so that processes get about the same number. The same on every process. `views`: for
/// every process in order, a value for every log.
std::vector<Dealt> deal(std::vector<tapioca::stage::Sought> const& logs, std::vector<LogView> const& views,
                        int processes);

}  // namespace recover
