// Leftovers: directories of logs that a job left when it was killed before it had written anything, or after it had
// flushed everything.
#pragma once

#include <string>

namespace tapioca::stage {

/// Removes the directories of jobs in `parent` that hold no data: none of a job that lives, none that a marker means,
/// none with a request that was not flushed, or with a file that is not known. Once for each process and directory.
void remove_empty_jobs(std::string const& parent);

}  // namespace tapioca::stage
