// Account: the record of what happened to a file on one rank, for the report.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/stopwatch.hpp"
#include "engine/transfer.hpp"
#include "settings/settings.hpp"

namespace tapioca::report {

struct Account {
    struct DirectionAccount {
        std::uint64_t steps = 0;
        std::uint64_t bytes = 0;       ///< of this rank's variables
        std::uint64_t overlapped = 0;  ///< drained between start() and wait()
        engine::Times times;
        double waiting = 0;
        double inside = 0;  ///< time in start(), finish() and wait(), from call to return

        /// Adds a run that took `seconds` from call to return. Steps and bytes are counted elsewhere, with the
        /// program's call.
        void add(engine::Transfer::RunOutcome const& run, double seconds);
        void add(DirectionAccount const& other);
    };
    double planning = 0;
    std::uint64_t planning_bytes = 0;  ///< bytes that this rank sent to the others for planning
    DirectionAccount write;
    DirectionAccount read;
    std::vector<std::string> plans;  ///< JSON of each declared step
    std::uint64_t bookkeeping_bytes = 0;
    std::vector<std::pair<std::string, std::string>> more;  ///< additions of other parts: a name, and JSON

    /// Adds a plan of this file, if it has a report.
    void add(plan::Plan const& plan, settings::Settings const& settings);
    /// Adds another account of the same file.
    void add(Account const& other);
};

/// Exists while a step is planned, and adds the cost of planning to the account.
class Planning {
public:
    Planning(Account& account, comm::Team const& team)
        : account_(account), team_(team), given_before_(team.traffic_bytes()), watch_(account.planning)
    {
    }
    /// Planning succeeded.
    void done(plan::Plan const& plan, pattern::Variables const& variables, settings::Settings const& settings);

private:
    Account& account_;
    comm::Team const& team_;
    std::uint64_t given_before_;
    core::Stopwatch watch_;
};

}  // namespace tapioca::report
