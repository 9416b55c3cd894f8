// Leftovers: directories of logs that remain after a job was killed before it had written anything, or after it had
// flushed everything.
#pragma once

#include <string>

namespace tapioca::stage {

/// Removes those directories of jobs in `parent` that hold no data. It keeps the directories of jobs that are alive,
/// those that a marker refers to, and those with a request that was not flushed or with an unknown file. Does this once
/// for each process and directory.
void remove_empty_jobs(std::string const& parent);

}  // namespace tapioca::stage
