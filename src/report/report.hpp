// The report: the accounts of a process's files as JSON, in a file named by the user.
#pragma once

#include <string>
#include <vector>

#include "comm/team.hpp"
#include "plan/plan.hpp"
#include "report/account.hpp"
#include "settings/settings.hpp"

namespace tapioca::report {

/// A file that is closed.
struct Subject {
    std::string const& path;
    char const* mode;
    settings::Settings const& settings;
    comm::Team const& team;
};

/// Adds the closed file to the report on rank 0. Collective. A report that cannot be written is a warning.
void write(Subject const& file, Account const& account);

/// Adds the account of a file, a JSON object, to this process's report at `path`. Local; a failure is a warning.
void add(std::string const& path, std::string const& account);

/// A plan as a JSON object, with the settings that went into it.
std::string to_json(plan::Plan const& plan, settings::Settings const& settings);

}  // namespace tapioca::report
