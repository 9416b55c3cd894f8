// Ways: every way that the planner could have taken, in turns, beside the one that it took. What choosing cost is the
// regret: seconds of the best way over those of the chosen one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure.hpp"

namespace bench {

struct WayCell {
    std::string name;
    std::optional<double> predicted_s;  ///< none for what is left to the MPI library
    SettingList settings;               ///< that force it
    std::vector<double> seconds;        ///< of a step, one for each repetition
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

    /// Index of the way with the least median of the even repetitions.
    [[nodiscard]] std::size_t best() const;
    /// Seconds of the best way over those by default, in the odd repetitions; 1 where the best way is the chosen one.
    [[nodiscard]] double regret() const;
    /// The same, after some steps.
    [[nodiscard]] double regret_after_learning() const;
    /// How often, of all pairs of odd repetitions, the best way was really the faster one: 0.5 where it was by chance,
    /// 1 where it always was.
    [[nodiscard]] double certainty() const;
    [[nodiscard]] double certainty_after_learning() const;
};

/// Collective over `comm`; the outcomes are complete on rank 0. One for each direction and interface.
std::vector<WaysOutcome> measure_ways(MPI_Comm comm, BenchWorkload workload, Setup const& setup);

std::string table(WaysOutcome const& outcome);
/// What all cells of a run come to: how many, median and least regret.
std::string summary(std::vector<WaysOutcome> const& outcomes);
std::string to_json(std::vector<WaysOutcome> const& outcomes);

}  // namespace bench
