// Inbox: the messages that other nodes send to an aggregator. It knows the aggregator's feeders, the places where their
// messages land, and which round each feeder has reached. Derived classes process the messages: Arrivals hands data to
// a drainer, Requests asks a loader.
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

    /// The partition of the aggregator.
    [[nodiscard]] std::size_t partition() const { return partition_; }

    // For a carrier that uses messages.

    /// Receives the first messages.
    void expect();
    /// Processes messages that have arrived and can be processed. Returns true if there was one.
    bool pump();
    /// True when nothing more will arrive or has to be sent.
    [[nodiscard]] bool done() const;

    // For a carrier that uses put and get.

    /// Marks the landing places as empty. To be called before anything is put.
    void blank();
    /// The ranks that put data here.
    [[nodiscard]] std::vector<int> senders() const;
    /// Processes everything that was put in a round.
    virtual void unload_round(std::int64_t round) = 0;

protected:
    /// A landing place, with or without a message.
    struct Landing {
        std::span<std::byte> bytes;
        int number = -1;  ///< number of the receive that is posted; -1: a message is here
    };
    struct Feeder {
        int node;
        int rank;                   ///< the sender
        std::size_t message_bytes;  ///< at most; the rest of a landing place is for the reply
        Landing landings[2];
        std::size_t next = 0;     ///< the landing place of the next message to process
        wire::Heading heading{};  ///< heading of that message, once it is here
        enum class FeederState { waiting, unloading, over } state = FeederState::waiting;
        bool heard = false;       ///< at least one message has come
        bool replying = false;    ///< a reply has not been sent completely yet
        std::int64_t ready = 0;   ///< this feeder has completed the rounds before this one
        std::size_t awaited = 0;  ///< messages of this round that are still expected
    };

    /// For the aggregator of `partition`. With two landing places per feeder, the next message can arrive while one
    /// waits for its buffer. `context` must outlive this object.
    Inbox(Context const& context, std::size_t partition, std::size_t landing_places);
    /// True if `feeder`'s message can be processed now.
    [[nodiscard]] virtual bool may_unload(Feeder const& feeder) const = 0;
    /// Processes `feeder`'s message with the entries `entries`. Messages that are still `awaited` come later.
    virtual void unload(Feeder& feeder, std::span<std::byte const> entries, Landing const& landing) = 0;
    /// Other nodes have completed all rounds before this one.
    [[nodiscard]] std::int64_t ready() const;
    /// Called when ready() may have changed.
    virtual void note_ready() = 0;
    /// Processes messages other than those of the lanes' senders. Returns true if there was one.
    virtual bool pump_others() { return false; }
    /// Reads the heading of a message, which says in which rounds its node has no data.
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
