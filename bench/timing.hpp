// Timing: seconds of the slowest rank, and statistics of repeated measurements.
#pragma once

#include <mpi.h>

#include <vector>

namespace bench {

/// Repetitions of one measurement. No values: all figures are 0.
class Spread {
public:
    void push_back(double value) { values_.push_back(value); }
    [[nodiscard]] double median() const;
    [[nodiscard]] double min() const;
    [[nodiscard]] double max() const;
    /// Coefficient of variation: standard deviation over mean.
    [[nodiscard]] double cv() const;

private:
    std::vector<double> values_;
};

/// The largest of all ranks' values. Collective.
double most(MPI_Comm comm, double value);

/// Whether `value` is true on all ranks. Collective.
bool everywhere(MPI_Comm comm, bool value);

/// Seconds of `work` on the slowest rank; all ranks start together. Collective.
template <class Work>
double timed(MPI_Comm comm, Work work)
{
    MPI_Barrier(comm);
    auto const start = MPI_Wtime();
    work();
    return most(comm, MPI_Wtime() - start);
}

}  // namespace bench
