#include "engine/taker.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/stopwatch.hpp"
#include "engine/copy.hpp"

namespace tapioca::engine {

Taker::Taker(Context const& context, Outbox& outbox)
    : context_(context),
      outbox_(outbox),
      target_(context.target),
      status_(context.target_status),
      received_(context.variables, 0)
{
    lanes_.resize(context.partitions());
    for (std::size_t p = 0; p < lanes_.size(); ++p) {
        auto& lane = lanes_[p];
        lane.home = context.buffer_layout->is_home(p);
        lane.taking.reserve(context.variable_buffers.size());
        context.add_cursors(p, lane.taking);
        lane.asking = lane.taking;
        lane.to_take = context.next_round(p, lane.taking);
        lane.to_ask = lane.to_take;
        publish(p);
    }
}

bool Taker::done() const
{
    return std::all_of(lanes_.begin(), lanes_.end(), [](Lane const& lane) { return lane.to_take == no_round; });
}

bool Taker::slot_is_free(std::size_t p, std::int64_t round) const
{
    return context_.ticket(p, round) <
           context_.exchange->least_taken(p) + static_cast<std::uint64_t>(context_.route->buffers);
}

/// Tells the node which round this rank needs next and, if it has to ask for data, up to which round it has asked.
void Taker::publish(std::size_t p)
{
    auto const& lane = lanes_[p];
    context_.exchange->set_taken(p, context_.ticket_or_end(p, lane.to_take));
    if (!lane.home) context_.exchange->set_filled(p, context_.ticket_or_end(p, lane.to_ask));
}

bool Taker::advance()
{
    bool any = false;
    for (std::size_t p = 0; p < lanes_.size(); ++p) any = advance(p) || any;
    return any;
}

bool Taker::advance(std::size_t p)
{
    auto& lane = lanes_[p];
    bool any = false;
    while (!lane.home && lane.to_ask != no_round && slot_is_free(p, lane.to_ask)) {
        ask(p);
        any = true;
    }
    while (lane.to_take != no_round) {
        auto const round = lane.to_take;
        bool const asked = lane.home || (!lane.asked.empty() && lane.asked.front().round == round);
        if (!asked || !context_.is_there(p, round)) break;
        take(p);
        any = true;
    }
    return any;
}

void Taker::ask_for(std::int64_t round)
{
    for (std::size_t p = 0; p < lanes_.size(); ++p)
        if (!lanes_[p].home && lanes_[p].to_ask == round) {
            wait_until(*context_.wait_policy, "a free slot", [&] { return slot_is_free(p, round); });
            ask(p);
        }
}

void Taker::take_out(std::int64_t round)
{
    for (std::size_t p = 0; p < lanes_.size(); ++p)
        if (lanes_[p].to_take == round) {
            wait_until(*context_.wait_policy, "a round of the file", [&] { return context_.is_there(p, round); });
            take(p);
        }
}

void Taker::ask(std::size_t p)
{
    auto& lane = lanes_[p];
    AskedRound asked{lane.to_ask, {}};
    for (std::size_t t = 0; t < lane.asking.size(); ++t) {
        auto& cursor = lane.asking[t];
        auto const add = [&] {
            if (!runs_.empty())
                asked.parts.push_back({t, cursor.position(), outbox_.add_request(p, asked.round, runs_)});
            runs_.clear();
        };
        for (pattern::PieceRun run; cursor.next(context_.end(p, asked.round), run);) {
            runs_.push_back(run);
            if (runs_.size() == most_runs) add();
        }
        add();
    }
    lane.asked.push_back(std::move(asked));
    lane.to_ask = context_.next_round(p, lane.asking);
    publish(p);
}

void Taker::take(std::size_t p)
{
    core::Stopwatch const watch(copying_);
    auto& lane = lanes_[p];
    auto const round = lane.to_take;
    if (lane.home)
        take_loaded(p, round);
    else
        take_reply(p, round);
    auto const end = context_.end(p, round);
    for (auto& cursor : lane.taking)
        if (cursor.position() < end) cursor.seek(end);  // the file ended before
    lane.to_take = context_.next_round(p, lane.taking);
    publish(p);
}

void Taker::take_loaded(std::size_t p, std::int64_t round)
{
    auto& lane = lanes_[p];
    auto const valid = context_.exchange->valid_bytes(p, context_.buffer_of(round)).load(std::memory_order_relaxed);
    auto const limit = context_.begin(p, round) + static_cast<std::int64_t>(valid);
    for (std::size_t t = 0; t < lane.taking.size(); ++t)
        for (pattern::PieceRun run; lane.taking[t].next(limit, run); count(t, run))
            copy_out(context_.buffer(p, round), context_.origin(p, round), run, context_.variable_buffers[t].data);
}

void Taker::take_reply(std::size_t p, std::int64_t round)
{
    auto& lane = lanes_[p];
    auto const reply = outbox_.reply(p, round);
    auto const end = context_.end(p, round);
    std::uint64_t valid = 0;
    std::memcpy(&valid, reply.data(), sizeof valid);
    auto const limit = context_.begin(p, round) + static_cast<std::int64_t>(valid);
    for (auto const& part : lane.asked.front().parts) {
        auto& cursor = lane.taking[part.variable_buffer];
        auto const& variable_buffer = context_.variable_buffers[part.variable_buffer];
        if (!part.at) {
            read_oneself(cursor, variable_buffer, std::min(part.end, end));
            continue;
        }
        std::byte const* from = reply.data() + sizeof valid + *part.at;
        for (pattern::PieceRun run; cursor.next(std::min(part.end, limit), run); count(part.variable_buffer, run))
            from = scatter(from, run, variable_buffer.data);
        if (cursor.position() < std::min(part.end, end)) cursor.seek(std::min(part.end, end));
    }
    lane.asked.pop_front();
}

void Taker::count(std::size_t variable_buffer, pattern::PieceRun const& run)
{
    received_[context_.variable_buffers[variable_buffer].variable] +=
        static_cast<std::uint64_t>(run.length * run.count);
}

/// For a request that found no room. The rank still waits for the round, because the slot belongs to the round until
/// then.
void Taker::read_oneself(pattern::LayoutCursor& cursor, VariableBuffer const& variable_buffer, std::int64_t limit)
{
    auto const read = [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
        if (!target_ && status_) {
            target_ = context_.lazy_target->get();
            status_ = context_.lazy_target->status();
        }
        if (!target_) return;
        std::span const to(variable_buffer.data + place, static_cast<std::size_t>(length));
        auto const got = target_->read(context_.base + offset, to);
        if (got)
            received_[variable_buffer.variable] += *got;
        else
            core::keep_first(status_, tl::unexpected(got.error()));
    };
    for (pattern::PieceRun run; cursor.next(limit, run);) pattern::each_piece(run, read);
}

}  // namespace tapioca::engine
