#include "mpiio/steps.hpp"

#include <array>
#include <limits>
#include <new>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>

#include "mpiio/error_class.hpp"
#include "mpiio/program_file.hpp"

namespace tapioca::mpiio {

/// What all ranks have decided together about an access.
struct Steps::Decision {
    bool served = false;
    bool reopen = false;               ///< some rank has new hints
    bool give_up = false;              ///< the ranks have opened different files, or some rank has opened none
    bool empty = false;                ///< no rank moves any data
    bool may_be_left = false;          ///< the MPI library is known to write such data correctly
    bool ahead = false;                ///< every rank has already done its part
    std::optional<std::size_t> known;  ///< a plan that fits
    std::int64_t shift = 0;            ///< by which the plan is to be shifted
};

namespace {

/// A variable for the access. If there is no memory for it, it is one whose declaration fails on all ranks.
pattern::Variable to_variable(pattern::Access const& access)
try {
    return pattern::variable_of(access);
} catch (std::exception const& error) {
    return pattern::Variable::failed(core::fail(Errc::memory, error.what()));
}

constexpr auto any_shift = std::numeric_limits<std::int64_t>::max();
constexpr auto no_match = -any_shift;

/// Whether all ranks contributed the same value, given the least of the values and the least of their negations.
bool agreed(std::int64_t least, std::int64_t least_negated)
{
    return least != no_match && least == -least_negated;
}

}  // namespace

void Steps::open(std::shared_ptr<declared::FileState> file)
{
    file_ = std::move(file);
    auto const& storage = file_->storage;
    conditions_ = fmt::format("{} {} {} {} {} {}", static_cast<int>(file_->mode), storage.name, storage.block_bytes,
                              storage.stripe_bytes, storage.stripe_count, settings::pack(file_->settings));
}

std::optional<Error> Steps::close()
{
    std::optional<Error> outcome;
    try {
        file_->close();
    } catch (Error& error) {  // some file systems report only here that they could not keep the data
        outcome.emplace(std::move(error));
    }
    file_.reset();
    identified_ = false;
    return outcome;
}

Attempt Steps::serve(DataAccess const& request)
{
    auto const part = look_at(program_, request);
    auto attempt = serve(request, part);
    if (attempt.next == Attempt::Next::nothing && attempt.outcome.served) {
        program_.calls.served(request.call);
        move_pointer(program_, request, part);
    }
    return attempt;
}

Attempt Steps::serve(DataAccess const& request, PreparedAccess const& part)
{
    bool const ahead =
        !program_.has_new_hints && identified_ && ahead_.go(*program_.channel, *file_, conditions_, request, part);
    auto const decision = decide(part, ahead);
    if (decision.ahead) {
        auto const bytes = ahead_.arrived(request, part, *program_.channel->known[*decision.known].step);
        if (request.direction == Direction::read) part.unpack(request, bytes);
        return {{true, MPI_SUCCESS, bytes}};
    }
    ahead_.in_vain();
    if (decision.reopen) return {.next = Attempt::Next::reopen};
    if (decision.give_up) return {.next = Attempt::Next::give_up, .why = gone};
    if (!decision.served) {
        program_.calls.passed(request.call, part.obstacle.empty() ? "another rank's data" : part.obstacle);
        return {};
    }
    if (leave(request, decision)) {
        program_.calls.passed(request.call, "the MPI library is faster, or is tried");
        return {};
    }
    return run(request, part, decision);
}

/// A number that identifies the file that this rank finds under its name; the name may belong to another file by now,
/// or to none. Every rank opens the file at the first access, so that the name is not looked up again. Local.
std::int64_t Steps::identity() const
{
    auto* const target = file_->target();
    struct stat found = {};
    if (!target || ::fstat(target->descriptor(), &found) != 0) return no_match;
    auto const& opened = program_.opened;
    if (opened.first() && opened.which != Which{found.st_dev, found.st_ino}) return no_match;
    return static_cast<std::int64_t>(found.st_ino & INT64_MAX);
}

bool Steps::identify(std::int64_t& value)
{
    auto const mine = identity();
    std::array<std::int64_t, 3> values = {mine, -mine, value};
    bool const heard = file_->session->agreement().least(values).has_value();  // also if this rank has found no file
    identified_ = heard && agreed(values[0], values[1]);
    value = values[2];
    return identified_;
}

/// One reduction over all ranks. Collective.
Steps::Decision Steps::decide(PreparedAccess const& part, bool ahead)
{
    // Every rank contributes the following values, and the least of each counts: whether the rank can take part, its
    // bytes (negated), whether its hints are the old ones, the file that it has opened, how long the previous access
    // took (negated), whether this access may be left to the MPI library, whether the rank has already done its part
    // and, for every known plan, the shift that makes it fit. The file and the shifts are contributed both as they are
    // and negated, to see whether all ranks agree.
    constexpr std::size_t hints = 2;
    constexpr std::size_t file = 3;
    constexpr std::size_t time = 5;
    constexpr std::size_t trust = 6;
    constexpr std::size_t done = 7;
    constexpr std::size_t plans = 8;
    auto const& known = program_.channel->known;
    std::array<std::int64_t, plans + 2 * Channel::most_known> values;
    values.fill(no_match);
    values[0] = part.obstacle.empty() ? 1 : 0;
    values[1] = -part.bytes;
    values[hints] = program_.has_new_hints ? 0 : 1;
    values[file] = identified_ ? 0 : identity();
    values[file + 1] = -values[file];
    values[trust] = is_simple(program_, part) ? 1 : 0;
    values[done] = ahead ? 1 : 0;
    auto const& last = program_.channel->last;
    values[time] = last ? -static_cast<std::int64_t>(last->seconds().value_or(0) * 1e9) : 0;
    for (std::size_t i = 0; i < known.size(); ++i) {
        if (known[i].conditions != conditions_ || known[i].shape != part.access.shape) continue;
        auto const shift = part.access.origin - known[i].origin;
        values[plans + 2 * i] = part.bytes == 0 ? any_shift : shift;
        values[plans + 2 * i + 1] = part.bytes == 0 ? any_shift : -shift;
    }
    auto const used = std::span(values).first(plans + 2 * known.size());  // the same number on all ranks
    Decision decision;
    if (!file_->session->agreement().least(used)) return decision;
    learn(-values[time]);
    decision.reopen = values[hints] == 0;
    if (decision.reopen) return decision;
    identified_ = agreed(values[file], values[file + 1]);
    decision.give_up = !identified_;
    if (decision.give_up) return decision;
    decision.served = values[0] == 1;
    decision.empty = values[1] == 0;
    decision.may_be_left = values[trust] == 1;
    for (std::size_t i = 0; i < known.size() && !decision.known; ++i) {
        if (!agreed(values[plans + 2 * i], values[plans + 2 * i + 1])) continue;
        decision.known = i;
        decision.shift = values[plans + 2 * i];
    }
    decision.ahead = decision.served && !decision.empty && decision.known && values[done] == 1;
    return decision;
}

/// Learns how long the previous access took on the slowest rank, and makes the plan that is to be tried next.
/// Collective.
void Steps::learn(std::int64_t nanoseconds)
{
    auto const last = std::exchange(program_.channel->last, std::nullopt);
    if (!last || nanoseconds <= 0) return;
    auto& step = *program_.channel->known[last->place()].step;
    try {
        step.choice().ran(step.file(), last->op(), static_cast<double>(nanoseconds) * 1e-9);
    } catch (std::bad_alloc const&) {
        file_->session->lose();  // the others wait for this rank's part in the next plan
    }
}

/// Whether the MPI library is to do the access, because it is faster or to find out whether it is. The same on all
/// ranks.
bool Steps::leave(DataAccess const& request, Decision const& decision)
{
    if (!decision.known || decision.empty || !decision.may_be_left || !is_blocking_collective(request.call) ||
        file_->set)
        return false;
    if (request.direction != Direction::write) return false;
    if (!program_.channel->known[*decision.known].step->choice().leaves(engine::Op::write)) return false;
    program_.channel->last.emplace(*decision.known, engine::Op::write);
    return true;
}

void Steps::was_left()
{
    if (program_.channel->last) program_.channel->last->end();
}

/// Plans a step for this request and keeps it in place of the oldest one. Collective.
std::size_t Steps::declare(PreparedAccess const& part)
{
    auto variable = std::make_shared<pattern::Variable const>(to_variable(part.access));
    auto step = declared::declare(file_, {std::move(variable)});
    step->past_the_log();  // accesses that get here come after a flush
    if (!file_->set) step->choice().learn(file_->learning(), !file_->staging);
    step->choice().prefer(*file_, file_->learnt);
    auto& channel = *program_.channel;
    auto& known = channel.known;
    auto const place = known.size() < Channel::most_known ? known.size() : channel.oldest++ % Channel::most_known;
    if (place == known.size()) known.emplace_back();
    known[place] = {part.access.shape, part.access.origin, conditions_, std::move(step)};
    return place;
}

/// Runs the step. Collective. An error before any data is moved leaves the file to the MPI library.
Attempt Steps::run(DataAccess const& request, PreparedAccess const& part, Decision const& decision)
{
    AccessOutcome outcome{true, MPI_SUCCESS, 0};
    if (decision.empty) return {outcome};
    bool const writing = request.direction == Direction::write;
    bool moving = false;
    try {
        auto const place = decision.known ? *decision.known : declare(part);
        auto& step = *program_.channel->known[place].step;
        if (&step.file() != file_.get()) step.retarget(file_);
        step.rebase(decision.known ? decision.shift : 0);
        if (writing) part.pack(request);
        if (part.bytes > 0)
            step.supply(0, part.data, static_cast<std::size_t>(part.bytes),
                        writing ? declared::Op::write : declared::Op::read);
        auto const op = writing ? engine::Op::write : engine::Op::read;
        auto& last = program_.channel->last;
        step.agreed_on(op);
        if (step.choice().learns(op) && !step.choice().leaves(op)) last.emplace(place, op);
        step.start(false);
        moving = true;
        auto const moved = step.wait();
        if (last) last->end();
        outcome.bytes = static_cast<std::int64_t>(moved.bytes);
        ahead_.ran(request.direction, place);
    } catch (Error const& error) {
        program_.channel->last.reset();
        if (!moving) return {.next = Attempt::Next::give_up, .why = error.what()};
        outcome.error = program_.set ? program_.set->failed_together(error) : class_of(error);
    } catch (std::bad_alloc const&) {
        program_.channel->last.reset();
        file_->session->lose();
        return {.next = Attempt::Next::give_up, .why = "no memory for a plan"};
    }
    if (!writing) part.unpack(request, outcome.bytes);
    return {outcome};
}

}  // namespace tapioca::mpiio
