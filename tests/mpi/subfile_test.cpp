// Files that consist of subfiles: random patterns, written with random layouts by several openings, are the same file
// as plain writes make, whoever reads it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "set_trials.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

std::string random_layout(Random& random)
{
    std::vector<std::string> layouts = {"node", "nodes:2", "files:1", "switch", "off"};
    if (ranks() > 1) layouts.push_back("files:2");
    if (ranks() > 2) layouts.push_back("files:3");
    return random.one_of(layouts);
}

Options with_layout(Random& random, std::string const& layout)
{
    auto options = random_options(random);
    options.subfile = layout;
    return options;
}

/// The whole file, as one process finds it.
Bytes whole(std::string const& path)
{
    auto file = File::open(MPI_COMM_SELF, path, Mode::read);
    Bytes bytes(file.size());
    Pattern pattern;
    auto const all = pattern.add({{0, static_cast<std::int64_t>(bytes.size())}});
    auto step = file.declare(pattern);
    if (!bytes.empty()) step.read(all, bytes);
    step.finish();
    file.close();
    return bytes;
}

bool is_set(std::string const& path)
{
    std::string beginning(40, '\0');
    std::ifstream file(path);
    return file.read(beginning.data(), 40) && beginning.substr(9).starts_with("TAPIOCA subfile set");
}

void trial(Scratch const& scratch, std::uint64_t seed)
{
    Random random(seed);
    auto const path = scratch.path("a");
    Bytes image;
    std::vector<Written> written;
    auto const layout = random_layout(random);
    opening(random, path, true, with_layout(random, layout), seed, image, written);
    EXPECT_EQ(is_set(path), layout != "off");
    for (auto more = random.pick(0, 2); more > 0; --more)
        opening(random, path, random.chance(15), with_layout(random, random_layout(random)),
                seed + static_cast<std::uint64_t>(more), image, written);
    barrier();
    if (rank() == 0) {
        EXPECT_TRUE(whole(path) == image);
    }
    // By other numbers of ranks.
    auto const readers = static_cast<int>(random.pick(1, ranks()));
    auto comm = first_ranks(readers);
    auto const job = random_job(random, readers);
    auto const options = random_options(random);
    if (comm != MPI_COMM_NULL) {
        auto file = File::open(comm, path, Mode::read, options);
        read_and_compare(file, job[static_cast<std::size_t>(rank())], 0, image);
        file.close();
        MPI_Comm_free(&comm);
    }
    barrier();
}

/// Writes a file of one number for each rank.
void write_numbers(std::string const& path, int first)
{
    Options options;
    options.subfile = "files:2";
    auto file = File::open(MPI_COMM_WORLD, path, Mode::create, options);
    Pattern pattern;
    auto const mine = pattern.add({{rank() * 4, 4}});
    auto step = file.declare(pattern);
    std::vector<int> const number = {first + rank()};
    step.write(mine, std::as_bytes(std::span(number)));
    step.finish();
    file.close();
    barrier();
}

std::vector<int> numbers_in(std::string const& path)
{
    auto const bytes = whole(path);
    std::vector<int> numbers(bytes.size() / sizeof(int));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
}

/// Two switches, blocks, and gateways of two nodes each, or nothing of the kind.
std::string machine_of(std::string const& topology)
{
    return "[node]\ncores = 1\n[topology]\n" + topology +
           "[[tier]]\nname = \"dram\"\nlatency = \"100ns\"\nbandwidth = \"10GB/s\"\ncapacity = \"1GiB\"\n";
}

TEST(Subfile, GroupsAreThoseOfTheMachine)
{
    if (ranks() == 1) GTEST_SKIP() << "needs several nodes";
    Scratch const scratch;
    auto const path = scratch.path("a");
    auto const platform = scratch.path("machine.toml");
    auto const* const wish = std::getenv("TAPIOCA_RANKS_PER_NODE");
    auto const nodes = (ranks() - 1) / (wish ? std::atoi(wish) : 1) + 1;
    std::string const gateways = "[gateways]\nblock = 2\nper_block = [0]\n";
    MPI_Comm comm = MPI_COMM_NULL;  // another one for each machine, since it keeps the first that it has seen
    auto const describe = [&](std::string const& text) {
        if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (rank() == 0) std::ofstream(platform) << text;
        barrier();
    };
    Options options;
    options.platform = platform;
    if (!wish) options.ranks_per_node = 1;
    auto const subfiles = [&](char const* layout) {
        options.subfile = layout;
        auto file = File::open(comm, path, Mode::create, options);
        Pattern pattern;
        pattern.add({{rank() * 4, 4}});
        auto step = file.declare(pattern);
        std::vector<int> const number = {rank()};
        step.write(0, std::as_bytes(std::span(number)));
        step.finish();
        file.close();
        barrier();
        auto const found = std::count_if(
            fs::directory_iterator(path + ".subfiles"), {},
            [](fs::directory_entry const& entry) { return entry.path().filename().string().starts_with("subfile."); });
        barrier();
        return static_cast<int>(found);
    };
    auto const pairs = (nodes + 1) / 2;
    describe(machine_of("kind = \"fat_tree\"\narity = [2, 4]\n") + gateways);
    for (auto const* const layout : {"switch", "pset", "gateway", "nodes:2"})
        EXPECT_EQ(subfiles(layout), pairs) << layout;
    describe(machine_of("kind = \"dragonfly\"\ngroups = 2\nrows = 1\ncolumns = 2\nnodes_per_router = 2\n"));
    EXPECT_EQ(subfiles("switch"), pairs);
    describe(machine_of("kind = \"flat\"\nnodes = 8\n"));
    EXPECT_EQ(subfiles("switch"), 1);
    for (auto const& [layout, lack] : {std::pair("pset", "which nodes form a block with its own gateways"),
                                       std::pair("gateway", "which gateway a node uses")}) {
        auto const error = same_error_on_all_ranks([&, layout = layout] { (void)subfiles(layout); });
        EXPECT_EQ(error.code, Errc::setting);
        expect_parts(error.text, {std::string("subfile=") + layout, "it is not known", lack, "machine.toml"});
    }
    describe(machine_of("kind = \"torus\"\ndimensions = [2, 4]\n"));
    auto const error = same_error_on_all_ranks([&] { (void)subfiles("switch"); });
    expect_parts(error.text, {"subfile=switch", "it is not known which nodes are below one switch", "choose node"});
    MPI_Comm_free(&comm);
}

TEST(Subfile, OfAStubThatWasRenamedAreKept)
{
    Scratch const scratch;
    auto const path = scratch.path("a");
    auto const at_rank_0 = [&](auto const& action) {
        if (rank() == 0) action();
        barrier();
    };
    write_numbers(path, 100);
    at_rank_0([&] { fs::rename(path, scratch.path("b")); });
    write_numbers(path, 200);
    write_numbers(path, 300);  // over it
    at_rank_0([&] { fs::create_symlink(path, scratch.path("link")); });
    EXPECT_EQ(numbers_in(scratch.path("b")).front(), 100);
    EXPECT_EQ(numbers_in(path).front(), 300);
    EXPECT_EQ(numbers_in(scratch.path("link")).front(), 300);
    barrier();
    write_numbers(scratch.path("link"), 400);
    EXPECT_EQ(numbers_in(path).front(), 400);
    barrier();
    // Without its stub, what a set has left makes room.
    auto const sets = [&] {
        return std::count_if(fs::directory_iterator(scratch.path("")), {},
                             [](auto const& entry) { return entry.is_directory(); });
    };
    EXPECT_EQ(sets(), 2);
    barrier();
    at_rank_0([&] { fs::remove(path); });
    write_numbers(path, 500);
    EXPECT_EQ(sets(), 2);
    EXPECT_EQ(numbers_in(scratch.path("b")).front(), 100);
    barrier();
}

TEST(Subfile, FilesEqualPlainWritesWhoeverReadsThem)
{
    Scratch const scratch;
    auto const* const wish = std::getenv("PATTERNS");
    int const patterns = wish ? std::atoi(wish) : ranks() >= 4 ? 120 : 200;
    int tried = 0;
    for (std::uint64_t seed = 1; tried < patterns; ++tried, ++seed) {
        trial(scratch, 1'000'000 * static_cast<std::uint64_t>(ranks()) + seed);
        if (on_all_ranks(!HasFailure())) continue;
        if (rank() == 0) std::printf("failing seed: %llu\n", static_cast<unsigned long long>(seed));
        break;
    }
    if (rank() == 0) std::printf("patterns tried: %d\n", tried);
}

}  // namespace
}  // namespace tapioca::test
