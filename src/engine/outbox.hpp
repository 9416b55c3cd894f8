// Outbox: how a rank's pieces, or its requests, get ready to leave its node. The ranks of the node gather a round's
// pieces for another node's aggregator in a slot; one of them, the lane's sender, gives it to the carrier when all have
// added theirs. Large pieces go straight from the rank that has them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/context.hpp"
#include "engine/wire.hpp"

namespace tapioca::engine {

/// Runs of one entry: more take several.
inline constexpr std::size_t most_runs = 256;

class Outbox {
public:
    /// A partition whose part of this node this rank sends.
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
    /// outlive this.
    Outbox(Context const& context, bool can_put);
    Outbox(Outbox const&) = delete;
    Outbox& operator=(Outbox const&) = delete;

    // For those who fill and ask.

    /// Where this node begins, so that not all send to the same aggregator first.
    [[nodiscard]] std::size_t first_partition() const;
    /// This rank's pieces of a round, from `data`. `whole` if no other piece can overlap them.
    void add_data(std::size_t partition, std::int64_t round, std::span<pattern::PieceRun const> runs,
                  std::byte const* data, bool whole);
    /// Asks for pieces of a round. Where in the reply they will be, or nothing if the slot is full.
    std::optional<std::uint64_t> add_request(std::size_t partition, std::int64_t round,
                                             std::span<pattern::PieceRun const> runs);
    /// Where the reply to a round's requests lands.
    [[nodiscard]] std::span<std::byte> reply(std::size_t partition, std::int64_t round) const;

    // For the carrier.

    /// That this rank sends for, the first in turn first.
    [[nodiscard]] std::vector<Lane> const& lanes() const { return lanes_; }
    /// True while what this rank has under way besides the slots takes so much memory that it must not fill more. Ranks
    /// fill rounds in the same order, and wait only for what those before it have filled.
    [[nodiscard]] bool choked() const { return strays_bytes_ > context_.route->network.stray_bytes; }
    /// True when every message of this rank besides the slots has left.
    [[nodiscard]] bool none_leaving() const { return leaving_ == 0; }
    /// Sends a message of this rank besides the slots; `bytes` must stay until none_leaving().
    void send(std::span<std::byte const> bytes, int to, Tag tag);
    /// Rounds of a lane that all ranks of the node have added theirs to.
    [[nodiscard]] std::int64_t rounds_filled(Lane const& lane) const;
    /// Reading: rounds of a lane that no rank of the node needs any more.
    [[nodiscard]] std::int64_t rounds_taken(Lane const& lane) const;
    /// True if somebody added something to a round of a lane, whose slot belongs to that round.
    [[nodiscard]] bool holds(Lane const& lane, std::int64_t round) const;
    /// The message that a slot has become. `following`: the next round that the node has something in.
    std::span<std::byte const> seal(Lane const& lane, std::int64_t round, std::int64_t following);
    /// Bytes of a slot that are for requests, where replies land behind them.
    [[nodiscard]] std::size_t request_bytes() const;
    /// Bytes of the reply to a message that was sealed.
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
    std::uint64_t strays_bytes_ = 0;  ///< of those that found no room in a slot
};

}  // namespace tapioca::engine
