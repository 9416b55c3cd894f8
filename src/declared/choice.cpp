#include "declared/choice.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "core/index.hpp"

namespace tapioca::declared {

namespace {

plan::Route const& route_of(plan::Plan const& plan, Op op)
{
    return op == Op::write ? plan.write : plan.read;
}

}  // namespace

Choice::Choice(file::OpenFile const& file, pattern::Variables variables, plan::Plan plan)
    : session_(file.session), around_(file.around), planned_(session_, around_, std::move(variables), std::move(plan))
{
}

void Choice::learn(plan::Learning learning, bool with_left)
{
    learning_ = learning;
    with_left_ = with_left;
    start_over();
}

void Choice::start_over()
{
    if (learning_ == plan::Learning::off) return;
    for (auto const op : {Op::write, Op::read}) {
        auto const& route = route_of(plan(), op);
        if (!route.feasible || plan().job.pattern.bytes == 0) continue;
        auto others = plan::alternatives(plan().job, route, op == Op::read);
        // MPI libraries fill new holes with arbitrary bytes, and miscount reads across the end of a file. For many
        // small pieces, one of their calls may take as long as hundreds of ours.
        auto const& pattern = plan().job.pattern;
        bool const rightly = op == Op::write && pattern.dense() && pattern.pieces <= pattern.ranks_with_data;
        bool const open = plan().job.options.direct.value_or(Direct::automatic) == Direct::automatic;
        if (with_left_ && rightly && open) others.push_back({plan::Alternative::left, 0});
        learner(op) = plan::Learner(plan::taken_by(route), others, learning_);
    }
}

Choice::WayKey Choice::key(Op op, plan::Alternative const& way)
{
    return {op, way.aggregators, way.buffer_bytes};
}

/// The transfer of the way that is to be taken, or null if it was not made yet.
engine::Transfer* Choice::find(Op op)
{
    if (!learner(op).active()) return &planned_;
    // An access that should be left to the MPI library, but cannot be this time, takes the way that is kept.
    auto const& way = learner(op).way().is_left() ? learner(op).kept().way : learner(op).way();
    if (way.is_left() || way.same_as(plan::taken_by(route_of(plan(), op)))) return &planned_;
    auto const at = others_.find(key(op, way));
    return at == others_.end() ? nullptr : at->second.get();
}

bool Choice::is_direct(Op op)
{
    return !learns(op) && !leaves(op) && route_of(find(op)->plan(), op).way == plan::Way::direct;
}

Op Choice::announce(std::optional<Op> mine, bool spoiled, Op otherwise)
{
    auto const op = planned_.announce(mine, spoiled, otherwise);
    now_ = find(op);
    now_->assume(op);
    return op;
}

void Choice::take_as_announced(Op all)
{
    planned_.take_as_announced(all);
    now_ = find(all);
    now_->assume(all);
}

bool Choice::fall_back(Op op)
{
    if (now_ == &planned_) return false;
    learner(op) = plan::Learner();
    now_ = &planned_;
    now_->assume(op);
    return true;
}

/// Plans the way that is to be taken. The same Status on every rank. Collective.
core::Status Choice::make(file::OpenFile const& file, Op op)
{
    auto const& way = learner(op).way();
    auto plan = file.plan(variables(), way.apply(this->plan().job.options));
    if (!plan) return tl::unexpected(plan.error());
    auto const& route = route_of(*plan, op);
    if (!route.feasible) return route.feasible;
    others_[key(op, way)] = std::make_unique<engine::Transfer>(session_, file.around, variables(), std::move(*plan));
    return {};
}

/// Makes the plan of the way that is to be taken next. If that fails, another way is taken. Collective.
void Choice::get_ready(file::OpenFile const& file, Op op)
{
    while (!find(op)) {
        auto const made = make(file, op);
        if (!made) learner(op).refused(made.error().text);
    }
}

void Choice::ran(file::OpenFile const& file, Op op, std::optional<double> seconds)
{
    auto& learner = this->learner(op);
    if (learner.settled()) return;
    learner.ran(seconds);
    get_ready(file, op);
    if (!learner.settled()) return;
    auto const* const kept = find(op);
    std::erase_if(others_, [&](auto const& other) {
        return std::get<Op>(other.first) == op && other.second.get() != kept && other.second.get() != now_;
    });
}

void Choice::prefer(file::OpenFile const& file, machine::Learnt const& learnt)
{
    for (auto const op : {Op::write, Op::read}) {
        if (!learner(op).active()) continue;
        auto const way = learnt.find(plan::shape_of(plan().job, op == Op::read));
        if (way && way->aggregators == plan::Alternative::left && !with_left_) continue;
        if (!way) continue;
        auto const seconds = way->seconds_per_byte * core::as_double(plan().job.pattern.bytes);
        learner(op).prefer({way->aggregators, seconds, way->buffer_bytes});
        get_ready(file, op);
    }
}

std::string Choice::lines(machine::Learnt const& learnt) const
{
    std::string text;
    for (auto const op : {Op::write, Op::read}) {
        if (!learner(op).active() || !learner(op).settled() || !learner(op).kept().seconds) continue;
        auto const key = plan::shape_of(plan().job, op == Op::read);
        auto const& kept = learner(op).kept();
        auto const before = learnt.find(key);
        auto const& way = kept.way;
        if (before && way.same_as({before->aggregators, 0, before->buffer_bytes})) continue;
        auto const per_byte = *kept.seconds / core::as_double(plan().job.pattern.bytes);
        text += machine::Learnt::line(key, {way.aggregators, way.buffer_bytes, per_byte});
    }
    return text;
}

std::string Choice::explain() const
{
    std::string text;
    for (auto const op : {Op::write, Op::read}) {
        if (!learner(op).active() || learner(op).kept().runs == 0) continue;
        text += fmt::format("  learnt about {}: {}\n", op == Op::write ? "writing" : "reading", learner(op).account());
    }
    return text;
}

void Choice::took(Op op, double seconds)
{
    auto& measured = measured_[op == Op::write ? 0 : 1];
    if (now_ != &planned_) return;
    ++measured.runs;
    if (measured.runs > 1) measured.seconds = std::min(seconds, measured.seconds.value_or(seconds));
}

void Choice::describe(nlohmann::ordered_json& list) const
{
    for (auto const op : {Op::write, Op::read}) {
        auto const& measured = measured_[op == Op::write ? 0 : 1];
        bool const tried = learner(op).active() && learner(op).kept().runs > 0;
        if (measured.runs == 0 && !tried) continue;
        auto const planned = plan::taken_by(route_of(plan(), op));
        list.push_back({{"op", op == Op::write ? "write" : "read"},
                        {"planned", planned.name()},
                        {"runs", measured.runs},
                        {"predicted_s", planned.seconds}});
        auto& step = list.back();
        if (!plan().job.variables.empty()) step["variables"] = plan().job.variables;
        if (measured.seconds) step["measured_s"] = *measured.seconds;
        if (!learner(op).active()) continue;
        step["kept"] = learner(op).kept().way.name();
        step["settled"] = learner(op).settled();
        step["ways"] = nlohmann::ordered_json::array();
        for (auto const& trial : learner(op).trials()) {
            if (trial.runs == 0 && trial.verdict.empty()) continue;
            nlohmann::ordered_json one{{"way", trial.way.name()}, {"runs", trial.runs}, {"verdict", trial.verdict}};
            if (!trial.way.is_left()) one["predicted_s"] = trial.way.seconds;
            if (trial.seconds) one["measured_s"] = *trial.seconds;
            step["ways"].push_back(std::move(one));
        }
    }
}

}  // namespace tapioca::declared
