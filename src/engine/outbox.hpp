// Outbox: how a rank's pieces leave its node. The ranks of the node gather a round's pieces for another node's
// aggregator in a slot; one of them, the lane's sender, sends it when all have added theirs. Large pieces go straight
// from the rank that has them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/net.hpp"
#include "engine/run.hpp"
#include "engine/wire.hpp"

namespace tapioca::engine {

/// Runs of one entry: more take several.
inline constexpr std::size_t most_runs = 256;

class Outbox {
public:
    /// `work` and what it names must outlive this.
    Outbox(Place const& place, Work const& work);

    /// Where this node begins, so that not all send to the same aggregator first.
    [[nodiscard]] std::size_t first_partition() const;

    /// This rank's pieces of a round, from `data`. `whole` if no other piece can overlap them.
    void add_data(std::size_t partition, std::int64_t round, std::span<pattern::Run const> runs, std::byte const* data,
                  bool whole);
    /// True while what this rank has under way besides the slots takes so much memory that it must not fill more. Ranks
    /// fill rounds in the same order, and wait only for what those before it have filled.
    [[nodiscard]] bool choked() const { return strays_bytes_ > work_->route->network.stray_bytes; }
    /// Asks for pieces of a round. Where in the reply they will be, or nothing if the slot is full.
    std::optional<std::uint64_t> add_request(std::size_t partition, std::int64_t round,
                                             std::span<pattern::Run const> runs);
    /// Where the reply to a round's requests lands.
    [[nodiscard]] std::span<std::byte> reply(std::size_t partition, std::int64_t round) const;

    /// Two-sided: sends what is complete. True if something was done.
    bool pump();
    /// True when everything this rank had to send has left, and every reply to it has come.
    [[nodiscard]] bool done() const;

    /// One-sided: puts this node's part of a round into each partition that this rank sends for, when it is complete;
    /// calls `meanwhile` while that is not so.
    void put_round(std::int64_t round, std::function<void()> const& meanwhile);
    /// One-sided, when reading: what this rank puts and gets in the epochs of `round`, and what is free after them.
    void put_requests(std::int64_t round);
    void get_replies(std::int64_t round);
    void free_round(std::int64_t round);

private:
    /// A partition that this rank sends its node's part of.
    struct Lane {
        std::size_t partition;
        Site::Feeder const* self;  ///< this node, as the partition's aggregator sees it
        int to;
        std::int64_t rounds;
        std::int64_t next = 0;                 ///< round to look at next
        std::deque<std::int64_t> under_way{};  ///< sent, not yet free
        std::vector<int> awaited{};            ///< per buffer: events until it is free: left, reply come
        wire::Heading notice{};                ///< tells which round is the first, where that is not round 0
        bool begun = false;                    ///< the aggregator knows which round is the first
        bool said_all = false;                 ///< and that nothing more comes
    };
    /// Large pieces that this rank puts itself.
    struct Placed {
        std::size_t partition;
        std::int64_t offset;  ///< from the start of the buffer
        std::span<std::byte const> bytes;
    };

    [[nodiscard]] bool sends_for(std::size_t partition) const;
    [[nodiscard]] std::size_t buffer_of(std::int64_t round) const;
    [[nodiscard]] std::uint64_t ticket(std::size_t partition, std::int64_t round) const;
    [[nodiscard]] std::int64_t origin(std::size_t partition, std::int64_t round) const;
    [[nodiscard]] std::span<std::byte> message(std::size_t partition, std::int64_t round) const;
    [[nodiscard]] std::size_t request_bytes() const;
    [[nodiscard]] std::span<std::byte> claim(std::size_t partition, std::int64_t round, std::size_t bytes,
                                             std::size_t room);
    [[nodiscard]] bool touched(Lane const& lane, std::int64_t round) const;
    [[nodiscard]] std::int64_t taken(Lane const& lane) const;
    bool pump(Lane& lane);
    void send(Lane& lane, std::int64_t round, std::int64_t following);
    void put_lanes(std::int64_t round, std::span<Lane const* const> lanes, std::function<void()> const& meanwhile);
    void send_notice(Lane& lane, std::int64_t first);
    void send_stray(std::size_t partition, std::int64_t round, wire::EntryHeading heading,
                    std::span<pattern::Run const> runs, std::byte const* data);
    std::span<std::byte const> seal(Lane const& lane, std::int64_t round, std::int64_t following);
    void release(Lane const& lane, std::int64_t round);

    Place place_;
    Work const* work_;
    bool asking_;
    std::vector<Lane> lanes_;
    std::vector<Placed> placed_;
    std::vector<std::byte> encoded_;
    std::size_t leaving_ = 0;         ///< messages of this rank alone that have not left yet
    std::uint64_t strays_bytes_ = 0;  ///< of those that found no room in a slot
};

}  // namespace tapioca::engine
