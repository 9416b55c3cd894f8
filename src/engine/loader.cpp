#include "engine/loader.hpp"

#include <algorithm>
#include <cstring>

#include "core/stopwatch.hpp"
#include "engine/copy.hpp"
#include "engine/wire.hpp"

namespace tapioca::engine {

Loader::Loader(Context const& context) : context_(context)
{
    auto const own = context.own_partition();
    if (!own) return;
    own_ = *own;
    end_ = context.rounds(own_);
}

void Loader::start()
{
    if (context_.threaded && end_ > 0) context_.worker->start([this] { load_all(); });
}

void Loader::stop()
{
    stopped_.store(true, std::memory_order_relaxed);
    context_.worker->wait();
}

bool Loader::over() const
{
    return end_ == 0 || context_.exchange->least_taken(own_) >= context_.ticket(own_, end_);
}

void Loader::note_wanted(std::int64_t round, bool sure)
{
    wanted_.store(context_.ticket(own_, round), std::memory_order_release);
    if (sure) sure_.store(true, std::memory_order_release);
}

/// Loads the next round that some rank wants, if its buffer is free and no other thread is loading.
bool Loader::load_ready()
{
    if (end_ == 0 || busy_.exchange(true, std::memory_order_acquire)) return false;
    auto const first = context_.ticket(own_, 0);
    auto const last = context_.ticket(own_, end_);
    auto const here = std::max(first, context_.exchange->least_taken(own_));  // less if a rank has not begun the step
    auto const wanted = std::min(here, wanted_.load(std::memory_order_acquire));
    auto const loaded = context_.exchange->present(own_).load(std::memory_order_relaxed);
    bool const sure = sure_.load(std::memory_order_acquire);
    bool any = false;
    if (wanted < last && wanted >= loaded && (sure || context_.every_byte)) {
        load(static_cast<std::int64_t>(wanted - first));
        any = true;
    } else if (context_.every_byte &&
               loaded < std::min(last, wanted + static_cast<std::uint64_t>(context_.route->buffers))) {
        load(static_cast<std::int64_t>(loaded - first));  // all of the round will be wanted
        any = true;
    }
    busy_.store(false, std::memory_order_release);
    return any;
}

void Loader::load(std::int64_t round)
{
    core::Stopwatch const watch(times_.draining);
    auto const from = context_.begin(own_, round);
    auto const bytes = static_cast<std::size_t>(context_.end(own_, round) - from);
    auto* const to = context_.buffer(own_, round) + (from - context_.origin(own_, round));
    core::Result<std::uint64_t> got = 0;  // a rank that could not open the file provides no bytes
    if (context_.target) got = context_.target->read(context_.base + from, std::span(to, bytes));
    if (!got) core::keep_first(status_, tl::unexpected(got.error()));
    context_.exchange->valid_bytes(own_, context_.buffer_of(round)).store(got.value_or(0), std::memory_order_relaxed);
    pass(round);
    bytes_.fetch_add(got.value_or(0), std::memory_order_relaxed);
    ++times_.rounds;
    ++times_.calls;
}

void Loader::pass(std::int64_t round)
{
    context_.exchange->present(own_).store(context_.ticket(own_, round) + 1, std::memory_order_release);
}

/// Runs on the I/O thread.
void Loader::load_all()
{
    Backoff backoff(true);
    while (!stopped_.load(std::memory_order_relaxed)) {
        if (load_ready())
            backoff = Backoff(true);
        else
            backoff.pause();
    }
}

void Loader::fill_reply(std::int64_t round, std::span<std::byte const> requests, std::span<std::byte> reply)
{
    core::Stopwatch const watch(copying_);
    auto const valid = context_.exchange->valid_bytes(own_, context_.buffer_of(round)).load(std::memory_order_relaxed);
    std::memcpy(reply.data(), &valid, sizeof valid);
    while (!requests.empty()) {
        auto const entry = wire::take_entry(requests);
        if (entry.heading.data_bytes == 0) continue;  // there was no room for its reply
        wire::Runs runs(entry.runs);
        auto* const to = reply.data() + sizeof valid + entry.heading.data_at;
        for (pattern::PieceRun run; runs.next(run);) copy_out(context_.buffer(own_, round), 0, run, to);
    }
}

}  // namespace tapioca::engine
