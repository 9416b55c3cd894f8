// See random_patterns.hpp.
#include "support/random_patterns.hpp"

namespace tapioca::test {

Pattern pattern_of(std::vector<Declared> const& variables)
{
    Pattern pattern;
    for (auto const& variable : variables)
        variable.array ? pattern.add(*variable.array) : pattern.add(std::span<Extent const>(variable.extents));
    return pattern;
}

std::int64_t end_of(Job const& job)
{
    std::int64_t end = 0;
    for (auto const& variables : job)
        for (auto const& variable : variables)
            for (auto const& extent : variable.extents)
                if (extent.length > 0) end = std::max(end, extent.offset + extent.length);
    return end;
}

std::int64_t begin_of(Job const& job)
{
    std::int64_t begin = end_of(job);
    for (auto const& variables : job)
        for (auto const& variable : variables)
            for (auto const& extent : variable.extents)
                if (extent.length > 0) begin = std::min(begin, extent.offset);
    return begin;
}

void apply(Bytes& image, std::int64_t base, Declared const& variable, Bytes const& data)
{
    auto from = data.begin();
    for (auto const& [offset, length] : variable.extents) {
        if (length == 0) continue;
        auto const end = static_cast<std::size_t>(base + offset + length);
        if (image.size() < end) image.resize(end);
        std::copy_n(from, length, image.begin() + base + offset);
        from += length;
    }
}

Bytes gather(Bytes const& image, std::int64_t base, Declared const& variable, std::byte filler, std::uint64_t& received)
{
    Bytes data;
    received = 0;
    for (auto const& [offset, length] : variable.extents)
        for (auto at = base + offset; at < base + offset + length; ++at) {
            bool const there = at < static_cast<std::int64_t>(image.size());
            data.push_back(there ? image[static_cast<std::size_t>(at)] : filler);
            received += there ? 1 : 0;
        }
    return data;
}

Job deal(Random& random, int ranks, Deal const& how)
{
    Job job(static_cast<std::size_t>(ranks), std::vector<Declared>(static_cast<std::size_t>(how.variables)));
    std::vector<std::int64_t> cuts{0, how.range};
    for (int i = 1; i < how.pieces; ++i) cuts.push_back(random.pick(0, how.range));
    std::sort(cuts.begin(), cuts.end());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        auto const rank = random.pick(0, ranks - 1);
        auto const variable = random.pick(0, how.variables - 1);
        if (random.chance(how.hole_percent) || rank == how.idle_rank) continue;
        job[static_cast<std::size_t>(rank)][static_cast<std::size_t>(variable)].extents.push_back(
            {how.begin + cuts[i], cuts[i + 1] - cuts[i]});
    }
    for (auto& variables : job) {
        if (how.own_overlap) {  // more of what the rank already has, in any of its variables
            std::vector<Extent> own;
            for (auto const& variable : variables)
                own.insert(own.end(), variable.extents.begin(), variable.extents.end());
            for (int i = 0; i < 4 && !own.empty(); ++i) {
                auto const [offset, length] = random.one_of(own);
                auto const skip = random.pick(0, length);
                variables[static_cast<std::size_t>(random.pick(0, how.variables - 1))].extents.push_back(
                    {offset + skip, random.pick(0, length - skip)});
            }
        }
        if (how.unsorted)
            for (auto& variable : variables) random.shuffle(variable.extents);
    }
    return job;
}

Job interleave(int ranks, std::int64_t begin, std::int64_t block, int blocks_per_rank)
{
    Job job(static_cast<std::size_t>(ranks), std::vector<Declared>(1));
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(blocks_per_rank) * ranks; ++i)
        job[static_cast<std::size_t>(i % ranks)][0].extents.push_back({begin + i * block, block});
    return job;
}

std::vector<Extent> expand(Subarray const& array)
{
    std::vector<Extent> extents;
    if (std::find(array.count.begin(), array.count.end(), 0) != array.count.end()) return extents;
    std::vector<std::int64_t> index(array.shape.size(), 0);
    for (;;) {
        std::int64_t element = 0;
        for (std::size_t d = 0; d < index.size(); ++d) {
            auto const stride = array.stride.empty() ? 1 : array.stride[d];
            element = element * array.shape[d] + array.start[d] + index[d] * stride;
        }
        extents.push_back({array.file_offset + element * array.element_size, array.element_size});
        auto d = index.size();
        while (d > 0 && ++index[d - 1] == array.count[d - 1]) index[--d] = 0;
        if (d == 0) return extents;
    }
}

Job decompose(Random& random, int ranks, std::int64_t file_offset)
{
    auto const dimensions = static_cast<std::size_t>(random.pick(1, 4));
    std::int64_t const most[] = {4000, 60, 16, 9};
    std::vector<std::int64_t> shape;
    for (std::size_t d = 0; d < dimensions; ++d) shape.push_back(random.pick(1, most[dimensions - 1]));
    auto const element_size = random.pick(1, 9);
    bool const blocks = random.chance(50);
    auto const dealt = static_cast<std::size_t>(random.pick(0, static_cast<std::int64_t>(dimensions) - 1));
    std::vector<std::int64_t> steps(dimensions, 1);  // some dimensions skip elements, the same for all ranks
    for (std::size_t d = 0; d < dimensions; ++d)
        if (d != dealt && random.chance(30)) steps[d] = random.pick(1, 3);

    Job job(static_cast<std::size_t>(ranks), std::vector<Declared>(1));
    for (int rank = 0; rank < ranks; ++rank) {
        auto array = block_of({shape, {}, ranks, rank, element_size, file_offset});
        if (!blocks) {
            array.stride = steps;
            for (std::size_t d = 0; d < dimensions; ++d) {
                auto const start = d == dealt ? rank : 0;
                array.stride[d] = d == dealt ? ranks : steps[d];
                array.start[d] = start;
                array.count[d] = start < shape[d] ? (shape[d] - 1 - start) / array.stride[d] + 1 : 0;
            }
        }
        job[static_cast<std::size_t>(rank)][0] = {expand(array), array};
    }
    return job;
}

Job random_job(Random& random, int ranks)
{
    auto const begin = random.pick(0, 2) * random.pick(0, 9000);
    switch (random.pick(0, 4)) {
    case 0: return decompose(random, ranks, begin);
    case 1: return interleave(ranks, begin, random.pick(1, 700), static_cast<int>(random.pick(1, 120)));
    default: break;
    }
    Deal how;
    how.begin = begin;
    how.range = random.one_of<std::int64_t>({1, 100, 5'000, 60'000, 300'000});
    how.pieces = static_cast<int>(random.one_of<std::int64_t>({1, 20, 200, 600}));
    how.variables = static_cast<int>(random.pick(1, 4));
    how.hole_percent = random.one_of<int>({0, 0, 10, 50, 100});
    how.unsorted = random.chance(40);
    how.own_overlap = random.chance(30);
    how.idle_rank = static_cast<int>(random.pick(-1, ranks - 1));
    return deal(random, ranks, how);
}

}  // namespace tapioca::test
