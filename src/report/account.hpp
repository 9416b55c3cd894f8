// Account: what happened to a file on one rank, for the report.
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
        double inside = 0;  ///< start(), finish() and wait(), from call to return

        /// A run that took `seconds` from call to return. Steps and bytes are counted where the program's call is.
        void add(engine::Transfer::RunOutcome const& run, double seconds);
        void add(DirectionAccount const& other);
    };
    double planning = 0;
    std::uint64_t planning_bytes = 0;  ///< that this rank gave to the others
    DirectionAccount write;
    DirectionAccount read;
    std::vector<std::string> plans;  ///< JSON of each declared step
    std::uint64_t bookkeeping_bytes = 0;
    std::vector<std::pair<std::string, std::string>> more;  ///< what others add: a name, and JSON

    /// A plan of this file, if it has a report.
    void add(plan::Plan const& plan, settings::Settings const& settings);
    /// What happened to the same file elsewhere.
    void add(Account const& other);
};

/// Lives while a step is planned, and adds to the account what that takes.
class Planning {
public:
    Planning(Account& account, comm::Team const& team)
        : account_(account), team_(team), given_before_(team.traffic_bytes()), watch_(account.planning)
    {
    }
    /// It went well.
    void done(plan::Plan const& plan, pattern::Variables const& variables, settings::Settings const& settings);

private:
    Account& account_;
    comm::Team const& team_;
    std::uint64_t given_before_;
    core::Stopwatch watch_;
};

}  // namespace tapioca::report
