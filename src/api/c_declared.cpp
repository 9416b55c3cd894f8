// The step of TAPIOCA_Init. Every rank makes as many calls as it declared variables, whether they are good or bad, and
// the last one runs the step. So a rank that supplies something wrong still makes the collective call, which then fails
// on all ranks.
#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "api/c_face.hpp"

namespace tapioca::c {

Declared::Declared(Step step, std::vector<DeclaredVariable> variables)
    : step_{std::move(step), true, {}, {}},
      handle_(Handles<TAPIOCA_Step_s>::all().enter(step_)),
      variables_(std::move(variables)),
      order_(variables_.size()),
      taken_(variables_.size(), 0)
{
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return variables_[a] < variables_[b]; });
    calls_.reserve(variables_.size());
}

Declared::~Declared()
{
    Handles<TAPIOCA_Step_s>::all().strike_out(handle_);
}

/// Equal variables are supplied in the order of their declaration.
core::Result<std::size_t> Declared::take(DeclaredVariable const& which)
{
    auto const first =
        std::lower_bound(order_.begin(), order_.end(), which,
                         [&](std::size_t var, DeclaredVariable const& v) { return variables_[var] < v; });
    if (first == order_.end() || variables_[*first] != which)
        return core::fail(
            Errc::invalid_argument,
            fmt::format("none of the {} declared variables has this offset, count and type size", variables_.size()));
    auto const place = static_cast<std::size_t>(first - order_.begin());
    auto const next = place + taken_[place];
    if (next == order_.size() || variables_[order_[next]] != which)
        return core::fail(Errc::invalid_state, "it was supplied before in this step");
    ++taken_[place];
    return order_[next];
}

void supply(declared::StepState& step, std::size_t var, SuppliedMemory const& memory, declared::Op op)
{
    if (memory.shape)
        step.supply(var, memory.first, *memory.shape, op);
    else
        step.supply(var, memory.first, static_cast<std::size_t>(std::max<std::int64_t>(memory.bytes, 0)), op);
}

void Declared::supply(declared::Op op, DeclaredVariable const& which, SuppliedMemory memory, TAPIOCA_Status* status)
{
    auto& state = api::Internals::of(step_.step);
    auto const spoil = [&](Errc code, std::string const& what) {
        state.spoil(core::fail(
            code, fmt::format("{}(offset {}, {} x {} bytes): {}", op == declared::Op::write ? "write" : "read",
                              which.offset, which.count, which.type_size, what)));
    };
    if (phase_ == Phase::under_way) return spoil(Errc::invalid_state, "the step is under way: call TAPIOCA_Wait first");
    phase_ = Phase::gathering;

    auto const var = take(which);
    if (calls_.empty()) op_ = op;
    calls_.push_back({status, var ? *var : variables_.size()});
    if (!var)
        spoil(var.error().code, var.error().text);
    else if (!memory.problem)
        spoil(memory.problem.error().code, memory.problem.error().text);
    if (var) {
        memory.bytes = which.count * which.type_size;
        c::supply(state, *var, memory, op);
    }
    if (calls_.size() != variables_.size()) return;
    bool const split = split_;
    try {
        begin();
    } catch (...) {
        if (split) phase_ = Phase::failed;
        throw;
    }
    if (!split) settle(TAPIOCA_SUCCESS);
}

/// Starts a run if it is split, and completes it otherwise. If that fails, what was supplied is forgotten.
void Declared::begin()
{
    error_.reset();
    moved_ = {};
    try {
        if (split_)
            step_.step.start();
        else
            moved_ = step_.step.finish();
    } catch (Error const& error) {
        api::Internals::of(step_.step).forget();
        settle(static_cast<int>(error.code()));
        error_ = error;
        throw;
    }
    if (split_) phase_ = Phase::under_way;
}

void Declared::settle(int code)
{
    for (auto const& call : calls_) {
        if (!call.status) continue;
        call.status->error = code;
        call.status->bytes = 0;
        if (code != TAPIOCA_SUCCESS || call.var == variables_.size()) continue;
        auto const& variable = variables_[call.var];
        call.status->bytes = op_ == declared::Op::write ? variable.count * variable.type_size
                                                        : static_cast<std::int64_t>(step_.step.received(call.var));
    }
    calls_.clear();
    std::fill(taken_.begin(), taken_.end(), std::size_t{0});
    split_ = false;
    phase_ = Phase::gathering;
}

void Declared::split()
{
    if (phase_ == Phase::under_way)
        refuse(Errc::invalid_state, "TAPIOCA_Start", "the step is under way: call TAPIOCA_Wait first");
    phase_ = Phase::gathering;
    split_ = true;
}

bool Declared::progress()
{
    if (phase_ == Phase::gathering && split_) return true;  // a rank that leaves out its variables begins in the wait
    if (phase_ != Phase::under_way) refuse(Errc::invalid_state, "TAPIOCA_Progress", "no step is under way");
    return step_.step.progress();
}

Moved Declared::wait()
{
    if (phase_ == Phase::failed) {
        phase_ = Phase::gathering;
        throw Error(*error_);
    }
    if (phase_ == Phase::gathering) begin();
    if (phase_ == Phase::under_way) {
        try {
            moved_ = step_.step.wait();
        } catch (Error const& error) {
            settle(static_cast<int>(error.code()));
            throw;
        }
    }
    settle(TAPIOCA_SUCCESS);
    return moved_;
}

core::Status Declared::idle() const
{
    if (phase_ == Phase::under_way)
        return core::fail(Errc::invalid_state, "the step is under way: call TAPIOCA_Wait first");
    if (!calls_.empty())
        return core::fail(Errc::invalid_state, fmt::format("{} of {} variables were supplied, and the step was not run",
                                                           calls_.size(), variables_.size()));
    return {};
}

}  // namespace tapioca::c
