// Learner: decides which way a repeated step takes. It begins with the way that is predicted to be the fastest,
// measures it, and tries others: those that are predicted to come near and, if the prediction was off, more. It is a
// pure function of the times that it is told: ranks that are told the same times decide the same.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plan/ways.hpp"

namespace tapioca::plan {

/// When other ways are tried.
enum class Learning {
    off,
    on,      ///< if it may pay
    always,  ///< in every run, in turn, whatever the ways take: for tests
};

class Learner {
public:
    /// A way, and the result of trying it.
    struct Trial {
        Alternative way;
        int runs = 0;
        std::optional<double> seconds = {};  ///< the shortest time measured after the first run
        std::string verdict = {};            ///< a text that says why it was kept or not; empty if it was never tried
    };

    /// Learns nothing.
    Learner() = default;
    /// `chosen` is the planner's choice; `others` are in the order in which they are to be tried.
    Learner(Alternative chosen, std::vector<Alternative> const& others, Learning learning = Learning::on);

    /// The way of the next run. @pre there are ways
    [[nodiscard]] Alternative const& way() const { return trials_[current_].way; }
    /// True if there is a choice.
    [[nodiscard]] bool active() const { return trials_.size() > 1; }
    /// Whether ran() needs the seconds of the next run.
    [[nodiscard]] bool listens() const;
    /// A run took the way that way() returned. `seconds` is the same on all ranks; none unless listens().
    void ran(std::optional<double> seconds);
    /// The way that way() returned cannot be taken.
    void refused(std::string const& why);
    /// An earlier job found this way to be the fastest, with this time: it is taken and, unless it takes much longer
    /// now, kept. Has no effect if this job cannot have that number of aggregators.
    void prefer(Alternative const& way);

    /// No other way will be tried.
    [[nodiscard]] bool settled() const { return settled_; }
    [[nodiscard]] std::vector<Trial> const& trials() const { return trials_; }
    /// Describes everything in one line.
    [[nodiscard]] std::string account() const;
    /// The trial of the way that is kept for now.
    [[nodiscard]] Trial const& kept() const { return trials_[kept_]; }

private:
    [[nodiscard]] bool off() const;
    [[nodiscard]] bool worth_trying(Trial const& trial) const;
    [[nodiscard]] bool predicted_near(Trial const& trial) const;
    [[nodiscard]] bool affordable(Trial const& trial) const;
    void judge(double last_s);
    void decide();
    void go_on();
    void compare_with_earlier();
    void take_turns();

    std::vector<Trial> trials_;  ///< the planner's choice first
    std::size_t kept_ = 0;
    std::size_t current_ = 0;
    std::optional<std::size_t> rival_;  ///< seems to be faster than the kept way, which runs again for comparison
    int defended_ = 0;                  ///< runs of the kept way since then
    bool settled_ = true;
    bool in_turns_ = false;
    std::optional<double> expected_s_;  ///< time of the kept way in an earlier job
    double spent_s_ = 0;                ///< in all runs, at the speed of the kept way
    double lost_s_ = 0;                 ///< time lost by trying
};

}  // namespace tapioca::plan
