#include "engine/transfer.hpp"

#include <algorithm>
#include <utility>

#include "core/stopwatch.hpp"

namespace tapioca::engine {

Transfer::Transfer(std::shared_ptr<Session> session, std::shared_ptr<DiscoveredMachine> around,
                   pattern::Variables variables, plan::Plan plan)
    : session_(std::move(session)),
      around_(std::move(around)),
      variables_(std::move(variables)),
      plan_(std::move(plan)),
      received_(variables_.size(), 0)
{
    lay_out();
}

void Transfer::lay_out()
{
    auto const node = session_->team().my_node();
    buffer_layouts_.clear();
    for (auto const* const route : {&plan_.write, &plan_.read}) buffer_layouts_.emplace_back(*route, node);
}

Transfer::~Transfer()
{
    if (!run_) return;
    run_.reset();  // stops the worker
    session_->in_flight = false;
    session_->abandon();
}

Op Transfer::announce(std::optional<Op> mine, bool spoiled, Op otherwise)
{
    using Announcement = Agreement::Announcement;
    ++session_->tickets.step;  // every step gets a new number, even after a start that failed
    auto known = !mine ? Announcement::none : *mine == Op::write ? Announcement::write : Announcement::read;
    session_->agreement().announce(session_->tickets.step, known, spoiled);
    if (known == Announcement::none)
        wait_until(session_->agreement().wait_policy(), "a rank with data to start the step", [&] {
            known = session_->agreement().announced(session_->tickets.step);
            return known != Announcement::unknown || session_->agreement().abandoned();
        });
    op_ = known == Announcement::none ? otherwise : known == Announcement::read ? Op::read : Op::write;
    return op_;
}

void Transfer::take_as_announced(Op all)
{
    using Announcement = Agreement::Announcement;
    ++session_->tickets.step;
    session_->agreement().take_as_announced(session_->tickets.step,
                                            all == Op::write ? Announcement::write : Announcement::read);
    op_ = all;
}

void Transfer::call_off()
{
    session_->agreement().all_began();
    (void)session_->agreement().agree({});
}

bool Transfer::one_sided() const
{
    return route().networked() && route().network.transport == plan::Transport::rma;
}

/// A worker is used in the background, and between nodes, so that messages move while the file system works.
bool Transfer::uses_worker(bool background) const
{
    return background || (route().networked() && session_->spare_core());
}

bool Transfer::does_io() const
{
    if (route().way == plan::Way::direct)
        return std::any_of(variables_.begin(), variables_.end(), [](auto const& v) { return v->bytes() > 0; });
    auto const& ranks = route().ranks;
    return std::find(ranks.begin(), ranks.end(), session_->team().rank()) != ranks.end();
}

core::Status Transfer::prepare(bool background)
{
    if (!route().feasible) return route().feasible;
    bool const threaded = uses_worker(background);
    auto& done = prepared_[op_ == Op::read][threaded];
    if (done && session_->buffers().holds(buffer_layout(), *around_, one_sided())) return {};
    if (auto status = session_->prepare(buffer_layout(), *around_, threaded, does_io()); !status) return status;
    done = true;
    if (!one_sided()) return {};
    auto const window = session_->buffers().make_window();
    if (window) return {};
    plan::refuse_rma(plan_, window.error().text);
    lay_out();
    return session_->prepare(buffer_layout(), *around_, threaded, does_io());
}

/// A variable as it lies in memory in this run.
std::shared_ptr<pattern::Variable const> const& Transfer::in_memory(std::size_t var) const
{
    return var < relaid_.size() && relaid_[var] ? relaid_[var] : variables_[var];
}

/// The layouts of a variable in this run.
std::span<pattern::Layout const> Transfer::layouts(std::size_t var)
{
    auto const& variable = in_memory(var);
    if (op_ == Op::write || !variable->layered()) return variable->layouts();
    auto at = read_once_.find(var);
    if (at == read_once_.end() || at->second.variable != variable)
        at = read_once_.insert_or_assign(var, OverlappingRead{variable, pattern::ReadOnce(*variable)}).first;
    return {&at->second.once.layout(), 1};
}

Context Transfer::context_for(Input const& input)
{
    auto context = session_->context(*around_);
    context.route = &route();
    context.buffer_layout = &buffer_layout();
    context.writing = op_ == Op::write;
    context.every_byte = plan_.job.pattern.dense();
    context.base = input.base;
    context.spoiled = input.spoiled;
    context.threaded = uses_worker(background_);
    context.variables = variables_.size();
    if (route().way == plan::Way::aggregated)
        context.tickets = session_->tickets;
    else
        context.tickets.step = session_->tickets.step;
    // On several nodes, the plan also says which rank sends to which. So the partitions must not move if another file
    // has other blocks.
    auto const block_bytes = route().networked() ? plan_.job.storage.block_bytes : input.block_bytes;
    context.schedule = plan::schedule(route(), block_bytes, context.base);
    context.variable_buffers.reserve(variables_.size());
    if (!context.spoiled)
        for (std::size_t var = 0; var < variables_.size(); ++var)
            for (auto const& layout : layouts(var)) context.variable_buffers.push_back({&layout, data_[var], var});
    context.lazy_target = input.target;
    if (does_io()) {
        context.target = input.target->get();
        context.target_status = input.target->status();
    }
    return context;
}

void Transfer::start(Input const& input, bool background)
{
    session_->in_flight = true;  // from here on, a rank without memory tells the others, which check for it
    data_ = input.data;
    relaid_.assign(input.relaid.begin(), input.relaid.end());
    background_ = background;
    auto context = context_for(input);
    session_->tickets.pass(context.schedule, op_ == Op::write || route().networked());
    run_ = engine::start(std::move(context));
    (void)run_->advance(!background);
    drained_at_start_ = run_->drained_bytes();
}

Transfer::RunOutcome Transfer::wait(core::Status const& input)
{
    RunOutcome outcome;
    outcome.op = op_;
    if (background_) outcome.overlapped_bytes = run_->drained_bytes() - drained_at_start_;
    auto& status = outcome.status = input;
    auto const copying_before = run_->copying();
    {
        core::Stopwatch const watch(outcome.waiting);
        wait_until(session_->agreement().wait_policy(), op_ == Op::write ? "a free buffer" : "a block of the file",
                   [&] { return run_->advance() || session_->agreement().abandoned(); });
        core::keep_first(status, run_->settle());
        status = session_->agreement().agree(status);
        session_->agreement().all_began();  // all have begun, since they agree
    }
    outcome.times = run_->times();
    outcome.waiting = std::max(0.0, outcome.waiting - (outcome.times.copying - copying_before));
    received_ = run_->received();
    if (op_ == Op::read && status)
        for (auto const& [var, read] : read_once_) received_[var] = read.once.spread(data_[var], received_[var]);
    run_.reset();
    session_->in_flight = false;
    for (std::size_t var = 0; var < variables_.size(); ++var)
        outcome.bytes += op_ == Op::write ? variables_[var]->bytes() : received_[var];
    return outcome;
}

}  // namespace tapioca::engine
