// Step: collects buffers, runs the plan, and brings all ranks to the same answer.
#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/core.h>

#include "api/state.hpp"

namespace tapioca {

namespace api {

namespace {

char const* name(Op op)
{
    return op == Op::write ? "write" : "read";
}

}  // namespace

StepState::StepState(std::shared_ptr<FileState> file, pattern::Variables variables, plan::Plan plan)
    : file_(std::move(file)),
      variables_(std::move(variables)),
      plan_(std::move(plan)),
      around_(file_->around),
      data_(variables_.size(), nullptr),
      supplied_(variables_.size(), false),
      received_(variables_.size(), 0)
{
    lay_out();
    file_->steps.push_back(this);
}

void StepState::lay_out()
{
    auto const node = file_->pool->team().my_node();
    sites_.clear();
    for (auto const* const route : {&plan_.write, &plan_.read}) sites_.emplace_back(*route, node);
}

StepState::~StepState()
{
    std::erase(file_->steps, this);
    try {
        file_->note_forgotten(forgotten());
    } catch (std::bad_alloc const&) {  // whoever has no memory for a line hears of it anyway
    }
    if (!run_) return;
    run_.reset();  // stops the worker; the other ranks' counters are lost
    file_->pool->in_flight = false;
    file_->pool->abandon();
}

core::Status StepState::forgotten() const
{
    bool const supplied = wanted_ || !input_;
    if (!supplied || run_ || past_the_log_) return {};
    auto const first = std::find(supplied_.begin(), supplied_.end(), true);
    if (first == supplied_.end())
        return core::fail(Errc::invalid_state, "a variable of a step was supplied, and finish() was never called");
    return core::fail(
        Errc::invalid_state,
        fmt::format("variable {} of a step was supplied, and finish() was never called", first - supplied_.begin()));
}

void StepState::supply(std::size_t var, std::byte* data, std::size_t bytes, Op op)
{
    auto const bad = [&](Errc code, std::string const& what) {
        core::keep_first(input_, core::fail(code, fmt::format("{}(variable {}): {}", name(op), var, what)));
    };
    if (run_) return bad(Errc::invalid_state, "the step is under way: wait() for it first");
    if (wanted_ && *wanted_ != op)
        return bad(Errc::invalid_state, fmt::format("the step already has variables to {}", name(*wanted_)));
    wanted_ = op;
    if (var >= variables_.size())
        return bad(Errc::invalid_argument, fmt::format("{} variables are declared", variables_.size()));
    if (supplied_[var]) return bad(Errc::invalid_state, "it was supplied before in this step");
    supplied_[var] = true;
    if (bytes != variables_[var]->bytes())
        return bad(Errc::invalid_argument,
                   fmt::format("the buffer has {} bytes, the declaration {}", bytes, variables_[var]->bytes()));
    if (!data && bytes > 0) return bad(Errc::invalid_argument, fmt::format("the data is null, its length {}", bytes));
    data_[var] = data;
}

/// Tells the others what this rank is about to do; ranks without data learn from them whether this is a write or a
/// read.
Op StepState::begin()
{
    using Direction = engine::Pool::Direction;
    auto& pool = *file_->pool;
    ++pool.tickets.step;  // a number of its own, also after a start that failed
    auto known = !wanted_ ? Direction::none : *wanted_ == Op::write ? Direction::write : Direction::read;
    pool.announce(known, !input_);
    if (known == Direction::none)
        engine::wait_until(pool.patience(), "a rank with data to start the step", [&] {
            known = pool.announced();
            return known != Direction::unknown || pool.abandoned();
        });
    if (known == Direction::none && file_->mode == Mode::read) return Op::read;  // nothing to move at all
    return known == Direction::read ? Op::read : Op::write;
}

void StepState::check_input()
{
    auto const& job = plan_.job;
    std::int64_t end = 0;
    if (wanted_ == Op::write && file_->mode == Mode::read)
        core::keep_first(input_, core::fail(Errc::invalid_state, "writing to a file opened for reading"));
    base_is_sane_ = !__builtin_add_overflow(base_, job.pattern.end, &end) && base_ + job.pattern.begin >= 0;
    if (!base_is_sane_)
        core::keep_first(input_, core::fail(Errc::invalid_argument,
                                            fmt::format("rebased by {}, bytes {} to {} leave the range of file offsets",
                                                        base_, job.pattern.begin, job.pattern.end)));
    for (std::size_t var = 0; var < variables_.size(); ++var)
        if (!supplied_[var] && variables_[var]->bytes() > 0)
            core::keep_first(
                input_, core::fail(Errc::invalid_state, fmt::format("variable {} ({} bytes) was never supplied", var,
                                                                    variables_[var]->bytes())));
}

/// In the background; and between nodes, so that messages move while the file system is at work.
bool StepState::uses_worker(bool background) const
{
    return background || (route().networked() && file_->pool->spare_core());
}

bool StepState::does_io() const
{
    auto const rank = file_->pool->team().rank();
    if (route().way == plan::Way::direct)
        return std::any_of(variables_.begin(), variables_.end(), [](auto const& v) { return v->bytes() > 0; });
    return std::find(route().ranks.begin(), route().ranks.end(), rank) != route().ranks.end();
}

void StepState::prepare(bool background)
{
    auto& pool = *file_->pool;
    bool const threaded = uses_worker(background);
    auto& done = prepared_[op_ == Op::read][threaded];
    if (done && pool.holds(site(), *around_, one_sided())) return;
    file_->raise_if("start", pool.prepare(site(), *around_, threaded, does_io()));
    done = true;
    if (!one_sided()) return;
    auto const status = pool.prepare_window();
    if (status) return;
    plan::refuse_rma(plan_, status.error().text);
    lay_out();
    file_->raise_if("start", pool.prepare(site(), *around_, threaded, does_io()));
}

/// What was supplied counts for one run, whether that comes about or not.
void StepState::forget()
{
    input_ = {};
    wanted_.reset();
    std::fill(supplied_.begin(), supplied_.end(), false);
}

/// Whether this is a write or a read of a staged file. Where every rank has data, each knows by itself; else those
/// without learn from the others.
Op StepState::staged_direction()
{
    auto const& pattern = plan_.job.pattern;
    if (pattern.ranks_with_data == 0) return Op::write;  // of nothing
    if (pattern.ranks_with_data == pattern.ranks) return wanted_.value_or(Op::write);
    auto const op = begin();
    file_->pool->all_began();
    (void)file_->pool->agree({});  // so that nobody is two steps ahead
    return op;
}

/// Local: what goes wrong is this rank's, and all hear of it at the next flush.
void StepState::write_staged()
{
    auto const check = file_->check();
    auto status = input_;
    if (check)
        status = file_->pool->agree(status);
    else
        file_->staging->note_failure(status);
    try {
        for (std::size_t var = 0; var < variables_.size() && status; ++var)
            status = file_->staging->write({*variables_[var], base_, data_[var], static_cast<std::uint32_t>(var)});
    } catch (std::bad_alloc const&) {
        status = core::fail_errno(ENOMEM, "the log");
        file_->staging->note_failure(status);
    }
    forget();
    if (!status && status.error().rank < 0) status.error().rank = file_->pool->team().rank();
    file_->raise_if("write to the log", status);
}

/// True if the run was a write and went to the log.
bool StepState::start_staged()
{
    if (!file_->staging || past_the_log_) return false;
    auto& staging = *file_->staging;
    staging.advance();
    check_input();
    op_ = staged_direction();
    if (file_->check()) file_->require_same("start", "the direction", name(op_));
    if (op_ == Op::read) {
        auto const& pattern = plan_.job.pattern;
        auto const base = base_is_sane_ ? base_ : 0;
        file_->raise_if("read", staging.flush_before_read(base + pattern.begin, base + pattern.end));
        return false;
    }
    Moved moved;
    for (auto const& variable : variables_) moved.bytes += variable->bytes();
    write_staged();
    auto& account = file_->account.write;
    ++account.steps;
    account.bytes += moved.bytes;
    staged_ = moved;
    return true;
}

/// The run cannot go on, nor can those of the other ranks.
void StepState::lose(char const* call)
{
    run_.reset();
    forget();
    file_->lose(call);
}

void StepState::start(bool background)
try {
    begin_run(background);
} catch (std::bad_alloc const&) {
    lose("finish");  // in which the others wait
} catch (Error const&) {
    if (!run_) forget();  // else they belong to the run that is under way
    throw;
}

/// Of a variable, for this run.
std::span<pattern::Layout const> StepState::layouts(std::size_t var)
{
    if (op_ == Op::write || !variables_[var]->layered()) return variables_[var]->layouts();
    auto const at = read_once_.try_emplace(var, *variables_[var]).first;
    return {&at->second.layout(), 1};
}

void StepState::begin_run(bool background)
{
    file_->require_open("start");
    if (staged_) file_->raise("start", {Errc::invalid_state, 0, -1, "the step is under way: wait() for it first"});
    inside_ = 0;
    engine::Stopwatch const watch(inside_);
    auto& pool = *file_->pool;
    if (pool.in_flight)
        file_->raise("start",
                     {Errc::invalid_state, 0, -1, "a step is under way on this communicator: wait() for it first"});
    // In the words of those who have begun: this rank may be late for the very step that was lost.
    if (pool.abandoned()) file_->raise_if(background ? "start" : "finish", pool.lost());
    file_->watch(background ? "start" : "finish");

    file_->require_same("start", "the file", file_->path);
    if (start_staged()) return;
    check_input();
    op_ = begin();
    try {
        file_->require_same("start", "the direction", name(op_));
        file_->require_same("start", "the base offset", std::to_string(base_));
        file_->raise_if("start", route().feasible);
        prepare(background);
    } catch (Error const&) {
        pool.all_began();
        (void)pool.agree({});  // all throw: nobody begins the next step before the last has heard of this one
        throw;
    }

    pool.in_flight = true;  // whoever finds no memory from here on tells the others, who look
    auto context = pool.context(*around_);
    context.route = &route();
    context.site = &site();
    context.writing = op_ == Op::write;
    context.every_byte = plan_.job.pattern.dense();
    context.base = base_is_sane_ ? base_ : 0;  // the same on all ranks, which then move nothing
    context.spoiled = !input_;
    context.threaded = uses_worker(background);
    background_ = background;
    context.variables = variables_.size();
    if (route().way == plan::Way::aggregated)
        context.tickets = pool.tickets;
    else
        context.tickets.step = pool.tickets.step;
    // On several nodes the plan also says who feeds whom: another file's blocks must not move the partitions.
    auto const& storage = route().networked() ? plan_.job.storage : file_->storage;
    context.schedule = plan::schedule(route(), storage.block_bytes, context.base);
    context.tracks.reserve(variables_.size());
    if (!context.spoiled)
        for (std::size_t var = 0; var < variables_.size(); ++var)
            for (auto const& layout : layouts(var)) context.tracks.push_back({&layout, data_[var], var});
    if (does_io()) {
        context.target = file_->target();
        context.target_status = file_->target_status();
    }
    context.open_target = [file = file_.get()](core::Status& why_not) {
        auto* const target = file->target();
        if (!target) why_not = file->target_status();
        return target;
    };
    pool.tickets.pass(context.schedule, op_ == Op::write || route().networked());

    waiting_ = 0;
    run_ = engine::start(std::move(context));
    (void)run_->advance(!background);
    drained_at_start_ = run_->drained_bytes();
}

bool StepState::progress()
{
    file_->require_own("progress");
    if (staged_) return true;
    if (!run_) file_->raise("progress", {Errc::invalid_state, 0, -1, "no step was started"});
    return run_->advance(false);
}

Moved StepState::wait()
try {
    return end_run();
} catch (std::bad_alloc const&) {
    lose("finish");
}

Moved StepState::end_run()
{
    file_->require_own("wait");
    if (staged_) return *std::exchange(staged_, std::nullopt);
    if (!run_) file_->raise("wait", {Errc::invalid_state, 0, -1, "no step was started"});
    file_->watch(background_ ? "wait" : "finish");
    auto& pool = *file_->pool;
    Moved moved;
    if (background_) moved.overlapped_bytes = run_->drained_bytes() - drained_at_start_;
    core::Status status = input_;
    auto const copying_before = run_->copying();
    {
        engine::Stopwatch const inside(inside_);
        engine::Stopwatch const watch(waiting_);
        engine::wait_until(pool.patience(), op_ == Op::write ? "a free buffer" : "a block of the file",
                           [&] { return run_->advance() || pool.abandoned(); });
        core::keep_first(status, run_->settle());
        pool.all_began();
        status = pool.agree(status);
    }
    auto const times = run_->times();
    received_ = run_->received();
    if (op_ == Op::read && status)
        for (auto const& [var, once] : read_once_) received_[var] = once.spread(data_[var], received_[var]);
    run_.reset();
    pool.in_flight = false;
    forget();

    for (std::size_t var = 0; var < variables_.size(); ++var)
        moved.bytes += op_ == Op::write ? variables_[var]->bytes() : received_[var];
    auto& direction = op_ == Op::write ? file_->account.write : file_->account.read;
    if (!past_the_log_) {  // else they were counted when they went into it
        ++direction.steps;
        direction.bytes += status ? moved.bytes : 0;
    }
    direction.overlapped += moved.overlapped_bytes;
    direction.waiting += std::max(0.0, waiting_ - (times.copying - copying_before));
    direction.inside += inside_;
    direction.times.copying += times.copying;
    direction.times.draining += times.draining;
    direction.times.bytes += times.bytes;
    direction.times.rounds += times.rounds;
    direction.times.calls += times.calls;
    file_->raise_if("finish", status);
    return moved;
}

std::uint64_t StepState::received(std::size_t var) const
{
    return var < received_.size() ? received_[var] : 0;
}

void StepState::rebase(std::int64_t offset)
{
    if (run_) file_->raise("rebase", {Errc::invalid_state, 0, -1, "the step is under way: wait() for it first"});
    base_ = offset;
}

void StepState::retarget(std::shared_ptr<FileState> file)
{
    if (run_) file_->raise("retarget", {Errc::invalid_state, 0, -1, "the step is under way: wait() for it first"});
    file->require_open("retarget");
    if (file->pool != file_->pool)
        file->raise("retarget", {Errc::invalid_argument, 0, -1, "the file was opened on another communicator"});
    std::erase(file_->steps, this);
    file_ = std::move(file);
    file_->steps.push_back(this);
    if (file_->settings.options.report) file_->account.plans.push_back(to_json(plan_, file_->settings));
}

}  // namespace api

namespace {

api::StepState& alive(std::unique_ptr<api::StepState> const& state, char const* call)
{
    if (!state) throw Error(Errc::invalid_state, -1, 0, "", fmt::format("tapioca: {}: the step was moved from", call));
    return *state;
}

}  // namespace

Step::Step(std::unique_ptr<api::StepState> state) : state_(std::move(state)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&& other) noexcept
{
    Step old(std::move(other));
    std::swap(state_, old.state_);
    return *this;
}
Step::~Step()
{
    if (state_ && state_->file().forked()) (void)state_.release();  // the parent's
}

void Step::write(std::size_t var, std::span<std::byte const> bytes)
{
    alive(state_, "write").supply(var, const_cast<std::byte*>(bytes.data()), bytes.size(), api::Op::write);
}

void Step::read(std::size_t var, std::span<std::byte> bytes)
{
    alive(state_, "read").supply(var, bytes.data(), bytes.size(), api::Op::read);
}

Moved Step::finish()
{
    alive(state_, "finish").start(false);
    return state_->wait();
}

void Step::start()
{
    alive(state_, "start").start(true);
}

bool Step::progress()
{
    return alive(state_, "progress").progress();
}

Moved Step::wait()
{
    return alive(state_, "wait").wait();
}

std::uint64_t Step::received(std::size_t var) const
{
    return alive(state_, "received").received(var);
}

void Step::rebase(std::int64_t offset)
{
    alive(state_, "rebase").rebase(offset);
}

void Step::retarget(File& file)
{
    if (!file.state_) throw Error(Errc::invalid_state, -1, 0, "", "tapioca: retarget: the file was moved from");
    alive(state_, "retarget").retarget(file.state_);
}

Plan Step::plan() const
{
    auto const& plan = alive(state_, "plan").plan();
    auto const& settings = state_->file().settings;
    return {plan::explain(plan, api::describe(settings)), api::to_json(plan, settings)};
}

}  // namespace tapioca
