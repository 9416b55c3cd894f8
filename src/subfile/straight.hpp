// Straight reads: where a set has the bytes of a variable side by side, or in a few large stretches, so that a rank
// reads them by itself, without aggregators. All calls are local, and come after a look at the set (SetTarget::look).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "subfile/set_target.hpp"

namespace tapioca::subfile {

struct StraightPiece {
    int fd;
    std::int64_t at;      ///< in that file
    std::int64_t length;  ///< bytes
    std::int64_t place;   ///< in the variable's buffer
};

/// The pieces of a variable whose offsets are shifted by `shift`, if reading them is worth it. Nothing if something
/// else must be read, or if the set cannot be read; then an ordinary read finds out why.
std::optional<std::vector<StraightPiece>> straight_pieces(SetTarget& set, pattern::Variable const& variable,
                                                          std::int64_t shift);

/// A piece of a variable, wherever it lies.
struct PlacedPiece {
    std::uint32_t subfile;  ///< in_rest: no chunk has it
    std::int64_t at;        ///< in that file
    std::int64_t length;
    std::int64_t place;  ///< in the variable's buffer
};
/// Where all bytes of a variable lie, as far as they are before `size`, the end of the file.
core::Result<std::vector<PlacedPiece>> placed_pieces(SetTarget& set, pattern::Variable const& variable,
                                                     std::int64_t shift, std::int64_t size);

/// Reads a piece into the variable's buffer. Fails if the subfile is too short.
core::Status read_piece(StraightPiece const& piece, std::byte* buffer);

}  // namespace tapioca::subfile
