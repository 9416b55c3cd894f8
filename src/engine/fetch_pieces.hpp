// The pieces that a rank fetches, cut into requests, and how a rank reads what a request asks for. Nothing here
// communicates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/result.hpp"

namespace tapioca::engine {

/// Bytes that another rank can read, and where they go.
struct FetchPiece {
    int server;             ///< rank of the team that can read them
    std::uint64_t source;   ///< what that rank knows their file by
    std::int64_t position;  ///< in that file
    std::int64_t length;    ///< above 0
    std::byte* to;
};

/// Reads bytes of a source that this rank can read, all of them. Local.
using ReadSource = std::function<core::Status(std::uint64_t source, std::int64_t position, std::span<std::byte> to)>;

/// The data of a request, and so of a message.
inline constexpr std::int64_t most_fetched = std::int64_t{1} << 20;

/// What one message asks for: bytes of one source.
struct FetchRequest {
    std::uint64_t source = 0;
    std::int64_t bytes = 0;
    std::span<FetchPiece const> pieces;
    std::int64_t skipped = 0;       ///< bytes of the first piece that earlier requests ask for
    std::byte* straight = nullptr;  ///< where all of the data goes, or null if it is scattered

    /// Appends where the bytes lie in the source, as runs (wire.hpp).
    void encode(std::vector<std::byte>& to) const;
    /// Copies the bytes from `from`, where they lie side by side, to where they belong.
    void scatter(std::byte const* from) const;
};

/// Sorts by server, source and position, and merges what is contiguous both in the source and in memory.
void arrange(std::vector<FetchPiece>& pieces);

/// Cuts arranged pieces of one server into requests.
class FetchCutter {
public:
    explicit FetchCutter(std::span<FetchPiece const> pieces) : rest_(pieces) {}
    [[nodiscard]] bool done() const { return rest_.empty(); }
    /// @pre !done()
    [[nodiscard]] FetchRequest next();

private:
    std::span<FetchPiece const> rest_;
    std::int64_t skipped_ = 0;  ///< of the first of the rest
};

/// Reads what requests ask for, and small pieces that lie close together with one large read. Uses `most_fetched` bytes
/// of memory.
class FetchReader {
public:
    explicit FetchReader(ReadSource const& read) : read_(read) {}
    /// Fills `to` with the bytes that `runs` describe.
    core::Status read(std::uint64_t source, std::span<std::byte const> runs, std::span<std::byte> to);
    /// Calls of ReadSource so far.
    [[nodiscard]] std::uint64_t reads() const { return reads_; }

private:
    struct ReadPlace {
        std::int64_t position, length;
    };
    core::Status read_group(std::uint64_t source, std::byte* to);

    ReadSource const& read_;
    std::vector<ReadPlace> group_;  ///< places that one read serves
    std::int64_t begin_ = 0, end_ = 0;
    std::vector<std::byte> sieve_;
    std::uint64_t reads_ = 0;
};

}  // namespace tapioca::engine
