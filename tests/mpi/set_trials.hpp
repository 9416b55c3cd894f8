// What property tests of sets of subfiles share: openings that write random patterns with random settings, and read
// some of them again, compared with an image of the file that every rank has.
#pragma once

#include <string>
#include <vector>

#include "support/mpi_test.hpp"
#include "support/random_patterns.hpp"
#include "support/scattered.hpp"

namespace tapioca::test {

inline constexpr std::byte filler{0xA5};

/// Some configuration; the same on all ranks.
inline Options random_options(Random& random)
{
    Options options;
    if (random.chance(40)) options.buffersize = 4096;
    options.direct = random.one_of<Direct>({Direct::automatic, Direct::never, Direct::always});
    if (random.chance(15)) options.check = true;
    if (random.chance(25)) options.stage = "dram";
    return options;
}

/// A communicator of the first `count` ranks; null on the others.
inline MPI_Comm first_ranks(int count)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank() < count ? 0 : MPI_UNDEFINED, rank(), &comm);
    return comm;
}

inline void finish(Step& step, bool in_background)
{
    if (!in_background) {
        step.finish();
        return;
    }
    step.start();
    step.progress();
    step.wait();
}

/// Writes a job's data with an open step, and the same to the image, which all ranks have.
inline void write_both(Step& step, Job const& job, std::int64_t base, std::uint64_t seed, int run, bool in_background,
                       Bytes& image)
{
    auto const me = static_cast<std::size_t>(rank());
    std::vector<Bytes> mine;
    for (std::size_t v = 0; v < job[me].size(); ++v) mine.push_back(data_of(seed, run, me, v, job[me][v].bytes()));
    Random random(seed * 31 + me * 7 + static_cast<std::uint64_t>(run));
    std::vector<ScatteredMemory> scattered;
    scattered.reserve(mine.size());
    for (std::size_t v = 0; v < mine.size(); ++v) {
        if (random.chance(30))
            step.write(v, scattered.emplace_back(random, job[me][v], mine[v]).section());
        else
            step.write(v, mine[v]);
    }
    step.rebase(base);
    finish(step, in_background);
    for (std::size_t r = 0; r < job.size(); ++r)
        for (std::size_t v = 0; v < job[r].size(); ++v)
            apply(image, base, job[r][v], data_of(seed, run, r, v, job[r][v].bytes()));
}

/// Reads a job through an open file and compares it with the image.
inline void read_and_compare(File& file, std::vector<Declared> const& declared, std::int64_t base, Bytes const& image)
{
    auto step = file.declare(pattern_of(declared));
    std::vector<Bytes> mine;
    for (auto const& variable : declared) mine.emplace_back(static_cast<std::size_t>(variable.bytes()), filler);
    for (std::size_t v = 0; v < mine.size(); ++v) step.read(v, mine[v]);
    step.rebase(base);
    step.finish();
    for (std::size_t v = 0; v < mine.size(); ++v) {
        std::uint64_t received = 0;
        EXPECT_TRUE(mine[v] == gather(image, base, declared[v], filler, received)) << "variable " << v;
        EXPECT_EQ(step.received(v), received) << "variable " << v;
    }
}

/// What was written, and may be read again as it was written, even if other jobs have come over it.
struct Written {
    Job job;
    std::int64_t base;
};

/// One opening of the file that writes jobs, some of them again, and reads some in between.
inline void opening(Random& random, std::string const& path, bool create, Options const& options, std::uint64_t seed,
                    Bytes& image, std::vector<Written>& written)
{
    auto file = File::open(MPI_COMM_WORLD, path, create ? Mode::create : Mode::update, options);
    if (create) image.clear();
    if (create) written.clear();
    int run = 0;
    for (auto jobs = random.pick(1, 3); jobs > 0; --jobs) {
        auto const job = random_job(random, ranks());
        auto step = file.declare(pattern_of(job[static_cast<std::size_t>(rank())]));
        auto const base = random.one_of<std::int64_t>({0, 0, random.pick(0, 20'000), random.pick(-begin_of(job), 0)});
        for (auto times = random.pick(1, 3); times > 0; --times) {
            auto const here = base + (random.chance(50) ? 0 : random.pick(0, 3) * end_of(job));
            write_both(step, job, here, seed, run++, random.chance(30), image);
            written.push_back({job, here});
            if (random.chance(25)) file.sync();
            if (random.chance(15)) file.drain();
            if (random.chance(40)) {
                auto const again = random.chance(60) ? random.one_of(written) : Written{random_job(random, ranks()), 0};
                read_and_compare(file, again.job[static_cast<std::size_t>(rank())], again.base, image);
            }
            EXPECT_EQ(file.size(), image.size());
        }
    }
    file.close();
}

}  // namespace tapioca::test
