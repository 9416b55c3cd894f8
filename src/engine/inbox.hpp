// Inbox: what other nodes send to an aggregator, message by message: its feeders, the places where their messages land,
// and in which round each of them is. The classes derived from it know what to do with a message: Arrivals bring data
// to a drainer, Requests ask a loader.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/context.hpp"
#include "engine/wire.hpp"

namespace tapioca::engine {

class Inbox {
public:
    Inbox(Inbox const&) = delete;
    Inbox& operator=(Inbox const&) = delete;
    virtual ~Inbox() = default;

    /// The one that it is for.
    [[nodiscard]] std::size_t partition() const { return partition_; }

    // For a carrier of messages.

    /// Receives the first messages.
    void expect();
    /// Deals with messages that have come and can be dealt with. True if there was one.
    bool pump();
    /// True when nothing more will come or has to leave.
    [[nodiscard]] bool done() const;

    // For a carrier that puts.

    /// Before anything is put: says in the landing places that there is nothing.
    void blank();
    /// The ranks that put.
    [[nodiscard]] std::vector<int> senders() const;
    /// Deals with all that was put in a round.
    virtual void unload_round(std::int64_t round) = 0;

protected:
    /// A message, or the place for it.
    struct Landing {
        std::span<std::byte> bytes;
        int number = -1;  ///< of the receive that is posted; -1: a message is here
    };
    struct Feeder {
        int node;
        int rank;                   ///< the sender
        std::size_t message_bytes;  ///< at most; the rest of a landing place is for the reply
        Landing landings[2];
        std::size_t next = 0;     ///< the place of the message to be dealt with next
        wire::Heading heading{};  ///< of that one, once it is here
        enum class FeederState { waiting, unloading, over } state = FeederState::waiting;
        bool heard = false;       ///< at least one message has come
        bool replying = false;    ///< a reply has not left yet
        std::int64_t ready = 0;   ///< rounds before it are over
        std::size_t awaited = 0;  ///< messages of this round that are still to come
    };

    /// For the aggregator of `partition`. With two landing places the next message can come while one waits for its
    /// buffer. `context` must outlive this.
    Inbox(Context const& context, std::size_t partition, std::size_t landing_places);
    /// True if `feeder`'s message can be dealt with now.
    [[nodiscard]] virtual bool may_unload(Feeder const& feeder) const = 0;
    /// Deals with `feeder`'s message, whose entries are `entries`; what is `awaited` then comes later.
    virtual void unload(Feeder& feeder, std::span<std::byte const> entries, Landing const& landing) = 0;
    /// Rounds before this one are over as far as other nodes go.
    [[nodiscard]] std::int64_t ready() const;
    /// ready() may have changed.
    virtual void note_ready() = 0;
    /// Deals with messages other than those of the senders. True if there was one.
    virtual bool pump_others() { return false; }
    /// Reads the heading of a message, which tells which rounds its node has nothing in.
    static void look(Feeder& feeder, Landing const& landing);
    void open(Feeder& feeder, Landing const& landing);

    Context const& context_;
    std::size_t partition_;
    std::size_t landing_places_;
    std::vector<Feeder> feeders_;

private:
    void expect(Feeder& feeder, std::size_t place);
    void conclude(Feeder& feeder);
};

}  // namespace tapioca::engine
