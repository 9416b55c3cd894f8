// Which process of a recovery takes which log, or which ranks of a shared one.
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
    refused,  ///< it cannot be read, or is another one
};

/// Looks for a log on this host. Local. `why` says what is wrong with one that is refused.
LogView look(tapioca::stage::Sought const& sought, tapioca::stage::Marker const& marker, std::string& why);

/// Who takes what of a log.
struct Dealt {
    std::vector<int> takers;  ///< of each of its ranks: a process that sees it; none if nobody does
};
/// Deals the ranks' requests out, so that processes get about as many each. The same on every process.
/// `views`: of every process, one after the other, a value for every log.
std::vector<Dealt> deal(std::vector<tapioca::stage::Sought> const& logs, std::vector<LogView> const& views,
                        int processes);

}  // namespace recover
