// Inbox: how the other nodes' pieces reach an aggregator's buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/net.hpp"
#include "engine/run.hpp"
#include "engine/wire.hpp"

namespace tapioca::engine {

class Inbox {
public:
    /// Puts `data` where `runs` say in the buffer of `round`; without data, only notes that it is there.
    using Place_pieces = std::function<void(std::int64_t round, wire::Runs runs, std::byte const* data)>;

    /// For the aggregator of `partition`. `work` and what it names must outlive this.
    Inbox(Place const& place, Work const& work, std::size_t partition, Place_pieces place_pieces);

    /// Two-sided: takes in what has come for the rounds before `open`, whose buffers are free. True if something was
    /// done.
    bool pump(std::int64_t open);
    /// Rounds before this one are complete as far as other nodes go.
    [[nodiscard]] std::int64_t ready() const;

    /// One-sided: before the first round of a step; lets the feeders put the next round; tells whether they have; and
    /// takes it in.
    void clear();
    void open_round();
    bool round_is_there();
    void unload_round(std::int64_t round);

private:
    /// A message, or the place for it.
    struct Landing {
        std::span<std::byte> bytes;
        int number = -1;  ///< of the receive that is posted; -1: a message is here
    };
    /// Two places, so that the next message can come while one waits for its buffer.
    struct Feeder {
        int node;
        int rank;  ///< the sender
        Landing landings[2];
        std::size_t next = 0;     ///< the place of the message to be taken in next
        wire::Heading heading{};  ///< of that one, while it is being taken in
        enum class State { waiting, unloading, over } state = State::waiting;
        std::int64_t ready = 0;   ///< rounds before it are complete
        std::size_t awaited = 0;  ///< messages of this round that are still to come
    };
    /// A stray entry that waits for its round.
    struct Stray {
        wire::StrayHeading heading;
        std::vector<std::byte> bytes;
    };

    void expect(Feeder& feeder, std::size_t place);
    static void look(Feeder& feeder);
    void unload(Feeder& feeder, std::span<std::byte const> message);
    void receive_apart(Feeder& feeder, std::int64_t round, wire::Entry const& entry);
    bool take_strays();
    bool place_strays(Feeder& feeder);
    void conclude(Feeder& feeder);
    [[nodiscard]] std::byte* buffer(std::int64_t round) const;

    Place place_;
    Work const* work_;
    std::size_t partition_;
    Place_pieces place_pieces_;
    std::vector<Feeder> feeders_;
    std::vector<Stray> strays_;
    std::size_t strays_due_ = 0;  ///< announced and not yet here
};

}  // namespace tapioca::engine
