// Choice: the ways in which a step can be run. The first is that of the plan. If learning is on, other plans are made
// and tried (plan/learner.hpp).
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include <nlohmann/json.hpp>

#include "engine/transfer.hpp"
#include "file/open_file.hpp"
#include "machine/learnt.hpp"
#include "plan/learner.hpp"

namespace tapioca::declared {

using engine::Op;

class Choice {
public:
    Choice(file::OpenFile const& file, pattern::Variables variables, plan::Plan plan);

    /// From now on, other ways may be tried. With `with_left`, one of them is to leave the access to the MPI library.
    /// Local.
    void learn(plan::Learning learning, bool with_left);
    /// The transfer of the next run, or of the one that is under way.
    [[nodiscard]] engine::Transfer& now() { return *now_; }
    [[nodiscard]] engine::Transfer const& now() const { return *now_; }
    /// As Transfer::announce(). Also selects the way of the announced run.
    Op announce(std::optional<Op> mine, bool spoiled, Op otherwise);
    /// As Transfer::take_as_announced().
    void take_as_announced(Op all);
    /// There is no memory for the way that was to be tried, so all runs follow the plan from now on. Returns false if
    /// this run already followed the plan. Local; the same on all ranks.
    bool fall_back(Op op);
    /// True if ran() must be called after runs in this direction.
    [[nodiscard]] bool learns(Op op) const { return learner(op).active() && !learner(op).settled(); }
    /// True if the next run in this direction is to be left to the MPI library.
    [[nodiscard]] bool leaves(Op op) const { return learner(op).active() && learner(op).way().is_left(); }
    /// True if it is settled that every rank moves its own data in this direction.
    [[nodiscard]] bool is_direct(Op op);
    /// True if ran() needs the seconds of the next run.
    [[nodiscard]] bool listens(Op op) const { return learner(op).listens(); }
    /// Takes the duration of a run, which is the same on all ranks, or nothing if listens() was false. Makes the plan
    /// of the next way. Collective.
    void ran(file::OpenFile const& file, Op op, std::optional<double> seconds);
    /// Takes what earlier jobs have learnt. Collective; the same on all ranks.
    void prefer(file::OpenFile const& file, machine::Learnt const& learnt);
    /// Lines for later jobs with the results that are not yet in `learnt`. Local.
    [[nodiscard]] std::string lines(machine::Learnt const& learnt) const;
    /// Takes the duration of a run on this rank. Local.
    void took(Op op, double seconds);
    /// Forgets what was learnt, since circumstances have changed. Local.
    void start_over();

    /// The plan that the step was declared with.
    [[nodiscard]] plan::Plan const& plan() const { return planned_.plan(); }
    [[nodiscard]] pattern::Variables const& variables() const { return planned_.variables(); }
    [[nodiscard]] plan::Learner const& learner(Op op) const { return learners_[op == Op::write ? 0 : 1]; }
    /// Describes what was tried, for people; empty if nothing was tried.
    [[nodiscard]] std::string explain() const;
    /// For the report: appends an object to `list` for each direction that was used, with the predicted time, the time
    /// measured after the first run, and what was tried.
    void describe(nlohmann::ordered_json& list) const;

private:
    using WayKey = std::tuple<Op, int, std::uint64_t>;  // the direction, the number of aggregators, bytes of a buffer

    [[nodiscard]] static WayKey key(Op op, plan::Alternative const& way);
    [[nodiscard]] plan::Learner& learner(Op op) { return learners_[op == Op::write ? 0 : 1]; }
    [[nodiscard]] engine::Transfer* find(Op op);
    void get_ready(file::OpenFile const& file, Op op);
    [[nodiscard]] core::Status make(file::OpenFile const& file, Op op);

    std::shared_ptr<engine::Session> session_;
    std::shared_ptr<engine::DiscoveredMachine> around_;
    engine::Transfer planned_;
    std::map<WayKey, std::unique_ptr<engine::Transfer>> others_;
    engine::Transfer* now_ = &planned_;
    std::array<plan::Learner, 2> learners_;  ///< for writing and for reading
    struct Measured {
        std::uint64_t runs = 0;
        std::optional<double> seconds;  ///< the shortest run after the first one
    };
    std::array<Measured, 2>
        measured_;  ///< runs that followed the plan, as timed on this rank, for writing and for reading
    plan::Learning learning_ = plan::Learning::off;
    bool with_left_ = false;
};

}  // namespace tapioca::declared
