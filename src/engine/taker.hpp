// Taker: copies a rank's pieces out of the buffers of the aggregators on its node, asks aggregators of other nodes for
// the rest, and takes it from their replies.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "engine/context.hpp"
#include "engine/outbox.hpp"

namespace tapioca::engine {

class Taker {
public:
    /// `outbox` takes the requests to other nodes. The arguments must outlive this object.
    Taker(Context const& context, Outbox& outbox);
    Taker(Taker const&) = delete;
    Taker& operator=(Taker const&) = delete;

    /// True when this rank has everything that it needs.
    [[nodiscard]] bool done() const;
    /// Asks for and takes whatever is possible now. Returns true if something was done.
    bool advance();
    /// Asks for what this rank needs of a round, when all ranks go through the rounds together; waits for room.
    void ask_for(std::int64_t round);
    /// Takes what this rank needs of such a round; waits until it is there.
    void take_out(std::int64_t round);

    /// The status of what this rank had to read by itself.
    [[nodiscard]] core::Status const& status() const { return status_; }
    /// Bytes of each variable that came from the file.
    [[nodiscard]] std::vector<std::uint64_t> const& received() const { return received_; }
    /// Seconds spent so far.
    [[nodiscard]] double copying() const { return copying_; }

private:
    /// What this rank asked for in a round.
    struct AskedRound {
        struct AskedPart {
            std::size_t variable_buffer;
            std::int64_t end;                 ///< pieces before this offset
            std::optional<std::uint64_t> at;  ///< where in the reply; nothing: this rank reads it itself
        };
        std::int64_t round;
        std::vector<AskedPart> parts;
    };
    struct Lane {
        bool home = false;
        std::vector<pattern::LayoutCursor> taking;  ///< one per variable buffer
        std::vector<pattern::LayoutCursor> asking;  ///< ahead of `taking`, if the aggregator is on another node
        std::int64_t to_take = no_round;
        std::int64_t to_ask = no_round;
        std::deque<AskedRound> asked;
    };

    [[nodiscard]] bool slot_is_free(std::size_t partition, std::int64_t round) const;
    bool advance(std::size_t partition);
    void publish(std::size_t partition);
    void ask(std::size_t partition);
    void take(std::size_t partition);
    void take_loaded(std::size_t partition, std::int64_t round);
    void take_reply(std::size_t partition, std::int64_t round);
    void read_oneself(pattern::LayoutCursor& cursor, VariableBuffer const& variable_buffer, std::int64_t limit);
    void count(std::size_t variable_buffer, pattern::PieceRun const& run);

    Context const& context_;
    Outbox& outbox_;
    std::vector<Lane> lanes_;
    std::vector<pattern::PieceRun> runs_;  ///< runs that are being asked for
    target::Target* target_;               ///< null until this rank needs one
    core::Status status_;
    std::vector<std::uint64_t> received_;
    double copying_ = 0;
};

}  // namespace tapioca::engine
