#include "engine/drainer.hpp"

#include <algorithm>

#include "core/stopwatch.hpp"
#include "engine/copy.hpp"

namespace tapioca::engine {

Drainer::Drainer(Context const& context) : context_(context), status_(context.target_status)
{
    if (context.networked()) arrived_.store(0, std::memory_order_relaxed);
    auto const own = context.own_partition();
    if (!own) return;
    own_ = *own;
    done_ = context.ticket(own_, 0);
    end_ = context.ticket(own_, context.rounds(own_));
}

void Drainer::start()
{
    if (context_.threaded && end_ > done_) context_.worker->start([this] { drain_all(); });
}

void Drainer::stop()
{
    stopped_.store(true, std::memory_order_relaxed);
    context_.worker->wait();
}

bool Drainer::help()
{
    return !(context_.networked() && context_.threaded) && drain_ready();
}

bool Drainer::over() const
{
    return end_ == 0 || context_.exchange->emptied(own_).load(std::memory_order_acquire) >= end_ ||
           context_.exchange->abandoned();
}

bool Drainer::may_drain()
{
    if (cleared_) return true;
    if (!context_.net->all_began()) return false;
    cleared_ = true;
    if (context_.net->spoiled()) context_.exchange->spoil(context_.tickets.step);
    note_arrived(here_);
    return true;
}

void Drainer::note_arrived(std::int64_t rounds)
{
    here_ = rounds;
    if (cleared_ && end_ > 0) arrived_.store(context_.ticket(own_, rounds), std::memory_order_release);
}

void Drainer::take_in(std::int64_t round, wire::Runs runs, std::byte const* data)
{
    core::Stopwatch const watch(copying_);
    auto const start = context_.origin(own_, round);
    auto valid = context_.map(own_, round);
    std::int64_t bytes = 0;
    for (pattern::PieceRun run; runs.next(run);) {
        if (data) copy_in(context_.buffer(own_, round), 0, run, data);
        run.offset += start;
        if (!context_.route->dense) valid.mark(run);
        bytes += run.length * run.count;
    }
    context_.exchange->filled_bytes(own_, context_.buffer_of(round))
        .fetch_add(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
}

/// Runs on the I/O thread.
void Drainer::drain_all()
{
    bool const slow = context_.networked();
    bool const crowded = context_.wait_policy->crowded || slow;
    Backoff backoff(crowded, slow);
    while (!over() && !stopped_.load(std::memory_order_relaxed)) {
        if (drain_ready())
            backoff = Backoff(crowded, slow);
        else
            backoff.pause();
    }
}

/// Writes the next round if all ranks have filled it and no other thread is writing. Returns true if it wrote one.
bool Drainer::drain_ready()
{
    if (end_ == 0 || busy_.exchange(true, std::memory_order_acquire)) return false;
    auto const ready =
        std::min({context_.exchange->least_filled(own_), arrived_.load(std::memory_order_acquire), end_});
    bool const any = ready > done_;
    if (any) {
        drain_round(static_cast<std::int64_t>(done_ - context_.ticket(own_, 0)));
        ++done_;
        // A rank that has data further ahead than the buffers reach waits for a buffer; so nobody filled the rounds in
        // between.
        auto const window = done_ - 1 + static_cast<std::uint64_t>(context_.route->buffers);
        if (ready > window && untouched(done_, window)) done_ = ready;
        context_.exchange->emptied(own_).store(done_, std::memory_order_release);
    }
    busy_.store(false, std::memory_order_release);
    return any;
}

/// True if no buffer of the rounds from `begin` to `end` holds data.
bool Drainer::untouched(std::uint64_t begin, std::uint64_t end) const
{
    for (auto t = begin; t < end; ++t) {
        auto const buffer = context_.buffer_of(static_cast<std::int64_t>(t - context_.ticket(own_, 0)));
        if (context_.exchange->filled_bytes(own_, buffer).load(std::memory_order_relaxed) != 0) return false;
    }
    return true;
}

void Drainer::drain_round(std::int64_t round)
{
    auto& filled = context_.exchange->filled_bytes(own_, context_.buffer_of(round));
    if (filled.load(std::memory_order_relaxed) == 0) return;
    filled.store(0, std::memory_order_relaxed);
    bool const skip = !status_ || context_.exchange->spoiled(context_.tickets.step);
    core::Stopwatch const watch(times_.draining);
    auto const begin = context_.begin(own_, round);
    auto const end = context_.end(own_, round);
    ++times_.rounds;
    if (context_.route->dense) {
        if (skip) return;
        reserve(begin, end);
        write(round, {begin, end});
        return;
    }
    stretches_.clear();
    context_.map(own_, round).take(begin, end, [&](auto from, auto to) { stretches_.push_back({from, to}); });
    if (skip || patch(round)) return;
    for (auto const& stretch : stretches_) write(round, stretch);
}

void Drainer::write(std::int64_t round, target::Target::Stretch const& stretch)
{
    if (!status_) return;
    auto const bytes = static_cast<std::size_t>(stretch.end - stretch.begin);
    auto const* const from = context_.buffer(own_, round) + (stretch.begin - context_.origin(own_, round));
    core::keep_first(status_, context_.target->write(context_.base + stretch.begin, std::span(from, bytes)));
    if (!status_) return;
    ++times_.calls;
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

/// Stores many small stretches through a mapping of the file instead of with a call for each. Returns false if this is
/// not possible.
bool Drainer::patch(std::int64_t round)
{
    constexpr std::int64_t few = 32;
    constexpr std::int64_t far_apart = 512;  // bytes: with fewer per page, faults cost more than calls
    auto const count = static_cast<std::int64_t>(stretches_.size());
    if (!context_.route->patch || count < few) return false;
    auto const first = stretches_.front().begin;
    auto const last = stretches_.back().end;
    if (last - first > count * far_apart) return false;
    auto const* const bytes = context_.buffer(own_, round) - context_.origin(own_, round);
    if (!context_.target->patch(context_.base, stretches_, bytes)) return false;
    std::uint64_t stored = 0;
    for (auto const& [from, to] : stretches_) stored += static_cast<std::uint64_t>(to - from);
    ++times_.calls;
    bytes_.fetch_add(stored, std::memory_order_relaxed);
    return true;
}

/// Reserves room for the whole partition before its first round, and populates each round if the target asks for it.
void Drainer::reserve(std::int64_t begin, std::int64_t end)
{
    if (context_.route->reserve == machine::Reserve::nothing) return;
    auto const& p = context_.schedule.partitions[own_];
    if (!reserved_) populate_ = context_.target->reserve(p.begin, p.end, context_.route->reserve);
    reserved_ = true;
    if (populate_) context_.target->populate(context_.base + begin, context_.base + end);
}

}  // namespace tapioca::engine
