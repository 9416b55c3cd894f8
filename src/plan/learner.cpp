#include "plan/learner.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace tapioca::plan {

namespace {

constexpr int runs_to_judge = 3;   // the first run allocates memory and faults pages; the shortest of the others counts
constexpr int runs_to_defend = 2;  // runs of the kept way before one that seems to be faster replaces it
constexpr double right_within = 1.25;  // a prediction within this factor counts as right
constexpr double gain = 0.95;          // a way replaces another only if it takes at most this part of its time
constexpr double hopeless = 3;         // if a way is slower by this factor, one run is enough
constexpr double changed = 2;          // if this much slower than in an earlier job, what was learnt no longer holds
constexpr double far_off = 4;  // ways predicted to take this much longer than the chosen one was and did are not tried
constexpr double comes_near = 1.25;       // of the chosen way's prediction: may be faster even if that was right
constexpr double credit_runs = 2;         // how many runs trying may cost at first, if the prediction was off,
constexpr double near_credit_runs = 1;    // and if it was right
constexpr double part_for_trying = 0.05;  // of all the time, later
constexpr double planning_s = 2e-4;       // to make another way's plan,
constexpr double making_s = 3e-4;         // and to allocate its memory, in its first run,
constexpr double most_making_s = 3e-3;    // at most
constexpr double too_short_s = 6e-5;      // shorter steps are not worth another plan

}  // namespace

Learner::Learner(Alternative chosen, std::vector<Alternative> const& others, Learning learning)
    : in_turns_(learning == Learning::always)
{
    trials_.push_back({chosen});
    for (auto const& other : others)
        if (!other.same_as(chosen)) trials_.push_back({other});
    settled_ = learning == Learning::off || trials_.size() < 2;
}

bool Learner::listens() const
{
    return !settled_ && !in_turns_ && (rival_ || trials_[current_].runs < runs_to_judge);
}

/// Whether the planner's own choice took another time than predicted.
bool Learner::off() const
{
    auto const& chosen = trials_.front();
    if (!chosen.seconds) return false;
    return *chosen.seconds > chosen.way.seconds * right_within || *chosen.seconds * right_within < chosen.way.seconds;
}

bool Learner::worth_trying(Trial const& trial) const
{
    if (trial.runs > 0 || !trial.verdict.empty()) return false;
    if (kept().seconds.value_or(0) < too_short_s) return false;
    if (trial.way.is_left()) return true;  // the time of the MPI library cannot be predicted
    if (predicted_near(trial)) return true;
    auto const chosen_s = std::max(kept().seconds.value_or(0), trials_.front().way.seconds);
    return off() && trial.way.seconds < far_off * chosen_s;
}

bool Learner::predicted_near(Trial const& trial) const
{
    return !trial.way.is_left() && trial.way.seconds < comes_near * trials_.front().way.seconds;
}

/// Estimates the worst case: three runs of a way that is predicted to come near, or one run that takes three times as
/// long as the kept way.
bool Learner::affordable(Trial const& trial) const
{
    auto const kept_s = kept().seconds.value_or(0);
    auto const cost = predicted_near(trial) ? runs_to_judge * (comes_near - 1) * kept_s : 2 * kept_s;
    auto const credit = trial.way.is_left() ? 0 : off() ? credit_runs : near_credit_runs;
    return lost_s_ + planning_s + making_s + cost <= credit * kept_s + part_for_trying * spent_s_;
}

void Learner::ran(std::optional<double> seconds)
{
    if (settled_) return;
    auto& trial = trials_[current_];
    ++trial.runs;
    if (in_turns_) return take_turns();
    auto const kept_s = kept().seconds;
    spent_s_ += kept_s.value_or(seconds.value_or(0));
    if (!seconds) return rival_ ? decide() : go_on();
    if (trial.runs > 1) trial.seconds = std::min(*seconds, trial.seconds.value_or(*seconds));
    if (current_ == kept_) return rival_ ? decide() : go_on();
    lost_s_ += std::max(0.0, *seconds - kept_s.value_or(*seconds));
    judge(*seconds);
}

/// Decides about the way that is being tried, whose last run took `last_s`: continue, or go back, for good or to
/// compare.
void Learner::judge(double last_s)
{
    auto& trial = trials_[current_];
    auto const kept_s = kept().seconds.value_or(0);
    bool const given_up =
        trial.runs == 1 ? last_s > hopeless * kept_s + most_making_s : *trial.seconds > comes_near * kept_s;
    if (trial.runs < runs_to_judge && !given_up) return;
    if (trial.seconds && *trial.seconds < gain * kept_s) {
        rival_ = current_;
        current_ = kept_;
        defended_ = 0;
        return;
    }
    trial.verdict = "not faster";
    go_on();
}

/// The kept way has run again after its rival, so that it is not replaced just because it was slow for a while.
void Learner::decide()
{
    if (++defended_ < runs_to_defend) return;
    auto& rival = trials_[*rival_];
    bool const faster = *rival.seconds < gain * kept().seconds.value_or(0);
    rival.verdict = faster ? "faster" : "not faster";
    if (faster) {
        trials_[kept_].verdict = fmt::format("slower than {}", rival.way.name());
        kept_ = *rival_;
    }
    rival_.reset();
    go_on();
}

/// Chooses another way, if one is worth it and the time for it is available now.
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
        lost_s_ += planning_s;
        return;
    }
    if (open) return;
    settled_ = true;
    if (!kept().verdict.empty()) return;
    bool const tried =
        std::any_of(trials_.begin() + 1, trials_.end(), [](auto const& trial) { return trial.runs > 0; });
    trials_[kept_].verdict = tried || off() ? "the fastest of those tried" : "as predicted";
}

/// Takes the next way that was not refused.
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
    rival_.reset();
    go_on();
}

void Learner::prefer(Alternative const& way)
{
    auto const has = [&](auto const& is_it) { return std::find_if(trials_.begin(), trials_.end(), is_it); };
    auto const so_many = has([&](Trial const& trial) { return trial.way.aggregators == way.aggregators; });
    if (settled_ || in_turns_ || so_many == trials_.end()) return;
    auto at = has([&](Trial const& trial) { return trial.way.same_as(way); });
    if (at == trials_.end()) {
        Alternative const known{way.aggregators, so_many->way.seconds, way.buffer_bytes};
        at = trials_.insert(at, Trial{known});
    }
    kept_ = current_ = static_cast<std::size_t>(at - trials_.begin());
    expected_s_ = way.seconds;
}

/// Keeps the way of an earlier job, or starts over.
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
