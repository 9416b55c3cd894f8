// The report on disk: one JSON document that grows by an account whenever a file is closed.
#pragma once

#include <string>

#include "core/result.hpp"

namespace tapioca::report {

/// The report that this path means: where it led when this process first asked for it. Local.
std::string report_place(std::string const& path);

/// Adds `account`, the text of a JSON object, to the "files" of the report at `path`. A report that other processes
/// left behind is replaced; one to which another process is still adding is shared with it. The time does not depend on
/// the length of the report. Local; threads may call it at the same time.
core::Status add_account(std::string const& path, std::string const& account);

}  // namespace tapioca::report
