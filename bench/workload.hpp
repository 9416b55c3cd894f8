// BenchWorkload: what this rank of a benchmark moves in a step, and the bytes that are expected afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tapioca/tapioca.hpp>

#include "workloads/workload.hpp"

namespace bench {

/// A workload as this rank moves it.
struct BenchWorkload : workloads::Workload, workloads::RankPart {
    std::int64_t step_bytes = 0;   ///< of all ranks
    std::int64_t step_shift = 0;   ///< distance in the file to the next step: step_bytes, unless steps interleave
    std::int64_t rank_bytes = 0;   ///< of this rank
    std::int64_t rank_offset = 0;  ///< bytes of all lower ranks: where the limit's contiguous piece begins

    [[nodiscard]] std::int64_t file_bytes() const { return steps * step_bytes; }
};

/// Makes the workload for the ranks of `comm`. Collective over it.
BenchWorkload make(MPI_Comm comm, workloads::Maker const& maker);

/// Generates the bytes of the file at `offset` from `seed`: every byte depends only on its position.
void fill(std::span<std::byte> to, std::int64_t offset, std::uint64_t seed);
[[nodiscard]] bool matches(std::span<std::byte const> bytes, std::int64_t offset, std::uint64_t seed);

/// The same for a variable's packed buffer in the step that begins at `base`.
class ExpectedData {
public:
    ExpectedData(BenchWorkload const& workload, std::int64_t base, std::uint64_t seed)
        : workload_(workload), base_(base), seed_(seed)
    {
    }
    void fill(std::size_t var, std::span<std::byte> buffer) const;
    [[nodiscard]] bool matches(std::size_t var, std::span<std::byte const> buffer) const;

private:
    template <class Visit>
    void for_each_piece(std::size_t var, Visit visit) const;
    BenchWorkload const& workload_;
    std::int64_t base_;
    std::uint64_t seed_;
};

}  // namespace bench
