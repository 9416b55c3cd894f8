// Workload: what each rank of a benchmark moves in a step, and the bytes that must be found afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tapioca/tapioca.hpp>

namespace bench {

/// `count` blocks of `length` bytes, `stride` apart, from `offset` on.
struct Variable {
    std::int64_t offset = 0;
    std::int64_t length = 0;
    std::int64_t stride = 0;
    std::int64_t count = 1;
    [[nodiscard]] std::int64_t bytes() const { return length * count; }
};

struct Workload {
    std::string name;
    std::string layout;
    std::int64_t block_bytes = 0;          ///< size of the smallest piece, for the table
    std::vector<Variable> variables;       ///< of this rank
    std::vector<tapioca::Extent> extents;  ///< this rank's, where they are declared as an irregular list instead
    std::int64_t step_bytes = 0;           ///< of all ranks
    std::int64_t step_shift = 0;           ///< how far on the next step lies: step_bytes, unless steps interleave
    int steps = 2;                         ///< that fill a file
    std::int64_t rank_bytes = 0;           ///< of this rank
    std::int64_t rank_offset = 0;          ///< of all lower ranks: where the limit's contiguous piece begins
    std::string sizes;                     ///< how they differ from rank to rank, for people

    [[nodiscard]] tapioca::Pattern pattern() const;
    [[nodiscard]] std::int64_t file_bytes() const { return steps * step_bytes; }
    /// Such as "hacc aos, 25000 particles a rank".
    [[nodiscard]] std::string label() const;
    /// Calls visit(offset, length) for the contiguous pieces of variable `var`, in the order of its packed buffer.
    template <class Visit>
    void for_each_piece(std::size_t var, Visit visit) const
    {
        if (!extents.empty()) {
            for (auto const& extent : extents) visit(extent.offset, extent.length);
            return;
        }
        auto const& [offset, length, stride, count] = variables[var];
        for (std::int64_t i = 0; i < count; ++i) visit(offset + i * stride, length);
    }
};

/// How particles are spread over ranks; the same on all of them.
struct Sizes {
    std::string distribution = "uniform";  ///< or normal: a quarter of the mean as deviation
    std::uint64_t seed = 1;
    std::string heavy = "none";  ///< the half of the ranks, first or last, that has `share` of all data
    double share = 0.75;
    /// Particles of each of `ranks` ranks, `mean` of them on average (with normal: about).
    [[nodiscard]] std::vector<std::int64_t> deal(int ranks, std::int64_t mean) const;
    /// Such as ", normal sizes, 0.75 of them on the first half of the ranks"; nothing where all are equal.
    [[nodiscard]] std::string label() const;
};

Workload hacc(MPI_Comm comm, std::int64_t particles, bool aos, Sizes const& sizes = {});
/// Blocks dealt rank by rank; with `as_list`, in another order in each round of the deal and declared as extents.
Workload interleaved(MPI_Comm comm, std::int64_t bytes, std::int64_t block, bool as_list);
/// `distribution` of sizes per rank: uniform, random (0-100 % of `bytes`) or normal.
Workload array1d(MPI_Comm comm, std::int64_t bytes, std::string const& distribution);

/// IOR's patterns: `bytes` of every rank in steps of one `block`. Strided: the rank's bytes lie together, so that a
/// step touches one block in each rank's part of the file. Otherwise a step's blocks lie together (segmented).
Workload blocks(MPI_Comm comm, std::int64_t bytes, std::int64_t block, bool strided);

/// The bytes of the file at `offset`, as `seed` makes them: every byte depends on its place alone.
void fill(std::span<std::byte> to, std::int64_t offset, std::uint64_t seed);
[[nodiscard]] bool matches(std::span<std::byte const> bytes, std::int64_t offset, std::uint64_t seed);

/// The same for a variable's packed buffer in the step that begins at `base`.
class Contents {
public:
    Contents(Workload const& workload, std::int64_t base, std::uint64_t seed)
        : workload_(workload), base_(base), seed_(seed)
    {
    }
    void fill(std::size_t var, std::span<std::byte> buffer) const;
    [[nodiscard]] bool matches(std::size_t var, std::span<std::byte const> buffer) const;

private:
    template <class Visit>
    void for_each_piece(std::size_t var, Visit visit) const;
    Workload const& workload_;
    std::int64_t base_;
    std::uint64_t seed_;
};

}  // namespace bench
