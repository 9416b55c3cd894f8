// Alignment: the unit of cuts and rounds, and cuts that begin on different servers of a striped file. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/storage.hpp"

namespace tapioca::plan {

/// Boundaries between partitions are multiples of this: of the stripe if the file has stripes, otherwise of the block.
std::int64_t unit_of(machine::Storage const& storage);

/// The best round for a striped file: a stripe; several stripes, up to 1 MiB, if they are small; an even part of a
/// stripe, at most 16 MiB, if they are large.
std::uint64_t stripe_round(machine::Storage const& storage);

/// Moves the inner cuts so that any `servers` consecutive partitions begin on as many servers, if each of them has at
/// least that many stripes. Smaller partitions are treated the same way if none of them grows much. Inner cuts move by
/// at most half a row of stripes, and stay in order; the first and the last cut do not move. A large partition may grow
/// by a row. If that matters, partitions with fewer than `rows` rows of stripes count as small, and small ones grow by
/// no more than one `rows`-th. @pre the inner cuts are multiples of `stripe_bytes`
std::vector<std::int64_t> stagger(std::vector<std::int64_t> cuts, std::int64_t stripe_bytes, int servers, int rows = 1);

}  // namespace tapioca::plan
