#include "declared/step_state.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "declared/subfiled_step.hpp"

namespace tapioca::declared {

char const* name(Op op)
{
    return op == Op::write ? "write" : "read";
}

namespace {

constexpr char const* waits = "the step is under way: wait() for it first";

}  // namespace

StepState::StepState(std::shared_ptr<FileState> file, pattern::Variables variables, plan::Plan plan)
    : file_(std::move(file)),
      choice_(*file_, std::move(variables), std::move(plan)),
      data_(this->variables().size(), nullptr),
      relaid_(this->variables().size()),
      supplied_(this->variables().size(), false)
{
    file_->steps.push_back(this);
}

StepState::~StepState()
{
    std::erase(file_->steps, this);
    if (on_set_ != OnSet::no) {  // the other ranks wait for this one
        file_->session->in_flight = false;
        file_->session->abandon();
    }
    try {
        file_->note_learnt(choice_);
        file_->note_forgotten(forgotten());
    } catch (std::bad_alloc const&) {  // without memory for this line, the program fails soon anyway
    }
}

/// How messages refer to a variable.
std::string StepState::called(std::size_t var) const
{
    return var < variables().size() ? variables()[var]->called(var) : pattern::called(var, "");
}

core::Status StepState::forgotten() const
{
    bool const supplied = wanted_ || !input_;
    if (!supplied || under_way() || past_the_log_) return {};
    auto const first = std::find(supplied_.begin(), supplied_.end(), true);
    if (first == supplied_.end())
        return core::fail(Errc::invalid_state, "a variable of a step was supplied, but finish() was never called");
    return core::fail(Errc::invalid_state, fmt::format("{} of a step was supplied, but finish() was never called",
                                                       called(static_cast<std::size_t>(first - supplied_.begin()))));
}

void StepState::spoil(std::size_t var, Op op, Errc code, std::string const& what)
{
    spoil(core::fail(code, fmt::format("{}({}): {}", name(op), called(var), what)));
}

/// True if the variable may be supplied now. Otherwise the mistake is kept for the run.
bool StepState::take_supply(std::size_t var, Op op)
{
    auto const bad = [&](Errc code, std::string const& what) {
        spoil(var, op, code, what);
        return false;
    };
    if (under_way()) return bad(Errc::invalid_state, waits);
    if (wanted_ && *wanted_ != op)
        return bad(Errc::invalid_state, fmt::format("the step already has variables to {}", name(*wanted_)));
    wanted_ = op;
    if (var >= variables().size())
        return bad(Errc::invalid_argument, fmt::format("{} variables are declared", variables().size()));
    if (supplied_[var]) return bad(Errc::invalid_state, "it was supplied before in this step");
    supplied_[var] = true;
    data_[var] = nullptr;
    relaid_[var].reset();
    return true;
}

void StepState::supply(std::size_t var, std::byte* data, std::size_t bytes, Op op)
{
    if (!take_supply(var, op)) return;
    auto const declared = variables()[var]->bytes();
    if (bytes != declared)
        return spoil(var, op, Errc::invalid_argument,
                     fmt::format("the buffer has {} bytes, but {} were declared", bytes, declared));
    if (!data && bytes > 0)
        return spoil(var, op, Errc::invalid_argument, fmt::format("the data is null, its length {}", bytes));
    data_[var] = data;
}

void StepState::supply(std::size_t var, std::byte* first, core::Result<pattern::MemoryShape> const& shape, Op op)
{
    if (!take_supply(var, op)) return;
    core::Status status;
    try {
        status = shape ? relay(var, *shape) : tl::unexpected(shape.error());
    } catch (std::bad_alloc const&) {  // a list of many pieces
        status = core::fail_errno(ENOMEM, "laying the variable over the section");
    }
    if (!status) return spoil(var, op, status.error().code, status.error().text);
    if (!first && variables()[var]->bytes() > 0) return spoil(var, op, Errc::invalid_argument, "the array is null");
    data_[var] = first;
}

/// Lays a variable over a section of memory. If the section happens to be packed, its first element is all that is
/// needed.
core::Status StepState::relay(std::size_t var, pattern::MemoryShape const& shape)
{
    auto known = sections_.find(var);
    if (known == sections_.end() || known->second.shape != shape) {
        auto relaid = pattern::lay_over(*variables()[var], shape);
        if (!relaid) return tl::unexpected(relaid.error());
        auto variable = shape.packed() ? nullptr : std::make_shared<pattern::Variable const>(std::move(*relaid));
        known = sections_.insert_or_assign(var, RelaidVariable{shape, std::move(variable), pattern::places_of(shape)})
                    .first;
    }
    relaid_[var] = known->second.variable;
    return {};
}

/// The bytes of a variable, as the log takes them.
stage::RequestData StepState::data_of(std::size_t var) const
{
    return relaid_[var] ? stage::RequestData(data_[var], &sections_.at(var).places) : data_[var];
}

/// Tells the others what this rank is about to do, and returns what all ranks will do.
Op StepState::announce()
{
    return choice_.announce(wanted_, !input_, file_->mode == Mode::read ? Op::read : Op::write);
}

void StepState::check_input()
{
    auto const& job = plan().job;
    std::int64_t end = 0;
    if (wanted_ == Op::write && file_->mode == Mode::read)
        core::keep_first(input_, core::fail(Errc::invalid_state, "writing to a file opened for reading"));
    base_is_sane_ = !__builtin_add_overflow(base_, job.pattern.end, &end) && base_ + job.pattern.begin >= 0;
    if (!base_is_sane_)
        core::keep_first(input_, core::fail(Errc::invalid_argument,
                                            fmt::format("rebased by {}, bytes {} to {} leave the range of file offsets",
                                                        base_, job.pattern.begin, job.pattern.end)));
    for (std::size_t var = 0; var < variables().size(); ++var)
        if ((!supplied_[var] || !data_[var]) && variables()[var]->bytes() > 0)
            core::keep_first(
                input_, core::fail(Errc::invalid_state, fmt::format("{} ({} bytes) was never supplied", called(var),
                                                                    variables()[var]->bytes())));
}

void StepState::forget()
{
    input_ = {};
    wanted_.reset();
    agreed_.reset();
    std::fill(supplied_.begin(), supplied_.end(), false);
}

/// Ends a run that cannot continue, here and on the other ranks.
void StepState::lose(char const* call)
{
    choice_.now().stop();
    on_set_ = OnSet::no;
    forget();
    file_->lose(call);
}

void StepState::start(bool background)
try {
    begin_run(background);
} catch (std::bad_alloc const&) {
    lose("finish");  // where the others wait
} catch (Error const&) {
    if (!under_way()) forget();  // otherwise the variables belong to the run that is under way
    throw;
}

/// Throws unless a run of this step may begin on this communicator. Local.
void StepState::require_ready(bool background) const
{
    auto const& session = *file_->session;
    if (session.in_flight)
        file_->raise("start",
                     {Errc::invalid_state, 0, -1, "a step is under way on this communicator: wait() for it first"});
    // The message is that of the ranks that have begun, since this rank may be late for the very step that was lost.
    if (session.agreement().abandoned()) file_->raise_if(background ? "start" : "finish", session.agreement().lost());
}

/// Makes sure that all ranks are ready before any of them begins. Throws on all ranks otherwise. Collective.
void StepState::prepare(bool background)
try {
    file_->require_same("start", "the direction", name(choice_.now().op()));
    file_->require_same("start", "the base offset", std::to_string(base_));
    auto ready = choice_.now().prepare(background);
    if (!ready && choice_.fall_back(choice_.now().op())) ready = choice_.now().prepare(background);
    file_->raise_if("start", ready);
} catch (Error const&) {
    choice_.now().call_off();  // all throw
    throw;
}

void StepState::begin_run(bool background)
{
    file_->require_open("start");
    if (staged_) file_->raise("start", {Errc::invalid_state, 0, -1, waits});
    inside_ = 0;
    core::Stopwatch const watch(inside_);
    from_logs_ = over_file_ = false;
    require_ready(background);
    file_->watch(background ? "start" : "finish");
    file_->require_same("start", "the file", file_->path);
    if (start_staged()) return;
    check_input();
    if (start_on_set(background)) return;
    read_straight_ = read_from_nodes_ = false;
    if (agreed_)
        choice_.take_as_announced(*agreed_);
    else
        (void)announce();
    prepare(background);
    auto const base = base_is_sane_ ? base_ : 0;  // bad on all ranks, which then move nothing
    choice_.now().start({data_, relaid_, base, !input_, file_->storage.block_bytes, &file_->lazy_target}, background);
}

bool StepState::progress()
{
    file_->require_own("progress");
    if (staged_) return true;
    if (on_set_ == OnSet::chunk)  // perhaps another rank of the group could not begin
        return !chunk_ || !chunk_->step().under_way() || chunk_->step().progress();
    if (on_set_ == OnSet::straight || on_set_ == OnSet::from_nodes) return true;
    if (!choice_.now().under_way()) file_->raise("progress", {Errc::invalid_state, 0, -1, "no step was started"});
    return choice_.now().advance();
}

Moved StepState::wait()
try {
    auto const moved = end_run();
    read_over();
    return moved;
} catch (std::bad_alloc const&) {
    lose("finish");
}

Moved StepState::end_run()
{
    file_->require_own("wait");
    if (staged_) return *std::exchange(staged_, std::nullopt);
    if (on_set_ == OnSet::chunk) return end_chunk();
    if (on_set_ == OnSet::straight || on_set_ == OnSet::from_nodes) return end_straight();
    if (!choice_.now().under_way()) file_->raise("wait", {Errc::invalid_state, 0, -1, "no step was started"});
    bool const in_background = choice_.now().in_background();
    file_->watch(in_background ? "wait" : "finish");
    auto const outcome = [&] {
        core::Stopwatch const inside(inside_);
        return choice_.now().wait(input_);
    }();
    forget();
    auto& direction = outcome.op == Op::write ? file_->account.write : file_->account.read;
    if (!past_the_log_) {
        ++direction.steps;
        direction.bytes += outcome.status ? outcome.bytes : 0;
    }
    direction.add(outcome, inside_);
    file_->raise_if("finish", outcome.status);
    if (!in_background) choice_.took(outcome.op, inside_);
    if (!past_the_log_) learn_from(outcome.op, in_background);
    return {outcome.bytes, outcome.overlapped_bytes};
}

void StepState::moved_apart(Op op, engine::Times const& times, double seconds)
{
    engine::Transfer::RunOutcome outcome;
    outcome.waiting = seconds - times.draining;
    outcome.times = times;
    (op == Op::write ? file_->account.write : file_->account.read).add(outcome, seconds);
    choice_.took(op, seconds);
}

/// Learns from the time of a run. This is the time since the last rank began, which is the shortest of the ranks'
/// times. With more ranks than cores, that rank may have begun after others had ended, so the longest time is used.
/// Nothing is learnt from a run in the background, which took as long as the program computed.
void StepState::learn_from(Op op, bool in_background)
{
    std::optional<double> seconds;
    if (choice_.listens(op)) {
        auto const& job = plan().job;
        auto const sign = job.ranks > job.cores * job.nodes ? -1 : 1;
        std::array<std::int64_t, 1> nanoseconds = {in_background ? 0 : static_cast<std::int64_t>(inside_ * 1e9) * sign};
        if (!file_->session->agreement().least(nanoseconds)) return;
        if (nanoseconds[0] != 0) seconds = static_cast<double>(nanoseconds[0] * sign) * 1e-9;
    }
    choice_.ran(*file_, op, seconds);
}

void StepState::rebase(std::int64_t offset)
{
    if (under_way()) file_->raise("rebase", {Errc::invalid_state, 0, -1, waits});
    base_ = offset;
}

void StepState::retarget(std::shared_ptr<FileState> file)
{
    if (under_way()) file_->raise("retarget", {Errc::invalid_state, 0, -1, waits});
    file->require_open("retarget");
    if (file->session != file_->session)
        file->raise("retarget", {Errc::invalid_argument, 0, -1, "the file was opened on another communicator"});
    if (file->storage.name != file_->storage.name) choice_.start_over();
    std::erase(file_->steps, this);
    file_ = std::move(file);
    file_->steps.push_back(this);
    file_->account.add(plan(), file_->settings);
}

}  // namespace tapioca::declared
