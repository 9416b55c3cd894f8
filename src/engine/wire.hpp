// The messages between nodes: where pieces lie in a round, in a few bytes, and the pieces themselves.
//
//   message   Heading, then entries one after the other, each of one rank
//   entry     EntryHeading, its runs, its bytes (unless they travel otherwise)
//   runs      per run, as variable-length integers: gap from the end of the run before (zigzag), length, count, and
//             for a count above 1 the gap between pieces
//
// A regular pattern takes some ten bytes a round, an irregular one three to four bytes a piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pattern/layout.hpp"

namespace tapioca::engine::wire {

/// Rounds are counted within a partition and a step.
struct Heading {
    std::int64_t round = 0;      ///< round of the entries; -1 in a message that only says which round follows
    std::int64_t following = 0;  ///< the next round in which this node has data, or the number of rounds
    std::uint32_t bytes = 0;     ///< bytes of the entries
    std::uint32_t strays = 0;    ///< entries of this round that come as messages of their own
    std::uint64_t reply = 0;     ///< reading: bytes of the reply
};

enum class DataPath : std::uint32_t {
    inside,  ///< the bytes follow the runs
    apart,   ///< the bytes are a message from `rank`
    placed,  ///< the bytes were put into the round's buffer
    none,    ///< reading: the runs are a request; or, without runs, nothing
};

struct EntryHeading {
    std::uint32_t run_bytes = 0;
    DataPath way = DataPath::inside;
    std::int32_t rank = 0;
    std::uint32_t data_bytes = 0;
    std::uint64_t data_at = 0;  ///< reading: where in the reply the data is
};

/// A slot for reading has room for requests, NetworkRoute::request_bytes, and behind them for the reply. The reply
/// consists of a 64-bit number, which says how many bytes of the round, counted from its first, the file has, and of
/// the bytes.

/// A stray entry is a message of its own, which consists of this heading and the entry.
struct StrayHeading {
    std::int64_t round = 0;
    std::int32_t node = 0;
    std::int32_t unused = 0;
};

/// Appends the runs, with offsets relative to `origin`.
void encode(std::span<pattern::PieceRun const> runs, std::int64_t origin, std::vector<std::byte>& to);

/// Decodes runs from `from`; buffer positions count from 0. Returns false at the end, and if the bytes are not valid
/// runs.
class Runs {
public:
    explicit Runs(std::span<std::byte const> from) : from_(from) {}
    bool next(pattern::PieceRun& run);

private:
    std::uint64_t number();

    std::span<std::byte const> from_;
    std::int64_t end_ = 0;
    std::int64_t buffer_ = 0;
};

/// One entry of a message.
struct MessageEntry {
    EntryHeading heading;
    std::span<std::byte const> runs;
    std::span<std::byte const> data;  ///< empty unless inside
};
/// Takes the first entry off `bytes`. If it is cut off, the part that is there is returned.
MessageEntry take_entry(std::span<std::byte const>& bytes);

}  // namespace tapioca::engine::wire
