// Exchange: how the ranks of a node tell each other, in shared memory, which rounds are filled, drained
// or read, and how they agree on errors. No MPI: the ranks may be processes or threads.
//
// All counters only grow, over the life of the communicator, so that nothing is ever reset: a step begins
// at the tickets where the one before ended, and every rank computes the same ones.
//
//   writing  a rank that has filled all its data of a partition up to some round stores the round where it
//            has data next (filled). The partition's one drainer writes every round below the least of
//            these, then says so (drained), which frees the buffer for the round N later.
//   reading  readers claim blocks in order (claimed), fill them (Block::ready), and every rank stores the
//            block it needs next (consumed); the least of these frees the buffers before it.
//   agreeing a rank stores its status and counts up (arrived), then waits for all others to have done so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include "core/result.hpp"
#include "engine/backoff.hpp"

namespace tapioca::engine {

inline constexpr int most_buffers = 64;  ///< per aggregator

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free);

class Exchange {
public:
    /// One buffer of the read ring. `ready` is the ticket of the block it holds plus one.
    struct Block {
        Counter ready;
        Counter valid;  ///< bytes of the block that the file has
    };

    static std::size_t bytes(int ranks);
    /// `memory` is zeroed, shared by all ranks, aligned to a cache line, and outlives this.
    Exchange(std::byte* memory, int ranks, int rank);

    [[nodiscard]] int ranks() const { return ranks_; }
    [[nodiscard]] int rank() const { return rank_; }

    // writing
    void set_filled(std::size_t partition, std::uint64_t ticket);
    [[nodiscard]] std::uint64_t least_filled(std::size_t partition) const;
    [[nodiscard]] Counter& drained(std::size_t partition) const;
    /// Bytes that ranks put into this buffer in the current round.
    [[nodiscard]] Counter& touched(std::size_t partition, std::size_t buffer) const;

    // reading
    [[nodiscard]] Counter& claimed() const;
    [[nodiscard]] Block& block(std::size_t slot) const;
    void set_consumed(std::uint64_t ticket);
    [[nodiscard]] std::uint64_t least_consumed() const;

    // both
    /// A rank tells in which direction it moves data in step `step`. Ranks without data ask the others:
    enum class Direction : std::uint64_t { unknown = 0, none = 1, write = 2, read = 3 };
    void announce(std::uint64_t step, Direction direction);
    /// what somebody announced; none if all ranks said so; unknown if neither is known yet.
    [[nodiscard]] Direction announced(std::uint64_t step) const;

    /// A rank whose part of step `step` is missing says so before it counts as filled: nothing is written then.
    void spoil(std::uint64_t step);
    [[nodiscard]] bool spoiled(std::uint64_t step) const;

    /// The same Status on every rank: ok, or the failure of the lowest failing rank. Collective over the node.
    /// `while_waiting` is called over and over until all have arrived.
    template <class Work>
    core::Status agree(core::Status const& local, Patience const& patience, Work while_waiting)
    {
        arrive(local);
        wait_until(patience, "the other ranks to finish the step", [&] {
            while_waiting();
            return all_arrived();
        });
        return verdict();
    }
    core::Status agree(core::Status const& local, Patience const& patience)
    {
        return agree(local, patience, [] {});
    }

private:
    struct Record;
    struct Header;
    struct Cell;
    struct Lane;

    void arrive(core::Status const& local);
    [[nodiscard]] bool all_arrived() const;
    [[nodiscard]] core::Status verdict() const;
    [[nodiscard]] Cell& cell(int rank) const;
    [[nodiscard]] Counter& filled(std::size_t partition, int rank) const;

    int ranks_;
    int rank_;
    std::uint64_t agreements_ = 0;
    Header* header_;
    Cell* cells_;
    Lane* lanes_;
    Counter* filled_;
    std::size_t filled_per_rank_;
    Block* blocks_;
};

}  // namespace tapioca::engine
