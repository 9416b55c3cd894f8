// Files whose data stays on a tier of the nodes: random patterns, written by several openings, are the same file as
// plain writes make for all readers that have a rank on each of these nodes.
#include <cstdio>
#include <filesystem>

#include <unistd.h>

#include "node_directories.hpp"
#include "set_trials.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

Options on_tier(Random& random)
{
    auto options = random_options(random);
    options.target = own_directory;
    options.target_drain =
        random.one_of<TargetDrain>({TargetDrain::never, TargetDrain::close, TargetDrain::background});
    if (random.chance(50)) options.target_size = random.one_of<std::uint64_t>({1, 10'000, 200'000});
    options.target_through = random.one_of<std::uint64_t>({0, 0, 2000});
    if (nodes() > 1) options.ranks_per_node = ranks_per_node();
    if (place_on_hosts()) return options;
    if (random.chance(30)) options.subfile = "files:" + std::to_string(nodes() + static_cast<int>(random.pick(1, 3)));
    if (options.subfile && ranks() % nodes() != 0) options.subfile.reset();  // groups might span nodes
    if (options.subfile && nodes() > 1 && std::atoi(options.subfile->c_str() + 6) % nodes() != 0)
        options.subfile = "files:" + std::to_string(ranks());
    return options;
}

/// `found`: grows by the number of subfiles that this node then has.
void trial(Scratch const& scratch, NodeDirectories const& directories, std::uint64_t seed, std::size_t& found)
{
    Random random(seed);
    auto const path = scratch.path("a");
    Bytes image;
    std::vector<Written> written;
    opening(random, path, true, on_tier(random), seed, image, written);
    for (auto more = random.pick(0, 2); more > 0; --more)
        opening(random, path, random.chance(15), on_tier(random), seed + static_cast<std::uint64_t>(more), image,
                written);
    EXPECT_LE(directories.sets(), 1) << "what was replaced is removed";
    found += directories.subfiles();
    // By other ranks: at least one of each node, in another order.
    bool const reads = place_on_hosts() || rank() % ranks_per_node() == 0 || random.chance(50);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, reads ? 0 : MPI_UNDEFINED, -rank(), &comm);
    if (comm == MPI_COMM_NULL) return barrier();
    auto const readers = [&] {
        int size = 0;
        MPI_Comm_size(comm, &size);
        return size;
    }();
    int me = 0;
    MPI_Comm_rank(comm, &me);
    Random same(seed + 17);
    auto const job = random_job(same, readers);
    {
        Options options;
        if (!place_on_hosts())
            options.ranks_per_node = 1;  // every reader is a node by itself, which sees the directory of its own node
        auto file = File::open(comm, path, Mode::read, options);
        read_and_compare(file, job[static_cast<std::size_t>(me)], 0, image);
        file.close();
    }
    MPI_Comm_free(&comm);
    barrier();
}

TEST(Target, FilesEqualPlainWritesWhoeverReadsThem)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const* const wish = std::getenv("PATTERNS");
    int const patterns = wish ? std::atoi(wish) : ranks() > 1 ? 25 : 40;
    int tried = 0;
    std::size_t found = 0;
    for (std::uint64_t seed = 1; tried < patterns; ++tried, ++seed) {
        trial(scratch, directories, 2'000'000 * static_cast<std::uint64_t>(ranks()) + seed, found);
        if (on_all_ranks(!HasFailure())) continue;
        if (rank() == 0) std::printf("failing seed: %llu\n", static_cast<unsigned long long>(seed));
        break;
    }
    EXPECT_GE(found, static_cast<std::size_t>(tried / 4));
    if (rank() == 0) std::printf("patterns tried: %d\n", tried);
    barrier();
}

/// Writes steps of 100,000 bytes of every rank, one after the other, and calls `between(file)` after each.
template <class Between>
void write_steps(std::string const& path, Options options, int steps, Between const& between)
{
    options.target = own_directory;
    if (nodes() > 1 && !place_on_hosts()) options.ranks_per_node = ranks_per_node();
    auto file = File::open(MPI_COMM_WORLD, path, Mode::create, options);
    Pattern pattern;
    constexpr std::int64_t bytes = 100'000;
    auto const mine = pattern.add({{rank() * bytes, bytes}});
    auto step = file.declare(pattern);
    for (int t = 0; t < steps; ++t) {
        Bytes const data(bytes, static_cast<std::byte>(10 * t + rank()));
        step.rebase(t * ranks() * bytes);
        step.write(mine, data);
        step.finish();
        between(file);
    }
    file.close();
    barrier();
}

void expect_steps(std::string const& path, int steps)
{
    constexpr std::size_t bytes = 100'000;
    Options options;
    if (nodes() > 1 && !place_on_hosts()) options.ranks_per_node = ranks_per_node();
    auto file = File::open(MPI_COMM_WORLD, path, Mode::read, options);
    EXPECT_EQ(file.size(), static_cast<std::uint64_t>(steps) * bytes * static_cast<std::uint64_t>(ranks()));
    Bytes all(file.size());
    Pattern pattern;
    auto const whole = pattern.add({{0, static_cast<std::int64_t>(all.size())}});
    auto step = file.declare(pattern);
    step.read(whole, all);
    step.finish();
    file.close();
    for (std::size_t i = 0; i < all.size(); i += bytes / 4)
        EXPECT_EQ(static_cast<int>(all[i]), static_cast<int>(10 * (i / bytes / static_cast<std::size_t>(ranks())) +
                                                             i / bytes % static_cast<std::size_t>(ranks())));
    barrier();
}

/// Of the set at this path, in its directory beside the stub.
std::size_t drained_subfiles(std::string const& path)
{
    std::size_t count = 0;
    for (auto const& entry : fs::directory_iterator(path + ".subfiles"))
        if (entry.path().filename().string().starts_with("subfile.")) ++count;
    return count;
}

TEST(Target, IsDrainedWhileTheProgramComputes)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const path = scratch.path("a");
    Options options;
    options.target_drain = TargetDrain::background;
    options.target_size = 400'000;  // half of it is enough to be drained
    std::size_t seen = 0;
    write_steps(path, options, 12, [&](File&) {
        ::usleep(20'000);
        seen = std::max(seen, drained_subfiles(path));
    });
    EXPECT_GT(seen, 0U) << "before the file was closed";
    EXPECT_EQ(directories.subfiles(), 0U);
    EXPECT_GE(drained_subfiles(path), static_cast<std::size_t>(nodes()));
    expect_steps(path, 12);
}

TEST(Target, GoesOnInTheFileSystemIfTheTierIsFull)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const path = scratch.path("a");
    Options options;
    options.target_drain = TargetDrain::background;
    options.target_size = 1;  // nothing fits
    std::size_t least = SIZE_MAX;
    write_steps(path, options, 3, [&](File&) {
        barrier();
        least = std::min(least, drained_subfiles(path));
    });
    EXPECT_GE(least, static_cast<std::size_t>(nodes())) << "from the first step on";
    EXPECT_EQ(directories.subfiles(), 0U);
    expect_steps(path, 3);
}

TEST(Target, IsDrainedByACall)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const path = scratch.path("a");
    for (auto const when : {TargetDrain::never, TargetDrain::close, TargetDrain::background}) {
        Options options;
        options.target_drain = when;
        int steps = 0;
        write_steps(path, options, 4, [&](File& file) {
            if (++steps == 4) return;  // what is not drained yet when the file is closed
            file.drain();
            barrier();
            EXPECT_EQ(directories.subfiles(), 0U) << "after step " << steps;
            EXPECT_GE(drained_subfiles(path), static_cast<std::size_t>(nodes() * steps));
            file.drain();  // there is nothing left to do
            barrier();
        });
        EXPECT_EQ(directories.subfiles(), when == TargetDrain::never ? 1U : 0U);
        expect_steps(path, 4);
    }
}

/// Those who open the file again can also drain what was there before, and what they write over.
TEST(Target, OfEarlierOpeningsIsDrainedByACall)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const path = scratch.path("a");
    write_steps(path, {}, 2, [](File&) {});
    EXPECT_EQ(directories.subfiles(), 1U);
    {
        Options options;
        if (nodes() > 1 && !place_on_hosts()) options.ranks_per_node = ranks_per_node();
        auto file = File::open(MPI_COMM_WORLD, path, Mode::update, options);
        file.drain();
        barrier();
        EXPECT_EQ(directories.subfiles(), 0U);
        expect_steps(path, 2);
        file.close();
    }
    EXPECT_EQ(directories.sets(), 0) << "the directory on the tier is removed, too";
    expect_steps(path, 2);
}

}  // namespace
}  // namespace tapioca::test
