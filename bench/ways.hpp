// Ways: measures every way that the planner could have taken, in turn with the one that it took. The regret is what the
// choice cost: the seconds of the best way divided by those of the chosen one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure.hpp"

namespace bench {

struct WayCell {
    std::string name;
    std::optional<double> predicted_s;  ///< none if the access is left to the MPI library
    SettingList settings;               ///< settings that force this way
    std::vector<double> seconds;        ///< of a step, one value per repetition
};

/// One workload, one direction, one interface.
struct WaysOutcome {
    std::string label, op, interface;
    int ranks = 0;
    std::int64_t step_bytes = 0;
    int timed_steps = 0;
    std::string chosen;             ///< name of the way that was taken by default
    std::vector<WayCell> ways;      ///< all of them, forced
    std::vector<double> default_s;  ///< by default, before anything was learnt
    std::vector<double> learnt_s;   ///< by default, after some steps
    bool verified = true;

    /// Index of the way with the least median in the even repetitions.
    [[nodiscard]] std::size_t best() const;
    /// Seconds of the best way divided by those of the default, in the odd repetitions; 1 if the best way is the chosen
    /// one.
    [[nodiscard]] double regret() const;
    /// The same after some steps, in which something may have been learnt.
    [[nodiscard]] double regret_after_learning() const;
    /// How often, among all pairs of odd repetitions, the best way was really faster: 0.5 if by chance, 1 if always.
    [[nodiscard]] double certainty() const;
    [[nodiscard]] double certainty_after_learning() const;
};

/// Collective over `comm`; the outcomes, one for each direction and interface, are complete on rank 0 only.
std::vector<WaysOutcome> measure_ways(MPI_Comm comm, BenchWorkload workload, Setup const& setup);

std::string table(WaysOutcome const& outcome);
/// The summary of all cells of a run: their number, median and least regret.
std::string summary(std::vector<WaysOutcome> const& outcomes);
std::string to_json(std::vector<WaysOutcome> const& outcomes);

}  // namespace bench
