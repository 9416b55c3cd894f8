// Which bytes of a file lie where in its subfiles, as far as the records say. No file is looked at, so this also works
// if subfiles are missing. All calls are local.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "subfile/holding_pieces.hpp"

namespace tapioca::subfile {

/// Calls visit(part) for all that the chunks have of the file, in ascending order. Where chunks overlap, only the
/// one that counts is visited.
void each_stretch(ExtentMap const& map, std::function<void(FilePart const&)> const& visit);

/// How many pieces of the file the chunks have, those that others have replaced among them: what each_stretch() has to
/// look at.
std::uint64_t count_pieces(ExtentMap const& map);
/// Bytes of chunks that later ones have replaced, or that were cut off. Nothing if there are more than `most_pieces`.
std::optional<std::uint64_t> dead_bytes(ExtentMap const& map, std::uint64_t most_pieces);

}  // namespace tapioca::subfile
