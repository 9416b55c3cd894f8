// Random patterns for all ranks of a job, the same on every rank for the same seed, and their meaning byte by byte: the
// model with which files are compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <tapioca/pattern.hpp>

namespace tapioca::test {

class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    /// Uniform in [low, high].
    std::int64_t pick(std::int64_t low, std::int64_t high)
    {
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
    }
    bool chance(int percent) { return pick(1, 100) <= percent; }
    template <class T>
    T const& one_of(std::vector<T> const& values)
    {
        return values[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(values.size()) - 1))];
    }
    template <class T>
    void shuffle(std::vector<T>& values)
    {
        std::shuffle(values.begin(), values.end(), engine_);
    }

private:
    std::mt19937_64 engine_;
};

/// One variable of one rank: its extents in the buffer's order and, if it is one, the subarray.
struct Declared {
    std::vector<Extent> extents;
    std::optional<Subarray> array;
    [[nodiscard]] std::int64_t bytes() const
    {
        std::int64_t sum = 0;
        for (auto const& extent : extents) sum += extent.length;
        return sum;
    }
};
using Job = std::vector<std::vector<Declared>>;  ///< [rank][variable]

using Bytes = std::vector<std::byte>;

Pattern pattern_of(std::vector<Declared> const& variables);
/// Where the job's data begins and ends in the file, without a base.
std::int64_t begin_of(Job const& job);
std::int64_t end_of(Job const& job);

/// Writes a variable into the image of a file, extent by extent; the image grows as a file does.
void apply(Bytes& image, std::int64_t base, Declared const& variable, Bytes const& data);

/// What a read of the variable must return. Bytes past the end keep `filler` and are not counted.
Bytes gather(Bytes const& image, std::int64_t base, Declared const& variable, std::byte filler,
             std::uint64_t& received);

/// Random cuts of a range; each piece is given to a rank and variable, or left as a hole.
struct Deal {
    std::int64_t begin = 0;
    std::int64_t range = 10'000;
    int pieces = 40;
    int variables = 2;
    int hole_percent = 20;
    bool unsorted = false;
    bool own_overlap = false;
    int idle_rank = -1;  ///< a rank that gets nothing
};

Job deal(Random& random, int ranks, Deal const& how);

/// Equal blocks, given to the ranks in turn.
Job interleave(int ranks, std::int64_t begin, std::int64_t block, int blocks_per_rank);

/// The extents of a subarray, element by element in the order of its buffer.
std::vector<Extent> expand(Subarray const& array);

/// An array of 1 to 4 dimensions: in blocks, or every n-th index of some dimension for each of n ranks.
Job decompose(Random& random, int ranks, std::int64_t file_offset);

/// Any of the above.
Job random_job(Random& random, int ranks);

}  // namespace tapioca::test
