// The benchmark as a whole: reads the command line, starts MPI, measures, prints.
#pragma once

namespace bench {

/// Returns the exit status. Collective over MPI_COMM_WORLD.
int run(int argc, char** argv);

}  // namespace bench
