#include "engine/filler.hpp"

#include <algorithm>

#include "core/stopwatch.hpp"
#include "engine/copy.hpp"

namespace tapioca::engine {

Filler::Filler(Context const& context, Outbox* outbox)
    : context_(context), outbox_(outbox), first_(outbox ? outbox->first_partition() : 0)
{
    if (context.spoiled) context.exchange->spoil(context.tickets.step);  // before it counts as filled
    auto const partitions = context.partitions();
    next_.resize(partitions);
    unfinished_ = partitions;
    cursors_.reserve(partitions * context.variable_buffers.size());
    for (std::size_t p = 0; p < partitions; ++p) {
        context.add_cursors(p, cursors_);
        publish(p);
    }
}

std::span<pattern::LayoutCursor> Filler::cursors(std::size_t partition)
{
    return {cursors_.data() + partition * context_.variable_buffers.size(), context_.variable_buffers.size()};
}

/// The partition whose round is due first. Among equals, each node begins with a different one, so that the nodes do
/// not all send to the same aggregator.
std::size_t Filler::soonest() const
{
    auto const middle = next_.begin() + static_cast<std::ptrdiff_t>(first_);
    auto const after = std::min_element(middle, next_.end());
    auto const before = std::min_element(next_.begin(), middle);
    if (after == next_.end()) return static_cast<std::size_t>(before - next_.begin());
    bool const take_before = before != middle && *before < *after;
    return static_cast<std::size_t>((take_before ? before : after) - next_.begin());
}

bool Filler::fill_next()
{
    if (done()) return false;
    auto const partition = soonest();
    if (!context_.is_free(partition, next_[partition])) return false;
    fill(partition);
    return true;
}

/// Finds the next round in which this rank has data, and marks all rounds before it as filled.
void Filler::publish(std::size_t partition)
{
    next_[partition] = context_.next_round(partition, cursors(partition));
    if (next_[partition] == no_round) --unfinished_;
    context_.exchange->set_filled(partition, context_.ticket_or_end(partition, next_[partition]));
}

void Filler::fill(std::size_t partition)
{
    core::Stopwatch const watch(copying_);
    if (context_.buffer_layout->is_home(partition))
        copy(partition, next_[partition]);
    else
        pack(partition, next_[partition]);
    publish(partition);
}

void Filler::copy(std::size_t partition, std::int64_t round)
{
    auto* const to = context_.buffer(partition, round);
    auto const start = context_.origin(partition, round);
    auto const limit = context_.end(partition, round);
    bool const dense = context_.route->dense;
    auto valid = context_.map(partition, round);
    std::int64_t bytes = 0;
    auto const variable_buffers = cursors(partition);
    for (std::size_t t = 0; t < variable_buffers.size(); ++t)
        for (pattern::PieceRun run; variable_buffers[t].next(limit, run);) {
            copy_in(to, start, run, context_.variable_buffers[t].data);
            if (!dense) valid.mark(run);
            bytes += run.length * run.count;
        }
    context_.exchange->filled_bytes(partition, context_.buffer_of(round))
        .fetch_add(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
}

void Filler::pack(std::size_t partition, std::int64_t round)
{
    auto const limit = context_.end(partition, round);
    auto const variable_buffers = cursors(partition);
    bool const whole = context_.route->dense || variable_buffers.size() == 1;
    for (std::size_t t = 0; t < variable_buffers.size(); ++t) {
        runs_.clear();
        auto const add = [&] {
            outbox_->add_data(partition, round, runs_, context_.variable_buffers[t].data, whole);
            runs_.clear();
        };
        for (pattern::PieceRun run; variable_buffers[t].next(limit, run);) {
            runs_.push_back(run);
            if (runs_.size() == most_runs) add();
        }
        add();
    }
}

}  // namespace tapioca::engine
