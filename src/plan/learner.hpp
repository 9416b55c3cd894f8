// Learner: which way a step that runs again takes. It begins with the way that is predicted to be the fastest, looks
// how long that takes, and tries others: those that are predicted to come near, and more where the prediction was off.
// A pure function of the seconds that it is told: ranks that are told the same decide the same.
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
    on,      ///< where that may pay
    always,  ///< in every run, in turns, whatever they take: for tests
};

class Learner {
public:
    /// A way, and what became of it.
    struct Trial {
        Alternative way;
        int runs = 0;
        std::optional<double> seconds = {};  ///< the least that was measured after the first run
        std::string verdict = {};            ///< for people: why it was kept or not; empty if it was never tried
    };

    /// Nothing is learnt.
    Learner() = default;
    /// `chosen` is what the planner chose; `others` in the order in which they are to be tried.
    Learner(Alternative chosen, std::vector<Alternative> const& others, Learning learning = Learning::on);

    /// The way of the next run. @pre there are some
    [[nodiscard]] Alternative const& way() const { return trials_[current_].way; }
    /// True if there is a choice.
    [[nodiscard]] bool active() const { return trials_.size() > 1; }
    /// Whether ran() needs the seconds of the next run.
    [[nodiscard]] bool listens() const;
    /// A run went the way that was to be taken. The same `seconds` on all ranks; none if nobody listens.
    void ran(std::optional<double> seconds);
    /// The way that was to be taken cannot be.
    void refused(std::string const& why);
    /// An earlier job has found this way to be the fastest, in so many seconds: it is taken and, unless it takes much
    /// longer now, kept. Nothing changes if this job cannot have so many aggregators.
    void prefer(Alternative const& way);

    /// No other way will be tried.
    [[nodiscard]] bool settled() const { return settled_; }
    [[nodiscard]] std::vector<Trial> const& trials() const { return trials_; }
    /// All of it in a line.
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
    std::optional<std::size_t> rival_;  ///< seems to be faster than the kept way, which runs again to be compared
    int defended_ = 0;                  ///< runs of the kept way since then
    bool settled_ = true;
    bool in_turns_ = false;
    std::optional<double> expected_s_;  ///< of the kept way, by an earlier job
    double spent_s_ = 0;                ///< in all runs, by what the kept way takes
    double lost_s_ = 0;                 ///< by trying
};

}  // namespace tapioca::plan
