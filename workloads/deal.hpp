// Deal: how many items each rank has, and where its share begins; and options that several workloads have.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/workload.hpp"

namespace CLI {
class Option;
}

namespace workloads {

/// The shares of consecutive ranks: equal ones, which take no memory, or one for each rank.
class Deal {
public:
    Deal(int ranks, std::int64_t each) : each_(each), ranks_(ranks) {}
    explicit Deal(std::vector<std::int64_t> const& shares);

    [[nodiscard]] std::int64_t before(int rank) const
    {
        return starts_.empty() ? rank * each_ : starts_[static_cast<std::size_t>(rank)];
    }
    [[nodiscard]] std::int64_t of(int rank) const { return before(rank + 1) - before(rank); }
    [[nodiscard]] std::int64_t total() const { return before(ranks_); }
    /// One contiguous piece per rank, with a rank's share as its bytes.
    [[nodiscard]] RankPart piece(int rank) const { return {{{before(rank), of(rank), 0, 1}}, {}}; }

private:
    std::int64_t each_ = 0;
    int ranks_ = 0;
    std::vector<std::int64_t> starts_;  ///< empty, or the start of each rank and the end
};

/// The most bytes that a rank may be given on a command line.
inline constexpr std::int64_t most_bytes = std::int64_t{1} << 40;
/// An option that takes a number of bytes, such as 64K, from 1 to `most`; `text` is its placeholder in the help.
void take_bytes(CLI::Option* option, std::int64_t most, char const* text);

}  // namespace workloads
