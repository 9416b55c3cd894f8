// Other methods that write to a fast tier first, for comparison with TAPIOCA's stage. They only write.
#pragma once

#include "method.hpp"

namespace bench {

/// Collective MPI-IO on a shared file of the fast tier, which close() copies to the target: each rank copies a
/// contiguous share, with plain reads and writes of 1 MiB. (copy_file_range does not work across most file systems, and
/// within one may copy nothing.)
std::unique_ptr<Method> make_stage_out(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup);

/// Like LogFS: each rank appends its bytes to a log of its own and remembers every contiguous piece. close() sorts the
/// pieces and writes them with collective MPI-IO through file views, in rounds of at most 16 MiB per rank.
std::unique_ptr<Method> make_flattened_log(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup);

/// The best that any log can reach: each rank appends its bytes to a file of its own, and does nothing else.
std::unique_ptr<Method> make_log_limit(MPI_Comm comm, BenchWorkload const& workload, MethodSetup const& setup);

/// Whether all ranks see the same files in `directory`. Collective.
bool is_shared(MPI_Comm comm, std::string const& directory);

}  // namespace bench
