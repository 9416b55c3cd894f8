// Adds the calls on a file to the report.
#pragma once

#include <string>

#include "declared/file_state.hpp"
#include "mpiio/call_names.hpp"

namespace tapioca::mpiio {

/// Adds all ranks' calls to the account of a file that is about to be closed, if there is a report. Collective.
void add_calls(declared::FileState& file, Calls& calls);

/// Adds to the report the account of a file that the engine never opened, or no longer had open: this rank's calls.
/// `off`: why the file was left to the MPI library, if it was. Local.
void report_calls(std::string const& report, std::string const& path, std::string const& off, Calls const& calls);

}  // namespace tapioca::mpiio
