// Carrier with messages: a node's part of a round is one message, sent as soon as all of its ranks have added their
// data.
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "engine/carrier.hpp"

namespace tapioca::engine {

namespace {

class P2p final : public Carrier {
public:
    P2p(Context const& context, Inbox* inbox) : Carrier(context, inbox, false), asking_(!context.writing)
    {
        for (auto const& lane : outbox_.lanes()) {
            lines_.push_back({lane});
            lines_.back().awaited.resize(static_cast<std::size_t>(context.route->buffers));
            lines_.back().said_all = lane.rounds == 0;
        }
        if (inbox_) inbox_->expect();
    }

    bool write(Filler& filler, Drainer& drainer, bool helping) override
    {
        for (;;) {
            bool const moved = move(drainer);
            if (!outbox_.choked() && filler.fill_next()) continue;
            if (filler.done() && all_left()) return true;
            if (!moved && (!helping || !drainer.help())) return false;
        }
    }

    void serve(Drainer& drainer) override { move(drainer); }

    bool read(Taker& taker, Loader& loader, bool helping) override
    {
        for (;;) {
            bool moved = context_.net->messages->poll();
            moved = taker.advance() || moved;
            moved = pump_lines() || moved;
            if (inbox_) moved = inbox_->pump() || moved;
            if (taker.done() && all_left() && (!inbox_ || inbox_->done()) && loader.over()) return true;
            if (!moved && (!helping || !loader.help())) return false;
        }
    }

    [[nodiscard]] bool reads_ahead() const override { return true; }

private:
    /// A lane for which this rank sends, and its progress.
    struct SentLane {
        Outbox::Lane lane;
        std::int64_t next = 0;                 ///< round to look at next
        std::deque<std::int64_t> under_way{};  ///< sent, not yet free
        std::vector<int> awaited{};            ///< per buffer: events until it is free (message left, reply arrived)
        wire::Heading notice{};                ///< says which round is the first, if it is not round 0
        bool begun = false;                    ///< the aggregator knows which round is the first
        bool said_all = false;                 ///< the aggregator knows that nothing more will come
    };

    /// Sends and receives whatever is possible now. Returns true if something moved.
    bool move(Drainer& drainer)
    {
        bool moved = context_.net->messages->poll();
        (void)drainer.may_drain();
        moved = pump_lines() || moved;
        if (inbox_) moved = inbox_->pump() || moved;
        return moved;
    }

    /// True when everything that this rank had to send has left, and every reply has arrived.
    [[nodiscard]] bool all_left() const
    {
        return outbox_.none_leaving() && std::all_of(lines_.begin(), lines_.end(), [](SentLane const& line) {
                   return line.said_all && line.under_way.empty();
               });
    }

    bool pump_lines()
    {
        bool any = false;
        for (auto& line : lines_) {
            any = free_slots(line) || any;
            any = send_filled(line) || any;
        }
        return any;
    }

    /// Frees the slots of messages that have left, in order: for later rounds of a write, or for the ranks that take
    /// the reply of a read.
    bool free_slots(SentLane& line)
    {
        bool any = false;
        while (!line.under_way.empty() && line.awaited[context_.buffer_of(line.under_way.front())] == 0) {
            auto const round = line.under_way.front();
            line.under_way.pop_front();
            outbox_.release(line.lane, round);
            if (asking_)
                store(context_.exchange->present(line.lane.partition), line, round + 1);
            else
                store(context_.exchange->emptied(line.lane.partition), line, first_kept(line));
            any = true;
        }
        return any;
    }
    void store(Counter& counter, SentLane const& line, std::int64_t round) const
    {
        counter.store(context_.ticket(line.lane.partition, round), std::memory_order_release);
    }
    /// The first round of a write whose slot is not free.
    [[nodiscard]] static std::int64_t first_kept(SentLane const& line)
    {
        return line.under_way.empty() ? line.next : line.under_way.front();
    }

    bool send_filled(SentLane& line)
    {
        auto const& lane = line.lane;
        auto const buffers = context_.route->buffers;
        auto const ready = outbox_.rounds_filled(lane);
        bool any = false;
        while (line.next < ready && line.under_way.size() < static_cast<std::size_t>(buffers)) {
            // A slot belongs to a round only within the window of buffers. The window begins at the first slot that is
            // not free when sending, and at the first that is not taken when asking.
            auto const first = asking_ ? outbox_.rounds_taken(lane) : first_kept(line);
            auto const limit = std::min(ready, first + buffers);
            auto const next_held = [&](std::int64_t round) {
                round = std::max(round, std::min(first, limit));
                while (round < limit && !outbox_.holds(lane, round)) ++round;
                return round < limit ? round : std::max(round, ready);
            };
            auto const round = next_held(line.next);
            any = true;
            if (!line.begun && round > 0) send_notice(line, round);
            line.begun = true;
            line.next = std::min(round + 1, ready);
            if (round < ready)
                send(line, round, next_held(round + 1));
            else if (!asking_ && line.under_way.empty())
                store(context_.exchange->emptied(lane.partition), line, round);
        }
        return any;
    }

    /// Tells the aggregator the node's first round. An aggregator cannot write a round before it knows which nodes have
    /// no data in it, and that may be long before a node can fill its first round.
    void send_notice(SentLane& line, std::int64_t first)
    {
        line.said_all = first >= line.lane.rounds;
        line.notice = {-1, first, 0, 0, 0};
        outbox_.send(std::as_bytes(std::span(&line.notice, 1)), line.lane.to, tag_gathered);
    }

    void send(SentLane& line, std::int64_t round, std::int64_t following)
    {
        auto const& lane = line.lane;
        line.said_all = following >= lane.rounds;
        auto const bytes = outbox_.seal(lane, round, following);
        line.under_way.push_back(round);
        auto& awaited = line.awaited[context_.buffer_of(round)];
        awaited = asking_ ? 2 : 1;
        if (asking_)
            context_.net->messages->receive(outbox_.reply(lane.partition, round), lane.to, tag_reply,
                                            [&awaited] { --awaited; });
        context_.net->messages->send(bytes, lane.to, tag_gathered, [&awaited] { --awaited; });
    }

    bool asking_;
    std::vector<SentLane> lines_;  ///< not resized once the first message is under way
};

}  // namespace

std::unique_ptr<Carrier> make_p2p(Context const& context, Inbox* inbox)
{
    return std::make_unique<P2p>(context, inbox);
}

}  // namespace tapioca::engine
