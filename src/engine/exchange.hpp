// Exchange: how the ranks of a node tell each other, in shared memory, which rounds are filled, drained or read, and
// how they agree on errors. It makes no MPI call: the ranks may be processes or threads.
//
// All counters grow over the life of the communicator and are never reset: a step begins at the tickets at which the
// step before it ended, and every rank computes the same tickets.
//
//   writing  When a rank has filled all its data of a partition before some round, it stores the next round in which
//            it has data (filled). The partition's one drainer writes every round below the least of these numbers and
//            then raises a counter (emptied), which frees the buffer for the round N later. On a node without the
//            drainer, the buffers are slots for data that is sent to it, and the lane's sender empties them.
//   reading  On one node, readers claim blocks in order (claimed) and fill them (RingBuffer::ready). Every rank
//            stores the block that it needs next (consumed); the least of these frees the buffers before it.
//            On several nodes, the partition's one loader reads the rounds that are needed and raises a counter
//            (present). On nodes other than the loader's, ranks add requests to slots (filled), and a round is present
//            when the reply is. Every rank stores the round that it needs next (taken), which frees the buffers and
//            slots before it.
//   sharing  A rank puts a few bytes into its mailbox and raises a counter (arrived), then waits until all others have
//            done so and reads theirs. To agree on errors, the ranks share them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>

#include "core/result.hpp"
#include "engine/backoff.hpp"

namespace tapioca::engine {

inline constexpr int most_buffers = 64;  ///< per aggregator

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free);

class Exchange {
public:
    /// One buffer of the read ring. `holder` is one more than the ticket of the block that the buffer is assigned to,
    /// `ready` one more than that of the block that it contains. While they differ, a reader is filling the buffer.
    struct RingBuffer {
        Counter holder;
        Counter ready;
        Counter valid;  ///< how many bytes of the block the file has
    };

    /// What the ranks of a node have gathered for another node, in the slot of a lane's buffer.
    struct LaneSlot {
        Counter claimed;  ///< bytes, including those of entries that did not fit
        Counter filled;   ///< bytes in the slot
        Counter strays;   ///< entries that did not fit and are sent as messages of their own
        Counter reply;    ///< reading: bytes asked for
    };

    static std::size_t bytes(int ranks);
    /// `memory` is zeroed, shared by all ranks, aligned to a cache line, and outlives this object.
    Exchange(std::byte* memory, int ranks, int rank);

    /// The number of partitions that have counters, and the number of buffers of each.
    struct Lanes {
        std::size_t count = 0;
        std::size_t buffers = 0;
        [[nodiscard]] bool hold(Lanes const& needed) const
        {
            return needed.count <= count && needed.buffers <= buffers;
        }
    };
    static std::size_t lane_bytes(int ranks, Lanes const& lanes);
    /// From now on, the counters of the partitions are in `memory`, which has the same requirements as that of the
    /// constructor. All counters start at 0, and so must the tickets. To be called between steps, on all ranks.
    void use_lanes(std::byte* memory, Lanes const& lanes);
    [[nodiscard]] Lanes const& lanes() const { return lanes_; }

    [[nodiscard]] int ranks() const { return ranks_; }
    [[nodiscard]] int rank() const { return rank_; }

    // A lane: the counters of a partition on this node. All of them count tickets of rounds.

    /// This rank has added everything that it has for rounds before `ticket`: data to write, or requests.
    void set_filled(std::size_t partition, std::uint64_t ticket);
    [[nodiscard]] std::uint64_t least_filled(std::size_t partition) const;
    /// Writing: the buffers of rounds before this one were drained or, if they are slots, sent.
    [[nodiscard]] Counter& emptied(std::size_t partition) const { return progress(partition); }
    /// Reading between nodes: the rounds before this one that some rank of this node needs were loaded or, if the
    /// loader is on another node, its replies have arrived.
    [[nodiscard]] Counter& present(std::size_t partition) const { return progress(partition); }
    /// Raises emptied() or present(), which share their memory since a lane is either written or read. A node that took
    /// no part in a partition's last steps catches up this way.
    void raise_progress(std::size_t partition, std::uint64_t ticket);
    /// Reading between nodes: this rank needs nothing more from rounds before `ticket`.
    void set_taken(std::size_t partition, std::uint64_t ticket);
    [[nodiscard]] std::uint64_t least_taken(std::size_t partition) const;

    // The buffers of a lane, on the aggregator's node.

    /// Writing: bytes that ranks put into this buffer in the current round.
    [[nodiscard]] Counter& filled_bytes(std::size_t partition, std::size_t buffer) const
    {
        return buffer_bytes(partition, buffer);
    }
    /// Reading between nodes: how many bytes of the round, counted from its first, the file has. Shares its memory with
    /// filled_bytes().
    [[nodiscard]] Counter& valid_bytes(std::size_t partition, std::size_t buffer) const
    {
        return buffer_bytes(partition, buffer);
    }
    /// The slots of a lane, on the other nodes.
    [[nodiscard]] LaneSlot& slot(std::size_t partition, std::size_t buffer) const;

    // The ring of a node that reads.
    [[nodiscard]] Counter& claimed() const;
    void raise_claimed(std::uint64_t ticket);
    [[nodiscard]] RingBuffer& block(std::size_t slot) const;
    void set_consumed(std::uint64_t ticket);
    [[nodiscard]] std::uint64_t least_consumed() const;

    // The step.
    /// A rank announces in which direction it moves data in step `step`. Ranks without data ask the others.
    enum class Announcement : std::uint64_t { unknown = 0, none = 1, write = 2, read = 3 };
    void announce(std::uint64_t step, Announcement direction);
    /// The direction that some rank announced; none if all ranks announced that they have no data; unknown if it is too
    /// early to tell.
    [[nodiscard]] Announcement announced(std::uint64_t step) const;

    /// A rank that cannot supply its part of step `step` says so before it counts as filled; then nothing is written.
    void spoil(std::uint64_t step);
    [[nodiscard]] bool spoiled(std::uint64_t step) const;

    /// Why no rank must wait any longer: a step was destroyed before it ended, or a rank could not go on.
    struct AbandonReason {
        Errc code = Errc::invalid_state;  ///< or memory
        int rank = -1;                    ///< in the communicator
        std::uint16_t opening = 0;        ///< how many files had been opened or were being opened
    };
    /// `after` is the number of agreements between nodes that this rank has completed; all ranks have reached these.
    /// The first reason counts.
    void abandon(std::uint64_t after, AbandonReason const& reason);
    void abandon(std::uint64_t after = 0) { abandon(after, AbandonReason()); }
    [[nodiscard]] bool abandoned() const;
    /// True if a rank that has abandoned takes part in no more than `agreements` agreements.
    [[nodiscard]] bool abandoned_after(std::uint64_t agreements) const;

    /// Whether no rank of the node has lately said what has this digest. If several things are said at the same time,
    /// some may be said more than once.
    bool first_to_say(std::uint64_t digest);

    /// A sign of life from a rank that is busy for a long time without touching a counter.
    void beat();
    /// A number that changes whenever some rank makes progress.
    [[nodiscard]] std::uint64_t activity() const;

    /// Every rank shows `mail` to all others: use(rank, bytes) is called for each, in order of ranks.
    /// Collective over the node. At most `most_mail` bytes. Fails only if a step was abandoned.
    static constexpr std::size_t most_mail = 2032;
    template <class Use>
    core::Status share(std::span<std::byte const> mail, WaitPolicy const& wait_policy, Use use)
    {
        if (abandoned()) return lost();
        post(mail);
        wait_until(wait_policy, "the other ranks to arrive", [&] { return all_arrived() || abandoned(); });
        if (!all_arrived()) return lost();
        for (int rank = 0; rank < ranks_; ++rank) use(rank, mail_of(rank));
        return {};
    }
    /// The error that every rank reports after the communicator was abandoned.
    [[nodiscard]] core::Status lost() const;
    [[nodiscard]] AbandonReason reason() const;
    /// The same Status on every rank: ok, or the failure of the lowest failing rank. Collective over the node.
    core::Status agree(core::Status const& local, WaitPolicy const& wait_policy);

private:
    struct Header;
    struct RankCell;

    void post(std::span<std::byte const> mail);
    [[nodiscard]] bool all_arrived() const;
    [[nodiscard]] std::span<std::byte const> mail_of(int rank) const;
    [[nodiscard]] RankCell& cell(int rank) const;
    [[nodiscard]] Counter& progress(std::size_t partition) const;
    [[nodiscard]] Counter& buffer_bytes(std::size_t partition, std::size_t buffer) const;
    [[nodiscard]] Counter& filled(std::size_t partition, int rank) const;
    [[nodiscard]] Counter& taken(std::size_t partition, int rank) const;
    [[nodiscard]] std::uint64_t least(Counter* rows, std::size_t partition) const;

    int ranks_;
    int rank_;
    std::uint64_t posts_ = 0;
    Header* header_;
    RankCell* cells_;
    RingBuffer* blocks_;
    /// The thread that calls activity() may not be the one that switches to larger lanes.
    std::unique_ptr<std::mutex> lanes_mutex_ = std::make_unique<std::mutex>();
    Lanes lanes_;
    std::byte* lane_memory_ = nullptr;
    Counter* filled_ = nullptr;
    Counter* taken_ = nullptr;
    std::size_t row_ = 0;  ///< counters per rank in filled_ and taken_
};

}  // namespace tapioca::engine
