// Alignment: the unit of cuts and rounds, and cuts that begin on different servers of a striped file. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/storage.hpp"

namespace tapioca::plan {

/// What boundaries between partitions are multiples of: the stripe where the file has stripes, else the block.
std::int64_t unit_of(machine::Storage const& storage);

/// The round that goes best with a striped file: a stripe; several, up to 1 MiB, where they are small; an even part of
/// at most 16 MiB where they are large.
std::uint64_t stripe_round(machine::Storage const& storage);

/// Moves the inner cuts so that any `servers` partitions in a row begin on as many servers, as long as each has that
/// many stripes; of smaller ones, where no partition grows by much. Cuts move by half a row of stripes at most, the
/// first and the last not at all; they stay in order. A large partition may grow by a row: where that
/// matters, those with less than `rows` rows of stripes count as small, and small ones grow by no more than such a
/// part.
/// @pre the inner cuts are multiples of `stripe_bytes`
std::vector<std::int64_t> stagger(std::vector<std::int64_t> cuts, std::int64_t stripe_bytes, int servers, int rows = 1);

}  // namespace tapioca::plan
