// Which ranks share memory. NEIGHBOURS gives the expected result on 4 ranks: the size of each rank's group, such as
// 2211; without it, all ranks share. neighbours_test.sh runs this with a container for every rank.
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include "comm/messages.hpp"
#include "comm/team.hpp"
#include "support/faults.hpp"
#include "support/mpi_test.hpp"
#include "support/random_patterns.hpp"

namespace tapioca::test {
namespace {

std::string expected()
{
    auto const* const text = std::getenv("NEIGHBOURS");
    return text ? text : std::string(static_cast<std::size_t>(ranks()), static_cast<char>('0' + ranks()));
}

/// Sizes of the groups that `team` has found, rank by rank.
std::string sizes(comm::Team const& team)
{
    std::string text;
    double const mine = team.node_size();
    for (auto const size : team.gather({&mine, 1})) text += static_cast<char>('0' + static_cast<int>(size));
    return text;
}

bool has_memory()
{
    return ::access("/dev/shm", W_OK) == 0;
}

std::size_t left_behind()
{
    std::size_t files = 0;
    auto const ours = "tapioca-" + std::to_string(::getpid()) + "-";
    std::error_code error;
    for (auto const& entry : std::filesystem::directory_iterator("/dev/shm", error))
        if (entry.path().filename().string().starts_with(ours)) ++files;
    return files;
}

TEST(Neighbours, AreThoseThatShareMemory)
{
    comm::Team const team(MPI_COMM_WORLD);
    EXPECT_EQ(sizes(team), expected());
    EXPECT_EQ(left_behind(), 0U);
    // In the order of all ranks, and nodes by their first ranks.
    int last = -1;
    for (auto const& node : team.nodes()) {
        EXPECT_LT(last, node[0]);
        EXPECT_TRUE(std::is_sorted(node.begin(), node.end()));
        last = node[0];
    }
}

TEST(Neighbours, MayPretendToBeSeveralNodes)
{
    comm::Team const team(MPI_COMM_WORLD, 1);
    EXPECT_EQ(team.nodes().size(), static_cast<std::size_t>(ranks()));
    EXPECT_EQ(team.machine_size(), expected()[static_cast<std::size_t>(rank())] - '0');
}

TEST(Neighbours, WithoutSharedMemoryGetOneError)
{
    if (has_memory()) GTEST_SKIP() << "there is some";
    auto const error =
        same_error_on_all_ranks([] { (void)File::open(MPI_COMM_WORLD, "neighbours_test.dat", Mode::create); });
    expect_parts(error.text, {"dram tier", "/dev/shm", "TAPIOCA_AGGRTIER"});
}

TEST(Neighbours, WriteAndReadAFileTogether)
{
    if (!has_memory()) GTEST_SKIP() << "no shared memory";
    auto const job = interleave(ranks(), 0, 64, 500);
    auto const& mine = job[static_cast<std::size_t>(rank())];
    auto const data = stream(static_cast<std::uint64_t>(rank()) + 1, static_cast<std::size_t>(mine[0].bytes()));
    auto file = File::open(MPI_COMM_WORLD, "neighbours_test.dat", Mode::create);
    auto step = file.declare(pattern_of(mine));
    step.write(0, data);
    step.finish();
    Bytes found(data.size());
    step.read(0, found);
    step.finish();
    file.close();
    EXPECT_TRUE(found == data);
    barrier();
    if (rank() == 0) ::unlink("neighbours_test.dat");
}

TEST(Reduction, FindsTheGreatestOnAnyNumberOfRanks)
{
    for (int size = 1; size <= ranks(); ++size) {
        MPI_Comm some = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, rank() < size ? 0 : MPI_UNDEFINED, 0, &some);
        if (some == MPI_COMM_NULL) continue;
        comm::Reduction reduction;
        EXPECT_TRUE(reduction.done());  // nothing was started
        for (int turn = 0; turn < 40; ++turn) {
            int const greatest = turn % size;
            reduction.start_attended(some, {rank() == greatest ? turn : -1, -rank(), INT64_MIN}, 100);
            while (!reduction.done()) {}
            EXPECT_EQ(reduction.values(), (std::vector<std::int64_t>{turn, 0, INT64_MIN})) << size << " ranks";
        }
        MPI_Comm_free(&some);
    }
}

TEST(Neighbours, GatherListsOfAnyLength)
{
    comm::Team const team(MPI_COMM_WORLD, 1);
    for (std::size_t const longest : {0U, 1U, 23U, 24U, 100U}) {
        std::vector<std::uint64_t> mine(team.my_node() == 1 ? longest : longest / 2, 7);
        if (!mine.empty()) mine.back() = static_cast<std::uint64_t>(team.my_node());
        auto const lists = team.gather_nodes(mine);
        ASSERT_EQ(lists.size(), team.nodes().size());
        EXPECT_EQ(lists[static_cast<std::size_t>(team.my_node())], mine);
        for (std::size_t node = 0; node < lists.size(); ++node) {
            EXPECT_EQ(lists[node].size(), node == 1 ? longest : longest / 2);
            if (!lists[node].empty()) {
                EXPECT_EQ(lists[node].back(), node);
            }
        }
    }
}

class Spoiled : public testing::Test {
protected:
    void SetUp() override
    {
        if (std::getenv("NEIGHBOURS")) GTEST_SKIP() << "elsewhere, where all share memory";
    }
    /// What is found if every call of the kind `op` fails on rank `spoiled`.
    static std::string find(int spoiled, faults::Op op)
    {
        if (rank() == spoiled) faults::arm({op, faults::Kind::stays, EIO, 1});
        std::string found;
        {
            faults::Inside const inside;
            comm::Team const team(MPI_COMM_WORLD);
            found = sizes(team);
        }
        if (rank() == spoiled) {
            EXPECT_GT(faults::disarm(), 0);
        }
        EXPECT_EQ(left_behind(), 0U);
        return found;
    }
};

TEST_F(Spoiled, OneThatCannotSeeTheOthersIsAlone)
{
    EXPECT_EQ(find(2, faults::Op::read), "3313");
}

TEST_F(Spoiled, IfTheFirstCannotShowAnythingAllAreAlone)
{
    EXPECT_EQ(find(0, faults::Op::write), "1111");
}

}  // namespace
}  // namespace tapioca::test
