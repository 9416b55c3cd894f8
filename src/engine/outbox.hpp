// Outbox: prepares a rank's pieces, or its requests, for sending to other nodes. The ranks of a node gather a round's
// pieces for another node's aggregator in a slot. When all have added theirs, one of them, the lane's sender, hands the
// slot to the carrier. Large pieces are sent straight from the rank that has them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/context.hpp"
#include "engine/wire.hpp"

namespace tapioca::engine {

/// Most runs of one entry; further runs go into further entries.
inline constexpr std::size_t most_runs = 256;

class Outbox {
public:
    /// A partition to which this rank sends the node's data.
    struct Lane {
        std::size_t partition;
        BufferLayout::Feeder const* self;  ///< this node, as the partition's aggregator sees it
        int to;
        std::int64_t rounds;
    };
    /// A large piece that the carrier puts straight into the aggregator's buffer.
    struct Placed {
        std::size_t partition;
        std::int64_t offset;  ///< from the start of the buffer
        std::span<std::byte const> bytes;
    };

    /// `can_put`: the carrier can put large pieces of a lane's sender into the aggregator's buffer. `context` must
    /// outlive this object.
    Outbox(Context const& context, bool can_put);
    Outbox(Outbox const&) = delete;
    Outbox& operator=(Outbox const&) = delete;

    // For fillers and takers.

    /// The partition with which this node begins, so that the nodes do not all send to the same aggregator first.
    [[nodiscard]] std::size_t first_partition() const;
    /// Adds this rank's pieces of a round, from `data`. `whole`: no other piece can overlap them.
    void add_data(std::size_t partition, std::int64_t round, std::span<pattern::PieceRun const> runs,
                  std::byte const* data, bool whole);
    /// Asks for pieces of a round. Returns where they will be in the reply, or nothing if the slot is full.
    std::optional<std::uint64_t> add_request(std::size_t partition, std::int64_t round,
                                             std::span<pattern::PieceRun const> runs);
    /// Where the reply to a round's requests lands.
    [[nodiscard]] std::span<std::byte> reply(std::size_t partition, std::int64_t round) const;

    // For the carrier.

    /// The lanes for which this rank sends, in the order in which they are served.
    [[nodiscard]] std::vector<Lane> const& lanes() const { return lanes_; }
    /// True while this rank's outstanding messages outside the slots take so much memory that it must not fill more.
    /// This cannot deadlock: ranks fill rounds in the same order, and wait only for what was filled before.
    [[nodiscard]] bool choked() const { return strays_bytes_ > context_.route->network.stray_bytes; }
    /// True when every message of this rank outside the slots has left.
    [[nodiscard]] bool none_leaving() const { return leaving_ == 0; }
    /// Sends a message of this rank outside the slots. `bytes` must stay valid until none_leaving().
    void send(std::span<std::byte const> bytes, int to, Tag tag);
    /// The number of rounds of a lane to which all ranks of the node have added their data.
    [[nodiscard]] std::int64_t rounds_filled(Lane const& lane) const;
    /// Reading: the number of rounds of a lane that no rank of the node needs any more.
    [[nodiscard]] std::int64_t rounds_taken(Lane const& lane) const;
    /// True if some rank added something to a round of a lane. The slot must belong to that round.
    [[nodiscard]] bool holds(Lane const& lane, std::int64_t round) const;
    /// Turns a slot into a message. `following`: the next round in which the node has something.
    std::span<std::byte const> seal(Lane const& lane, std::int64_t round, std::int64_t following);
    /// Bytes of a slot that are reserved for requests; replies land behind them.
    [[nodiscard]] std::size_t request_bytes() const;
    /// Bytes of the reply to a message made by seal().
    [[nodiscard]] std::size_t reply_bytes(Lane const& lane, std::int64_t round) const;
    /// Makes a slot empty.
    void release(Lane const& lane, std::int64_t round);
    [[nodiscard]] std::vector<Placed> const& placed() const { return placed_; }
    void forget_placed() { placed_.clear(); }

private:
    [[nodiscard]] bool sends_for(std::size_t partition) const;
    [[nodiscard]] Exchange::LaneSlot& counts(std::size_t partition, std::int64_t round) const;
    [[nodiscard]] std::span<std::byte> message(std::size_t partition, std::int64_t round) const;
    [[nodiscard]] std::span<std::byte> claim(std::size_t partition, std::int64_t round, std::size_t bytes,
                                             std::size_t room);
    void send_stray(std::size_t partition, std::int64_t round, wire::EntryHeading heading,
                    std::span<pattern::PieceRun const> runs, std::byte const* data);

    Context const& context_;
    bool can_put_;
    std::vector<Lane> lanes_;
    std::vector<Placed> placed_;
    std::vector<std::byte> encoded_;
    std::size_t leaving_ = 0;         ///< messages of this rank alone that have not left yet
    std::uint64_t strays_bytes_ = 0;  ///< bytes of entries that did not fit into a slot
};

}  // namespace tapioca::engine
