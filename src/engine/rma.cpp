// Carrier with put and get: all ranks go through the rounds in the same order, and they wait inside MPI. Therefore no
// data moves before the call in which a rank waits for the step.
#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "engine/carrier.hpp"

namespace tapioca::engine {

namespace {

class Rma final : public Carrier {
public:
    Rma(Context const& context, Inbox* inbox) : Carrier(context, inbox, true) {}

    bool write(Filler& filler, Drainer& drainer, bool helping) override
    {
        if (helping && !done_) put_all(filler, drainer);
        return true;  // nothing moves without the other ranks, which wait inside MPI
    }

    void serve(Drainer& /*drainer*/) override {}

    bool read(Taker& taker, Loader& /*loader*/, bool helping) override
    {
        if (helping && !done_) get_all(taker);
        return true;  // as above
    }

    [[nodiscard]] bool reads_ahead() const override { return false; }

private:
    using Lane = Outbox::Lane;

    /// In every round, each rank opens its own buffer to its feeders before it waits for another rank's buffer. So no
    /// rank waits for a later round than it has opened itself.
    void put_all(Filler& filler, Drainer& drainer)
    {
        auto& messages = *context_.net->messages;
        wait("the other ranks to start the step", [&] { return drainer.may_drain(); });
        if (inbox_) inbox_->blank();
        auto const own_rounds = inbox_ ? context_.rounds(inbox_->partition()) : 0;
        auto const rounds = context_.most_rounds();
        for (std::int64_t round = 0; round < rounds; ++round) {
            wait("an aggregator to take what fitted into no slot", [&] {
                messages.poll();
                return !outbox_.choked() || (drainer.help(), false);
            });
            if (round < own_rounds) {
                wait_for_room(inbox_->partition(), round, drainer);
                open_round();
            }
            for (std::size_t p = 0; p < context_.partitions(); ++p)
                if (filler.next(p) == round) {
                    wait_for_room(p, round, drainer);
                    filler.fill(p);
                }
            put_round(round, drainer);
            if (round >= own_rounds) continue;
            wait("the other nodes' data", [&] { return round_is_there() || (drainer.help(), false); });
            inbox_->unload_round(round);
        }
        wait("an aggregator to take large data", [&] {
            messages.poll();
            return messages.idle() || (drainer.help(), false);
        });
        done_ = true;
    }

    template <class Ready>
    void wait(char const* what, Ready ready) const
    {
        wait_until(*context_.wait_policy, what, ready);
    }
    void wait_for_room(std::size_t partition, std::int64_t round, Drainer& drainer) const
    {
        wait("a free buffer", [&] { return context_.is_free(partition, round) || (drainer.help(), false); });
    }

    /// Lets the feeders put the next round, and finds out whether they have.
    void open_round()
    {
        auto const senders = inbox_->senders();
        fed_ = !senders.empty();
        if (fed_) context_.net->window->post(senders);
    }
    bool round_is_there() { return !fed_ || context_.net->window->test(); }

    /// When this node's part of a round is complete, puts it into each partition for which this rank sends.
    void put_round(std::int64_t round, Drainer& drainer)
    {
        std::vector<Lane const*> due;
        for (auto const& lane : outbox_.lanes())
            if (round < lane.rounds) due.push_back(&lane);
        // One target after the other, if the MPI library supports it, so that aggregators do not wait for each other.
        std::size_t const at_once = context_.net->window->tells_posts_apart() ? 1 : due.size();
        for (std::size_t i = 0; i < due.size(); i += at_once)
            put_lanes(round, std::span(due).subspan(i, at_once), drainer);
        outbox_.forget_placed();
    }

    /// Puts them in one epoch.
    void put_lanes(std::int64_t round, std::span<Lane const* const> lanes, Drainer& drainer)
    {
        auto& window = *context_.net->window;
        std::vector<int> targets;
        for (auto const* const lane : lanes) {
            wait("the other ranks of the node",
                 [&] { return outbox_.rounds_filled(*lane) > round || (drainer.help(), false); });
            targets.push_back(lane->to);
        }
        window.start(targets);
        for (auto const* const lane : lanes) {
            if (outbox_.holds(*lane, round))
                window.put(outbox_.seal(*lane, round, round + 1), lane->to, lane->self->landing[round % 2]);
            put_placed(*lane, round);
        }
        window.complete();
        for (auto const* const lane : lanes) free_slot(*lane, round, context_.exchange->emptied(lane->partition));
    }
    void put_placed(Lane const& lane, std::int64_t round)
    {
        auto const buffer = context_.buffer_layout->buffer(lane.partition, context_.buffer_of(round));
        for (auto const& placed : outbox_.placed())
            if (placed.partition == lane.partition)
                context_.net->window->put(placed.bytes, lane.to, buffer + static_cast<std::uint64_t>(placed.offset));
    }
    void free_slot(Lane const& lane, std::int64_t round, Counter& counter)
    {
        if (outbox_.holds(lane, round)) outbox_.release(lane, round);
        counter.store(context_.ticket(lane.partition, round + 1), std::memory_order_release);
    }

    /// Puts requests and gets replies; all ranks go through the rounds together.
    void get_all(Taker& taker)
    {
        using RowPosition = comm::Window::RowPosition;
        wait("the other ranks to start the step", [&] { return context_.net->all_began(); });
        auto& window = *context_.net->window;
        auto const own_rounds = inbox_ ? context_.rounds(inbox_->partition()) : 0;
        auto const rounds = context_.most_rounds();
        for (std::int64_t round = 0; round < rounds; ++round) {
            if (inbox_) inbox_->blank();
            taker.ask_for(round);
            window.fence(RowPosition::first);
            put_requests(round);
            window.fence(RowPosition::between);
            if (round < own_rounds) inbox_->unload_round(round);
            window.fence(RowPosition::between);
            get_replies(round);
            window.fence(RowPosition::last);
            for (auto const& lane : outbox_.lanes())
                if (round < lane.rounds) free_slot(lane, round, context_.exchange->present(lane.partition));
            taker.take_out(round);
        }
        done_ = true;
    }

    void put_requests(std::int64_t round)
    {
        for (auto const& lane : outbox_.lanes()) {
            if (round >= lane.rounds) continue;
            wait("the other ranks of the node", [&] { return outbox_.rounds_filled(lane) > round; });
            if (outbox_.holds(lane, round))
                context_.net->window->put(outbox_.seal(lane, round, round + 1), lane.to, lane.self->landing[0]);
        }
    }

    void get_replies(std::int64_t round)
    {
        for (auto const& lane : outbox_.lanes()) {
            if (round >= lane.rounds || !outbox_.holds(lane, round)) continue;
            context_.net->window->get(outbox_.reply(lane.partition, round).first(outbox_.reply_bytes(lane, round)),
                                      lane.to, lane.self->landing[0] + outbox_.request_bytes());
        }
    }

    bool done_ = false;
    bool fed_ = false;  ///< there are feeders
};

}  // namespace

std::unique_ptr<Carrier> make_rma(Context const& context, Inbox* inbox)
{
    return std::make_unique<Rma>(context, inbox);
}

}  // namespace tapioca::engine
