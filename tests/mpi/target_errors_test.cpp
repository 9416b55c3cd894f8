// What users do wrong with files whose data stays on a tier of the nodes, and what becomes of nodes: each is one clear
// line on all ranks, nothing is left on the tier, and what is still there can be read.
#include <fstream>
#include <memory>

#include <sys/stat.h>
#include <unistd.h>

#include "node_directories.hpp"
#include "subfile/recover.hpp"
#include "support/faults.hpp"
#include "support/small_file_system.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t each = 100'000;  ///< bytes of a rank

Options as_nodes()
{
    Options options;
    if (nodes() > 1) options.ranks_per_node = ranks_per_node();
    return options;
}

Options on_tier()
{
    auto options = as_nodes();
    options.target = own_directory;
    options.target_through = 0;
    return options;
}

/// A rank's part is at its rank in the file.
Pattern part_of(int number)
{
    Pattern pattern;
    pattern.add({{number * each, each}});
    return pattern;
}

std::vector<std::byte> part(int number)
{
    return stream(static_cast<std::uint64_t>(number) + 1, static_cast<std::size_t>(each));
}

void write(File& file, int number = rank())
{
    auto step = file.declare(part_of(number));
    auto const data = part(number);
    step.write(0, data);
    step.finish();
}

void write_file(std::string const& path, Options const& options = on_tier(), Mode mode = Mode::create)
{
    auto file = File::open(MPI_COMM_WORLD, path, mode, options);
    write(file);
    file.close();
}

/// Ranks of which each is a node by itself, which sees the directory of its own node.
class Readers {
public:
    /// Those of a rank that does not take part are none.
    explicit Readers(bool takes_part = true)
    {
        MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, rank(), &comm_);
    }
    Readers(Readers const&) = delete;
    Readers& operator=(Readers const&) = delete;
    ~Readers()
    {
        if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
        barrier();
    }
    [[nodiscard]] File open(std::string const& path, Mode mode = Mode::read) const
    {
        Options options;
        options.ranks_per_node = 1;
        return File::open(comm_, path, mode, options);
    }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

void expect_part(File& file, int number)
{
    std::vector<std::byte> back(static_cast<std::size_t>(each));
    auto step = file.declare(part_of(number));
    step.read(0, back);
    step.finish();
    EXPECT_TRUE(back == part(number)) << "part " << number;
}

void read_other(File& file)
{
    std::vector<std::byte> back(static_cast<std::size_t>(each));
    auto step = file.declare(part_of((rank() + 1) % ranks()));
    step.read(0, back);
    step.finish();
}

/// By ranks that want what others have written.
void expect_readable(std::string const& path)
{
    Readers const readers;
    auto file = readers.open(path);
    expect_part(file, (rank() + 1) % ranks());
    file.close();
}

Caught create_error(std::string const& path, Options const& options)
{
    return same_error_on_all_ranks([&] { (void)File::open(MPI_COMM_WORLD, path, Mode::create, options); });
}

/// The directory of the one set that this node has.
fs::path place_here()
{
    for (auto const& entry : fs::directory_iterator(fs::current_path())) return entry.path();
    return {};
}

bool is_first_of_node()
{
    return rank() % ranks_per_node() == 0;
}

TEST(TargetSettings, ThatCannotBeAreOneLine)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const path = scratch.path("a");
    auto options = on_tier();
    options.target = "tape:/somewhere";
    auto error = create_error(path, options);
    EXPECT_EQ(error.code, Errc::setting);
    expect_parts(error.text, {"open: rank 0: ", "target=tape:/somewhere", "tape"});
    options.target = "dram";
    error = create_error(path, options);
    EXPECT_EQ(error.code, Errc::setting);
    expect_parts(error.text, {"target=dram", "this tier has persistency none", "job is asked for", "ssd:/dir",
                              "TAPIOCA_PERSISTENCY"});
    options = on_tier();
    options.target = "ssd:/" + std::string(300, 'x');
    error = create_error(path, options);
    EXPECT_EQ(error.code, Errc::setting);
    expect_parts(error.text, {"the name is too long"});
    if (nodes() > 1) {
        options = on_tier();
        options.subfile = "nodes:2";
        error = create_error(path, options);
        EXPECT_EQ(error.code, Errc::setting);
        expect_parts(error.text, {"subfile=nodes:2", "a subfile on a tier lies on one node", "choose node"});
    }
    EXPECT_EQ(directories.sets(), 0);
    expect_next_file_works(scratch, as_nodes());
}

TEST(TargetSettings, MemoryWillDoIfNothingIsToBeKept)
{
    Scratch const scratch;
    auto options = on_tier();
    options.target = "dram";
    options.persistency = Persistency::none;
    options.target_drain = TargetDrain::close;
    write_file(scratch.path("a"), options);
    expect_readable(scratch.path("a"));
}

TEST(TargetDirectory, ThatOneNodeLacksIsNamedWithItsHost)
{
    if (nodes() < 2) GTEST_SKIP() << "needs several nodes";
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    if (my_node() == 0 && is_first_of_node()) fs::create_directory("tier");
    barrier();
    auto options = on_tier();
    options.target = std::string(own_directory) + "/tier";
    auto const error = create_error(scratch.path("a"), options);
    EXPECT_EQ(error.code, Errc::not_found);
    EXPECT_EQ(error.rank, ranks_per_node());
    expect_parts(error.text, {own_directory, "/tier", "No such file or directory"});
    EXPECT_TRUE(my_node() != 0 || fs::is_empty("tier")) << "what node 0 had made is removed";
    EXPECT_FALSE(fs::exists(scratch.path("a")));
    expect_next_file_works(scratch, as_nodes());
}

TEST(TargetDirectory, ThatCannotBeWrittenIsNamed)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto options = on_tier();
    options.target = "ssd:/proc";  // where not even root makes a directory
    auto const error = create_error(scratch.path("a"), options);
    EXPECT_NE(error.code, Errc::ok);
    expect_parts(error.text, {"open: rank 0: ", "/proc"});
    barrier();
    EXPECT_FALSE(fs::exists(scratch.path("a"))) << "an empty file would be in the way of the next attempt";
    expect_next_file_works(scratch, as_nodes());
}

TEST(TargetFull, IsTheSameErrorEverywhereUnlessItIsDrained)
{
    Scratch const scratch;
    SmallFileSystem const small(scratch.path("small"), "96k");
    if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here (errno " << small.error() << ")";
    auto options = on_tier();
    options.target = "ssd:" + scratch.path("small");
    for (auto const drain : {TargetDrain::close, TargetDrain::background}) {
        options.target_drain = drain;
        write_file(scratch.path("b"), options);
        expect_readable(scratch.path("b"));
    }
    options.target_drain = TargetDrain::never;
    {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("a"), Mode::create, options);
        auto const error = same_error_on_all_ranks([&] { write(file); });
        EXPECT_EQ(error.code, Errc::no_space);
        expect_parts(error.text, {"tapioca: finish: rank ", "subfile.", "No space left on device"});
        file.close();
    }
    expect_next_file_works(scratch, as_nodes());
}

TEST(TargetDrained, LeavesNothingOnTheTier)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    for (auto const drain : {TargetDrain::close, TargetDrain::background})
        for (std::uint64_t const size : {std::uint64_t{1}, std::uint64_t{1} << 20}) {
            auto options = on_tier();
            options.target_drain = drain;
            options.target_size = size;
            write_file(scratch.path("a"), options);
            barrier();
            EXPECT_EQ(directories.sets(), 0)
                << (drain == TargetDrain::close ? "close" : "background") << " size " << size;
            expect_readable(scratch.path("a"));
        }
    write_file(scratch.path("a"));
    EXPECT_EQ(directories.sets(), 1) << "without draining";
    barrier();
}

TEST(TargetDrained, ByACallThatFailsIsDrainedByTheNextOne)
{
    Scratch const scratch;
    SmallFileSystem const small(scratch.path("small"), "2m");
    if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here (errno " << small.error() << ")";
    NodeDirectories const directories(scratch);
    auto const path = scratch.path("small") + "/a";
    for (auto const drain : {TargetDrain::never, TargetDrain::background}) {
        auto options = on_tier();
        options.target_drain = drain;
        auto file = File::open(MPI_COMM_WORLD, path, Mode::create, options);
        write(file);
        if (rank() == 0) std::ofstream(scratch.path("small") + "/filler") << std::string(3'000'000, 'x');
        barrier();
        auto const error = same_error_on_all_ranks([&] { file.drain(); });
        EXPECT_EQ(error.code, Errc::no_space);
        expect_parts(error.text, {"tapioca: drain: rank ", "No space left on device", "is still on ssd:/proc/self/cwd",
                                  "`tapioca target drain "});
        expect_part(file, (rank() + 1) % ranks());
        EXPECT_EQ(directories.subfiles(), 1U);
        fs::remove(scratch.path("small") + "/filler");
        barrier();
        file.drain();
        barrier();
        EXPECT_EQ(directories.subfiles(), 0U);
        expect_part(file, (rank() + 1) % ranks());
        file.close();
        barrier();
        expect_readable(path);
    }
    barrier();
}

TEST(TargetDrained, ByACallIsForThoseWhoWrite)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const path = scratch.path("a");
    write_file(path);
    barrier();
    {
        auto file = File::open(MPI_COMM_WORLD, path, Mode::read, as_nodes());
        auto const error = same_error_on_all_ranks([&] { file.drain(); });
        EXPECT_EQ(error.code, Errc::invalid_state);
        expect_parts(error.text, {"drain: ", "was opened for reading", "Mode::update", "`tapioca target drain`"});
        file.close();
    }
    {
        auto file = File::open(MPI_COMM_WORLD, path, Mode::update, as_nodes());
        auto second = File::open(MPI_COMM_WORLD, path, Mode::update, as_nodes());
        write(file);
        auto const error = same_error_on_all_ranks([&] { second.drain(); });
        EXPECT_EQ(error.code, Errc::invalid_state);
        expect_parts(error.text, {"drain: ", "another handle or job is adding to these subfiles"});
        file.drain();
        second.close();
        file.close();
    }
    EXPECT_EQ(directories.sets(), 0);
    expect_readable(path);
    {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("b"), Mode::create, as_nodes());  // a plain file
        write(file);
        file.drain();
        file.close();
    }
    expect_readable(scratch.path("b"));
}

TEST(TargetDrained, ByACallOfFewerNodesNamesWhatIsLeft)
{
    if (nodes() < 2) GTEST_SKIP() << "needs several nodes";
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const path = scratch.path("a");
    write_file(path);
    barrier();
    {
        Readers const some(my_node() == 0);
        if (my_node() == 0) {
            auto file = some.open(path, Mode::update);
            auto const error = caught([&] { file.drain(); });
            EXPECT_EQ(error.code, Errc::not_found);
            expect_parts(error.text, {"drain: ", "of the subfiles is not in the file system", "the first, subfile.",
                                      "is on no node of this job", "`tapioca target drain "});
            file.close();
        }
    }
    auto file = File::open(MPI_COMM_WORLD, path, Mode::update, as_nodes());
    file.drain();
    file.close();
    EXPECT_EQ(directories.sets(), 0);
    expect_readable(path);
}

TEST(TargetDrained, NamesTheRankThatFailed)
{
    if (nodes() < 2) GTEST_SKIP() << "needs several nodes";
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const path = scratch.path("a");
    auto file = File::open(MPI_COMM_WORLD, path, Mode::create, on_tier());
    write(file);
    bool const culprit = my_node() == 1 && is_first_of_node();
    auto const second_name = culprit ? place_here() / "second name" : fs::path();
    if (culprit) fs::create_hard_link(place_here() / "subfile.1", second_name);
    barrier();
    auto const error = same_error_on_all_ranks([&] { file.drain(); });
    EXPECT_EQ(error.code, Errc::permission);
    EXPECT_EQ(error.rank, ranks_per_node());
    expect_parts(error.text, {"drain: rank " + std::to_string(ranks_per_node()) + ": ", "subfile.1 has 2 names"});
    if (culprit) fs::remove(second_name);
    barrier();
    file.drain();
    file.close();
    expect_readable(path);
}

/// Bytes of subfiles that this node has on its tier.
std::uint64_t bytes_here()
{
    std::uint64_t bytes = 0;
    for (auto const& entry : fs::recursive_directory_iterator(fs::current_path()))
        if (entry.path().filename().string().starts_with("subfile.")) bytes += entry.file_size();
    return bytes;
}

TEST(TargetDrained, WhenItIsClosedKeepsToItsSize)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto options = on_tier();
    options.target_drain = TargetDrain::close;
    constexpr std::uint64_t page = 4096;
    auto const of_step = (static_cast<std::uint64_t>(ranks_per_node() * each) + page - 1) / page * page;
    options.target_size = 2 * of_step;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("a"), Mode::create, options);
    auto step = file.declare(part_of(rank()));
    auto const data = part(rank());
    for (int t = 0; t < 5; ++t) {
        step.rebase(t * ranks() * each);
        step.write(0, data);
        step.finish();
    }
    EXPECT_LE(bytes_here(), 2 * of_step);
    EXPECT_GT(bytes_here(), of_step);
    EXPECT_EQ(directories.subfiles(), 1U);
    barrier();
    file.close();
    barrier();
    EXPECT_EQ(directories.sets(), 0);
    expect_readable(scratch.path("a"));
}

/// In each step, only one node has data; the others have opened a subfile, too.
TEST(TargetDrained, StepsInWhichANodeHasNoDataLeaveNothing)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto options = on_tier();
    options.target_drain = TargetDrain::background;
    options.target_size = 1;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("a"), Mode::create, options);
    for (int t = 0; t < 5; ++t) {
        bool const mine = my_node() == nodes() - 1;
        Pattern pattern;
        pattern.add({{(t * ranks() + rank()) * each, mine ? each : 0}});
        auto step = file.declare(pattern);
        auto const data = part(rank());
        step.write(0, std::span(data).first(mine ? data.size() : 0));
        step.finish();
    }
    file.close();
    barrier();
    EXPECT_EQ(directories.sets(), 0);
    barrier();
}

TEST(TargetDrained, WhatIsGoneIsNot)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    for (bool const by_closing : {false, true}) {
        auto options = on_tier();
        if (by_closing) options.target_drain = TargetDrain::close;
        auto file = File::open(MPI_COMM_WORLD, scratch.path("a"), Mode::create, options);
        write(file);
        barrier();
        if (is_first_of_node()) fs::remove(place_here() / ("subfile." + std::to_string(my_node())));
        barrier();
        auto const error = same_error_on_all_ranks([&] { by_closing ? file.close() : file.drain(); });
        EXPECT_EQ(error.code, Errc::not_found);
        expect_parts(error.text, {"of the subfiles ", " not in the file system: the first, subfile.0"});
        if (!by_closing) file.close();
    }
    expect_next_file_works(scratch, as_nodes());
}

/// An opening that adds to a file, so that its close() is durable. Each of its steps fills a subfile; the first of them
/// on the last node is `ended_`, which the next step ends, or a drain.
class TargetClosed : public testing::Test {
protected:
    TargetClosed() { write_file(path_); }
    [[nodiscard]] File open_and_write(TargetDrain drain)
    {
        barrier();
        auto options = on_tier();
        options.target_drain = drain;
        options.target_size = 2 * static_cast<std::uint64_t>(ranks_per_node() * each);
        auto file = File::open(MPI_COMM_WORLD, path_, Mode::update, options);
        write_step(file, 1);
        int newest = 0;
        if (culprit_)
            for (auto const& entry : fs::directory_iterator(place_here()))
                if (auto const name = entry.path().filename().string(); name.starts_with("subfile."))
                    newest = std::max(newest, std::stoi(name.substr(name.find('.') + 1)));
        MPI_Bcast(&newest, 1, MPI_INT, first_of_last_node_, MPI_COMM_WORLD);
        ended_ = std::to_string(newest);
        return file;
    }
    static void write_step(File& file, int step) { write(file, step * ranks() + rank()); }
    /// The next call of this kind on that subfile fails, where it was written. Nothing on other ranks.
    [[nodiscard]] std::unique_ptr<faults::Armed> failing(faults::Op op) const
    {
        if (!culprit_) return nullptr;
        auto const path = place_here() / ("subfile." + ended_);
        return std::make_unique<faults::Armed>(path.string(), op, faults::Kind::error, 1, EIO);
    }
    [[nodiscard]] Caught expect_failure(faults::Op op, std::function<void()> const& call) const
    {
        auto const fault = failing(op);
        auto const error = same_error_on_all_ranks(call);
        EXPECT_EQ(fault ? fault->fired() : 1, 1);
        EXPECT_EQ(error.code, Errc::io);
        EXPECT_EQ(error.rank, first_of_last_node_);
        expect_parts(error.text, {"Input/output error"});
        return error;
    }
    /// The set is not completed unless that subfile can be made durable on the tier.
    void expect_made_durable(File file) const
    {
        {
            auto closed = std::move(file);  // which holds the lock of the set for as long as it lives
            auto const error = expect_failure(faults::Op::sync, [&] { closed.close(); });
            expect_parts(error.text, {"close: rank ", "subfile." + ended_ + ": ", "the set of subfiles is not complete",
                                      "`tapioca subfile recover "});
        }
        auto const refused =
            same_error_on_all_ranks([&] { (void)File::open(MPI_COMM_WORLD, path_, Mode::read, as_nodes()); });
        expect_parts(refused.text, {"`tapioca subfile recover "});
    }
    void expect_readable_when_recovered(int steps) const
    {
        barrier();
        if (rank() == 0) {
            auto const stub = subfile::find_stub(path_);
            EXPECT_TRUE(stub && *stub && subfile::recover_set(path_, **stub));
        }
        barrier();
        auto file = File::open(MPI_COMM_WORLD, path_, Mode::update, as_nodes());
        for (bool const drained : {false, true}) {
            if (drained) file.drain();
            for (int step = 0; step < steps; ++step) expect_part(file, step * ranks() + (rank() + 1) % ranks());
        }
        file.close();
        EXPECT_EQ(directories_.sets(), 0);
        barrier();
    }

    Scratch const scratch_;
    NodeDirectories const directories_{scratch_};
    std::string const path_ = scratch_.path("a");
    int const first_of_last_node_ = (nodes() - 1) * ranks_per_node();
    bool const culprit_ = rank() == first_of_last_node_;
    std::string ended_;
};

TEST_F(TargetClosed, MakesDurableWhatIsNotDrained)
{
    auto file = open_and_write(TargetDrain::background);
    auto const in_the_way = path_ + ".subfiles/draining." + ended_;
    if (rank() == 0) fs::create_directory(in_the_way);
    barrier();
    write_step(file, 2);
    expect_made_durable(std::move(file));
    if (rank() == 0) fs::remove(in_the_way);
    expect_readable_when_recovered(3);
}

TEST_F(TargetClosed, MakesDurableWhatADrainThatFailedHasEnded)
{
    auto file = open_and_write(TargetDrain::background);
    auto const catalogue = place_here() / "catalogue";
    auto const elsewhere = place_here() / "elsewhere";
    if (culprit_) fs::rename(catalogue, elsewhere);
    auto const error = same_error_on_all_ranks([&] { file.drain(); });
    expect_parts(error.text, {"drain: rank ", "has no catalogue entry"});
    if (culprit_) fs::rename(elsewhere, catalogue);
    expect_made_durable(std::move(file));
    expect_readable_when_recovered(2);
}

TEST_F(TargetClosed, MakesDurableWhatAStepThatFailedHasEnded)
{
    auto file = open_and_write(TargetDrain::background);
    auto const error = expect_failure(faults::Op::close, [&] { write_step(file, 2); });
    expect_parts(error.text, {"subfile." + ended_ + ": "});
    expect_made_durable(std::move(file));
    expect_readable_when_recovered(2);
}

/// With these settings, drain() makes durable what it ends, before it drains it.
TEST_F(TargetClosed, MakesDurableWhatADrainCouldNotMakeDurable)
{
    for (auto const drain : {TargetDrain::never, TargetDrain::close}) {
        auto file = open_and_write(drain);
        auto const error = expect_failure(faults::Op::sync, [&] { file.drain(); });
        expect_parts(error.text, {"subfile." + ended_ + ": "});
        (void)expect_failure(faults::Op::sync, [&] { file.sync(); });
        expect_made_durable(std::move(file));
        expect_readable_when_recovered(2);
        write_file(path_);
    }
    barrier();
}

/// Jobs that were killed have left subfiles of which no journal knows: they must not be taken for those of this job.
TEST(TargetBegun, ByAKilledJobIsInNobodysWay)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const path = scratch.path("a");
    write_file(path);
    barrier();
    auto const numbers = nodes() + 1;  // a subfile for each node, and one that all share
    if (is_first_of_node()) {
        std::string const garbage(static_cast<std::size_t>(2 * each), 'x');
        auto const other = (my_node() + 1) % nodes();
        std::ofstream(place_here() / ("subfile." + std::to_string(numbers + other))) << garbage;
        for (int number = 2 * numbers; number < 3 * numbers; ++number)
            std::ofstream(place_here() / ("subfile." + std::to_string(number))) << garbage;
    }
    barrier();
    auto options = on_tier();
    options.subfile = "node";
    auto file = File::open(MPI_COMM_WORLD, path, Mode::update, options);
    write(file);
    expect_part(file, (rank() + 1) % ranks());
    file.close();
    barrier();
    EXPECT_EQ(directories.subfiles(), 1U) << "what was begun is removed";
    expect_readable(path);
    file = File::open(MPI_COMM_WORLD, path, Mode::update, options);
    file.drain();
    file.close();
    EXPECT_EQ(directories.sets(), 0);
    expect_readable(path);
}

TEST(TargetGone, OfOneNodeLeavesTheRestReadable)
{
    if (nodes() < 2) GTEST_SKIP() << "needs several nodes";
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    write_file(scratch.path("a"));
    barrier();
    if (my_node() == 1 && is_first_of_node()) fs::remove_all(place_here());
    barrier();
    Readers const readers;
    auto file = readers.open(scratch.path("a"));
    expect_part(file, 0);
    auto const error = same_error_on_all_ranks([&] { read_other(file); });
    EXPECT_EQ(error.code, Errc::not_found);
    expect_parts(error.text, {"no node of this job has subfile.1, which ", " has written", "tapioca target list"});
    expect_part(file, 0);
    file.close();
    barrier();
}

/// Nodes that only pretend to be several have one host name, and yet what is on another one is not gone.
TEST(TargetGone, IsNotWhatAnotherNodeHas)
{
    if (nodes() < 2) GTEST_SKIP() << "needs several nodes";
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("a"), Mode::create, on_tier());
        auto step = file.declare(part_of(ranks() - 1 - rank()));  // the beginning is on the last node
        auto const data = part(ranks() - 1 - rank());
        step.write(0, data);
        step.finish();
        file.close();
    }
    expect_readable(scratch.path("a"));
}

TEST(TargetGone, WithItsTierIsMissing)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    if (is_first_of_node()) fs::create_directory("tier");
    barrier();
    auto options = on_tier();
    options.target = std::string(own_directory) + "/tier";
    write_file(scratch.path("a"), options);
    barrier();
    if (is_first_of_node()) fs::remove_all("tier");
    barrier();
    Readers const readers;
    auto file = readers.open(scratch.path("a"));
    EXPECT_EQ(file.size(), static_cast<std::uint64_t>(ranks() * each));
    auto const error = same_error_on_all_ranks([&] { read_other(file); });
    EXPECT_EQ(error.code, Errc::not_found);
    expect_parts(error.text, {"subfile.", "is gone, which this node, ", ", has written", "tapioca target list FILE"});
    file.close();
    // Nobody can add to it there; it can be written anew elsewhere.
    auto const refused = same_error_on_all_ranks([&] { (void)readers.open(scratch.path("a"), Mode::update); });
    expect_parts(refused.text, {"target=ssd:/proc/self/cwd/tier on ", "No such file or directory"});
    write_file(scratch.path("a"));
    barrier();
}

TEST(TargetReaders, OfFewerNodesThanHaveDataReadWhatTheyHave)
{
    if (nodes() < 2) GTEST_SKIP() << "needs several nodes";
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    write_file(scratch.path("a"));
    barrier();
    Readers const readers(my_node() == 0);
    if (my_node() == 0) {
        auto file = readers.open(scratch.path("a"));
        expect_part(file, 0);
        auto const error = caught([&] { expect_part(file, ranks() - 1); });
        EXPECT_EQ(error.code, Errc::not_found);
        expect_parts(error.text, {"no node of this job has subfile."});
        file.close();
    }
}

/// A read that the nodes serve, and then one that the logs serve: each tells what it has received itself.
TEST(TargetStaged, ReadsTellHowMuchTheyHaveReceived)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto options = on_tier();
    options.stage = "dram";
    auto file = File::open(MPI_COMM_WORLD, scratch.path("a"), Mode::create, options);
    auto step = file.declare(part_of(rank()));
    auto const data = part(rank());
    step.write(0, data);
    step.finish();
    file.flush();
    std::vector<std::byte> back(static_cast<std::size_t>(each));
    step.rebase(ranks() * each);  // where nothing is yet
    step.read(0, back);
    step.finish();
    EXPECT_EQ(step.received(0), 0U);
    step.write(0, data);
    step.finish();
    step.read(0, back);
    step.finish();
    EXPECT_EQ(step.received(0), static_cast<std::uint64_t>(each));
    EXPECT_TRUE(back == data);
    file.close();
    barrier();
}

TEST(TargetCopies, OfASubfileOnTwoNodesAreRefused)
{
    if (nodes() < 2) GTEST_SKIP() << "needs several nodes";
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    auto const other = fs::path("../node0");
    for (bool const whole : {false, true}) {
        write_file(scratch.path("a"));
        barrier();
        if (my_node() == 1 && is_first_of_node()) {
            auto const mine = place_here();
            auto const from = other / mine.filename();
            if (whole) fs::remove_all(mine);
            if (whole) fs::copy(from, mine, fs::copy_options::recursive);
            if (!whole) fs::copy(from / "subfile.0", mine / "subfile.0");
        }
        barrier();
        Options options;
        options.ranks_per_node = ranks_per_node();
        auto const error =
            same_error_on_all_ranks([&] { (void)File::open(MPI_COMM_WORLD, scratch.path("a"), Mode::read, options); });
        EXPECT_EQ(error.code, Errc::io);
        char name[64] = {};
        ::gethostname(name, sizeof name - 1);
        std::string const host = name;
        expect_parts(error.text, {"two nodes, 0 (" + host + ") and 1 (" + host + "), have a subfile.0",
                                  "remove the one that is a copy"});
    }
    barrier();
}

TEST(TargetCatalogue, ThatLiesIsRefused)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    for (auto const* const what : {"not one", "damaged", "of another set"}) {
        write_file(scratch.path("a"));
        write_file(scratch.path("b"));
        barrier();
        if (rank() == 0)
            for (auto const& entry : fs::directory_iterator(fs::current_path())) {
                auto const catalogue = entry.path() / "catalogue";
                if (what == std::string("not one")) std::ofstream(catalogue) << "something else";
                if (what == std::string("damaged"))
                    std::fstream(catalogue, std::ios::in | std::ios::out).seekp(200).put('!');
                if (what == std::string("of another set"))
                    for (auto const& from : fs::directory_iterator(fs::current_path()))
                        if (from.path() != entry.path())
                            fs::copy_file(from.path() / "catalogue", catalogue, fs::copy_options::overwrite_existing);
            }
        barrier();
        Readers const readers;
        int wrong = 0;
        for (auto const* const name : {"a", "b"}) {
            auto const error = caught([&] { (void)readers.open(scratch.path(name)); });
            if (error.code == Errc::ok) continue;
            ++wrong;
            expect_same_on_all_ranks(error);
            expect_parts(error.text, {"the catalogue entry is "});
        }
        EXPECT_GE(wrong, 1) << what;
        barrier();
        if (is_first_of_node())
            for (auto const& entry : fs::directory_iterator(fs::current_path())) fs::remove_all(entry.path());
        if (rank() == 0)
            for (auto const* const name : {"a", "b"}) fs::remove(scratch.path(name));
        barrier();
    }
}

TEST(TargetJobs, OfOneNameAtOnceDoNotMeet)
{
    Scratch const scratch;
    NodeDirectories const directories(scratch);
    MPI_Comm other = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    {
        auto first = File::open(MPI_COMM_WORLD, scratch.path("a"), Mode::create, on_tier());
        write(first);
        auto const error =
            same_error_on_all_ranks([&] { (void)File::open(other, scratch.path("a"), Mode::create, on_tier()); });
        expect_parts(error.text, {"is writing"});
        write(first);
        first.close();
    }
    barrier();
    EXPECT_EQ(directories.sets(), 1) << "of the second one nothing is left";
    expect_readable(scratch.path("a"));
    MPI_Comm_free(&other);
}

}  // namespace
}  // namespace tapioca::test
