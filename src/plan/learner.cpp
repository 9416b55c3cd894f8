#include "plan/learner.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace tapioca::plan {

namespace {

constexpr int runs_to_judge = 3;       // the first makes memory and faults pages; the least of the others counts
constexpr double right_within = 1.25;  // a prediction that is not off by more is believed
constexpr double gain = 0.95;          // what a way must take, at most, of the time of the one it is to replace
constexpr double hopeless = 3;         // so much slower, one run is enough
constexpr double changed = 2;          // so much slower than in an earlier job, what was learnt no longer holds
constexpr double far_off = 4;          // nobody tries what is predicted to take so much longer than what was measured
constexpr double credit_runs = 2;      // that trying may cost in the beginning
constexpr double part_for_trying = 0.05;  // of all the time, after that

}  // namespace

Learner::Learner(Alternative chosen, std::vector<Alternative> const& others, Learning learning)
    : in_turns_(learning == Learning::always)
{
    trials_.push_back({chosen});
    for (auto const& other : others)
        if (other.name() != chosen.name()) trials_.push_back({other});
    settled_ = learning == Learning::off || trials_.size() < 2;
}

bool Learner::listens() const
{
    return !settled_ && !in_turns_ && trials_[current_].runs < runs_to_judge;
}

/// Whether the planner's own choice took another time than was predicted.
bool Learner::off() const
{
    auto const& chosen = trials_.front();
    if (!chosen.seconds) return false;
    return *chosen.seconds > chosen.way.seconds * right_within || *chosen.seconds * right_within < chosen.way.seconds;
}

bool Learner::worth_trying(Trial const& trial) const
{
    if (trial.runs > 0 || !trial.verdict.empty()) return false;
    if (trial.way.is_left()) return true;  // nobody can predict what the MPI library takes
    return off() && trial.way.seconds < far_off * kept().seconds.value_or(0);
}

/// If it takes twice the time that the kept way does, three times.
bool Learner::affordable(Trial const& trial) const
{
    auto const kept_s = kept().seconds.value_or(0);
    auto const credit = trial.way.is_left() ? 0.0 : credit_runs * kept_s;
    return lost_s_ + 2 * kept_s <= credit + part_for_trying * spent_s_;
}

void Learner::ran(std::optional<double> seconds)
{
    if (settled_) return;
    auto& trial = trials_[current_];
    ++trial.runs;
    if (in_turns_) return take_turns();
    auto const kept_s = kept().seconds;
    spent_s_ += kept_s.value_or(seconds.value_or(0));
    if (!seconds) return go_on();
    if (trial.runs > 1) trial.seconds = std::min(*seconds, trial.seconds.value_or(*seconds));
    if (current_ == kept_) return go_on();
    lost_s_ += std::max(0.0, *seconds - kept_s.value_or(*seconds));
    judge(*seconds);
}

/// The way that is being tried, and whose last run took so long: go on, keep it, or go back.
void Learner::judge(double last_s)
{
    auto& trial = trials_[current_];
    auto const kept_s = kept().seconds.value_or(0);
    bool const given_up = trial.runs == 1 ? last_s > hopeless * kept_s : *trial.seconds > kept_s;
    if (trial.runs < runs_to_judge && !given_up) return;
    if (trial.seconds && *trial.seconds < gain * kept_s) {
        trials_[kept_].verdict = fmt::format("slower than {}", trial.way.name());
        trial.verdict = "faster";
        kept_ = current_;
    } else {
        trial.verdict = "not faster";
    }
    current_ = kept_;
    go_on();
}

/// Another way, if one is worth it and can be afforded now.
void Learner::go_on()
{
    current_ = kept_;
    if (kept().runs < runs_to_judge) return;
    if (expected_s_) {
        compare_with_earlier();
        if (settled_ || kept().runs < runs_to_judge) return;
    }
    bool open = false;
    for (std::size_t i = 0; i < trials_.size(); ++i) {
        if (i == kept_ || !worth_trying(trials_[i])) continue;
        open = true;
        if (!affordable(trials_[i])) continue;
        current_ = i;
        return;
    }
    if (open) return;
    settled_ = true;
    if (kept().verdict.empty()) trials_[kept_].verdict = off() ? "the fastest of those tried" : "as predicted";
}

/// The next one that was not refused.
void Learner::take_turns()
{
    do current_ = (current_ + 1) % trials_.size();
    while (current_ != kept_ && !trials_[current_].verdict.empty());
}

void Learner::refused(std::string const& why)
{
    trials_[current_].verdict = why.empty() ? "not possible" : why;
    if (in_turns_) return take_turns();
    if (current_ == kept_) kept_ = 0;
    go_on();
}

void Learner::prefer(int aggregators, double seconds)
{
    auto const at = std::find_if(trials_.begin(), trials_.end(),
                                 [&](Trial const& trial) { return trial.way.aggregators == aggregators; });
    if (settled_ || in_turns_ || at == trials_.end()) return;
    kept_ = current_ = static_cast<std::size_t>(at - trials_.begin());
    expected_s_ = seconds;
}

/// The way of an earlier job is kept, or all begins anew.
void Learner::compare_with_earlier()
{
    bool const still = kept().seconds.value_or(0) <= changed * *expected_s_;
    expected_s_.reset();
    trials_[kept_].verdict = still ? "the fastest in an earlier job" : "slower than in an earlier job";
    settled_ = still;
    if (still) return;
    if (kept_ == 0) trials_[kept_].verdict.clear();
    kept_ = current_ = 0;
}

std::string Learner::account() const
{
    std::string text;
    for (auto const& trial : trials_) {
        if (trial.runs == 0 && trial.verdict.empty()) continue;
        if (!text.empty()) text += "; ";
        text += trial.way.name();
        if (!trial.way.is_left()) text += fmt::format(", predicted {:.3f} ms", trial.way.seconds * 1e3);
        if (trial.seconds) text += fmt::format(", measured {:.3f} ms", *trial.seconds * 1e3);
        if (!trial.verdict.empty()) text += fmt::format(" ({})", trial.verdict);
    }
    return text;
}

}  // namespace tapioca::plan
