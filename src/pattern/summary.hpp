// Summary: everything that planning needs to know about a pattern. It has a fixed size, and the summaries of all ranks
// add up to that of the job.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pattern/variable.hpp"

namespace tapioca::pattern {

using Variables = std::vector<std::shared_ptr<Variable const>>;

struct Summary {
    static constexpr std::int64_t span_bytes = std::int64_t{1} << 20;

    std::int64_t begin = no_offset;  ///< first byte of the file that is touched
    std::int64_t end = 0;            ///< one past the last
    std::uint64_t bytes = 0;
    std::uint64_t pieces = 0;
    std::uint64_t spans = 0;        ///< slices of span_bytes that ranks touch, counted for each rank separately
    std::uint64_t most_bytes = 0;   ///< largest number of bytes of one rank
    std::uint64_t most_pieces = 0;  ///< largest number of pieces of one rank
    std::uint64_t most_bookkeeping_bytes = 0;
    std::uint64_t ranks = 0;  ///< ranks summarised
    std::uint64_t ranks_with_data = 0;
    std::uint64_t bits = 0;      ///< bitwise or of all offsets and lengths; its lowest bit divides them all
    std::uint64_t edges = 0;     ///< sum of hash(start) - hash(end) over all pieces
    std::uint64_t unproven = 0;  ///< ranks with too many pieces to hash
    std::uint64_t fewest_variables = UINT64_MAX;
    std::uint64_t most_variables = 0;
    std::uint64_t most_layouts = 0;  ///< largest number of layouts of one rank

    /// True if every byte of [begin, end) is covered exactly once. Then all starts and ends cancel out, except the
    /// first start and the last end. Wrong with a probability of 1 in 2^64.
    [[nodiscard]] bool dense() const;
    /// The largest power of two that divides all offsets and lengths.
    [[nodiscard]] std::uint64_t granule() const { return bits == 0 ? 1 : bits & (~bits + 1); }
    void add(Summary const& other);
};

Summary summarise(Variables const& variables);

/// The names of the variables; "variable 2" for one without a name. Empty if none has a name.
std::vector<std::string> names_of(Variables const& variables);

/// Bytes in each of `bins` equal slices of [begin, end).
std::vector<std::uint64_t> histogram(Variables const& variables, std::int64_t begin, std::int64_t end,
                                     std::size_t bins);

/// Bytes between every two neighbours of `edges`, which are in ascending order.
std::vector<std::uint64_t> bytes_between(Variables const& variables, std::vector<std::int64_t> const& edges);

/// The same, added to `counts`.
void add_bytes_between(Variables const& variables, std::vector<std::int64_t> const& edges,
                       std::vector<std::uint64_t>& counts);

}  // namespace tapioca::pattern
