// Phases: whole files, written by all methods in turn; the times of opening, of all writes and of closing are separate.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"

namespace bench {

/// Seconds of the slowest rank, one value per repetition.
struct Phases {
    Spread open;
    Spread write;  ///< all calls, from the first to the return of the last, without the computing between them
    Spread flush;  ///< closing the file, including a log's flush or a copy, and fsync if it is asked for
    Spread total;  ///< the sum of the three: how long the application is delayed
};

/// One method's row.
struct PhasesCell {
    std::string method;
    Phases seconds;
    bool in_file = true;  ///< the bytes reached the shared file
    bool verified = true;
};

struct PhasesOutcome {
    BenchWorkload workload;
    int ranks = 1;
    double compute_s = 0;
    std::vector<PhasesCell> cells;
};

/// `compute_s`: how long every rank sleeps between two steps, as if it computed without using the processor. Collective
/// over `comm`; the outcome is the same on all ranks.
PhasesOutcome measure_phases(MPI_Comm comm, BenchWorkload const& workload, Setup const& setup, double compute_s);

/// Medians with coefficients of variation, and the speed as a multiple of that of MPI-IO's collective calls.
std::string table(std::string const& title, PhasesOutcome const& outcome);
/// All cells as a JSON array.
std::string to_json(std::vector<PhasesOutcome> const& outcomes);

}  // namespace bench
