// Random patterns in random configurations: the file equals the result of plain writes of the same data, and reading it
// in another configuration returns the same bytes.
#include <cstdio>
#include <cstdlib>

#include "support/mpi_test.hpp"
#include "support/random_patterns.hpp"
#include "support/scattered.hpp"

namespace tapioca::test {
namespace {

constexpr std::byte filler{0xA5};

Options random_options(Random& random)
{
    Options options;
    auto const size = random.one_of<std::uint64_t>({0, 4096, 4096, 8192, 65536});
    if (size > 0) options.buffersize = size;
    if (random.chance(80)) options.buffers = static_cast<int>(random.pick(1, 4));
    auto const aggregators = random.one_of<int>({0, 1, 2, ranks()});
    if (aggregators > 0) options.nbaggr = aggregators;
    options.direct = random.one_of<Direct>({Direct::automatic, Direct::never, Direct::never, Direct::always});
    if (random.chance(10)) options.check = true;
    return options;
}

void move(Step& step, bool in_background)
{
    if (!in_background) {
        step.finish();
        return;
    }
    step.start();
    step.progress();
    step.wait();
}

/// Runs `step` with new data and does the same to the image.
void write_both(Step& step, Job const& job, std::int64_t base, std::uint64_t seed, int run, bool in_background,
                Bytes& image)
{
    auto const me = static_cast<std::size_t>(rank());
    std::vector<Bytes> mine;
    for (std::size_t v = 0; v < job[me].size(); ++v) mine.push_back(data_of(seed, run, me, v, job[me][v].bytes()));
    // Some variables lie scattered in memory, on each rank others.
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
    move(step, in_background);
    for (auto const& memory : scattered) EXPECT_TRUE(memory.gaps_are_untouched());
    if (me != 0) return;
    for (std::size_t r = 0; r < job.size(); ++r)
        for (std::size_t v = 0; v < job[r].size(); ++v)
            apply(image, base, job[r][v], data_of(seed, run, r, v, job[r][v].bytes()));
}

/// Reads `job` from `path` and compares with the file as it is.
void read_and_compare(std::string const& path, Job const& job, std::int64_t base, Options const& options,
                      bool in_background)
{
    auto const image = contents(path);
    auto file = File::open(MPI_COMM_WORLD, path, Mode::read, options);
    auto const& declared = job[static_cast<std::size_t>(rank())];
    auto step = file.declare(pattern_of(declared));
    std::vector<Bytes> mine;
    for (auto const& variable : declared) mine.emplace_back(static_cast<std::size_t>(variable.bytes()), filler);
    Random random(static_cast<std::uint64_t>(base + rank()) + image.size());
    std::vector<ScatteredMemory> scattered;
    scattered.reserve(mine.size());
    std::vector<bool> scatters;
    for (std::size_t v = 0; v < mine.size(); ++v) {
        scatters.push_back(random.chance(30));
        if (scatters[v])
            step.read(v, scattered.emplace_back(random, declared[v], mine[v]).section());
        else
            step.read(v, mine[v]);
    }
    step.rebase(base);
    move(step, in_background);
    for (std::size_t v = 0, next = 0; v < mine.size(); ++v) {
        if (!scatters[v]) continue;
        mine[v] = scattered[next].packed();
        EXPECT_TRUE(scattered[next++].gaps_are_untouched()) << "variable " << v;
    }
    for (std::size_t v = 0; v < mine.size(); ++v) {
        std::uint64_t received = 0;
        EXPECT_TRUE(mine[v] == gather(image, base, declared[v], filler, received)) << "variable " << v;
        EXPECT_EQ(step.received(v), received) << "variable " << v;
    }
    file.close();
}

/// True if the step went through windows.
bool trial(Scratch const& scratch, std::uint64_t seed)
{
    Random random(seed);
    auto const job = random_job(random, ranks());
    auto const base = random.one_of<std::int64_t>({0, 0, random.pick(0, 20'000), 4096, random.pick(-begin_of(job), 0)});
    auto const path = scratch.path("a");
    auto const second_path = scratch.path("b");
    auto const before = random.pick(0, end_of(job) + base + 5000) * random.pick(0, 1);
    Bytes image = stream(seed, static_cast<std::size_t>(before));
    Bytes second_image = stream(seed + 1, 1000);
    if (rank() == 0) {
        write_plain(path, image);
        write_plain(second_path, second_image);
    }
    barrier();
    bool const create = random.chance(20);
    if (create) image.clear();
    bool const in_background = random.chance(30);
    bool const retarget = random.chance(30);
    auto const options = random_options(random);
    auto const other_base = random.pick(0, 7000);

    auto file = File::open(MPI_COMM_WORLD, path, create ? Mode::create : Mode::update, options);
    auto step = file.declare(pattern_of(job[static_cast<std::size_t>(rank())]));
    write_both(step, job, base, seed, 0, in_background, image);
    if (retarget) {
        auto second = File::open(MPI_COMM_WORLD, second_path, Mode::update, options);
        step.retarget(second);
        write_both(step, job, other_base, seed, 1, !in_background, second_image);
        second.close();
        step.retarget(file);
        write_both(step, job, base, seed, 2, in_background, image);
    }
    expect_windows(step);
    bool const one_sided = step.plan().json().find(R"("transport":"rma")") != std::string::npos;
    file.close();
    if (rank() == 0) {
        EXPECT_TRUE(contents(path) == image);
        EXPECT_TRUE(contents(second_path) == second_image);
    }
    barrier();

    bool const same_job = random.chance(50);
    auto const other_job = random_job(random, ranks());
    read_and_compare(path, same_job ? job : other_job, same_job ? base : 0, random_options(random), random.chance(30));
    return one_sided;
}

TEST(Property, FilesEqualPlainWritesAndReadBackTheSame)
{
    Scratch const scratch;
    // PATTERNS=50000 makes a soak test of it.
    auto const* const wish = std::getenv("PATTERNS");
    int const patterns = wish ? std::atoi(wish) : ranks() == 8 ? 300 : ranks() >= 4 ? 600 : 900;
    int tried = 0;
    int one_sided = 0;
    for (std::uint64_t seed = 1; tried < patterns; ++tried, ++seed) {
        one_sided += trial(scratch, 1'000'000 * static_cast<std::uint64_t>(ranks()) + seed) ? 1 : 0;
        if (on_all_ranks(!HasFailure())) continue;
        if (rank() == 0) std::printf("failing seed: %llu\n", static_cast<unsigned long long>(seed));
        break;
    }
    if (rank() == 0) std::printf("patterns tried: %d, through windows: %d\n", tried, one_sided);
    EXPECT_EQ(one_sided > 0, windows_asked_for());
}

}  // namespace
}  // namespace tapioca::test
