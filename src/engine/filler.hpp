// Filler: copies a rank's pieces into the buffers of the aggregators on its node, and packs those for other nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/context.hpp"
#include "engine/outbox.hpp"

namespace tapioca::engine {

class Filler {
public:
    /// `outbox` takes the data for other nodes; it is null on one node. The arguments must outlive this object.
    Filler(Context const& context, Outbox* outbox);
    Filler(Filler const&) = delete;
    Filler& operator=(Filler const&) = delete;

    /// True when this rank has nothing more to fill.
    [[nodiscard]] bool done() const { return unfinished_ == 0; }
    /// The next round of a partition in which this rank has data, or no_round.
    [[nodiscard]] std::int64_t next(std::size_t partition) const { return next_[partition]; }
    /// Fills the round that is due first, if there is room for it. Returns true if it filled one.
    bool fill_next();
    /// Fills the next round of a partition. There must be room for it.
    void fill(std::size_t partition);
    /// Seconds spent so far.
    [[nodiscard]] double copying() const { return copying_; }

private:
    [[nodiscard]] std::size_t soonest() const;
    [[nodiscard]] std::span<pattern::LayoutCursor> cursors(std::size_t partition);
    void publish(std::size_t partition);
    void copy(std::size_t partition, std::int64_t round);
    void pack(std::size_t partition, std::int64_t round);

    Context const& context_;
    Outbox* outbox_;
    std::size_t first_;                           ///< partition to begin with
    std::vector<pattern::LayoutCursor> cursors_;  ///< partition by partition, one per variable buffer
    std::vector<std::int64_t> next_;              ///< per partition: the next round in which this rank has data
    std::size_t unfinished_ = 0;                  ///< partitions that have such a round
    std::vector<pattern::PieceRun> runs_;         ///< runs that are being packed
    double copying_ = 0;
};

}  // namespace tapioca::engine
