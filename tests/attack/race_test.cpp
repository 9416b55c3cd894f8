// Another user renames, removes and replaces, as fast as a process can, whatever appears in a directory in which the
// library creates files. Calls may fail there, but no file of any user is touched or disclosed.
#include <chrono>

#include <dirent.h>
#include <fcntl.h>

#include "attack/shared_place.hpp"
#include "engine/map_on_node.hpp"
#include "machine/tier/tier.hpp"

namespace tapioca::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t memory_bytes = 65536;

/// Puts something else in the place of everything whose name begins with "tapioca-" or ends otherwise than the
/// target's: a link to the victim's file, a pipe, a file of the attacker's, or the victim's own bait of the same size.
/// What can be opened for reading although it is not the attacker's is told by making `leak`.
void swap_all(std::string const& directory, std::string const& victim, std::string const& leak)
{
    static unsigned turn = 0;
    auto* const entries = ::opendir(directory.c_str());
    if (!entries) return;
    while (auto const* const entry = ::readdir(entries)) {
        std::string const name = entry->d_name;
        if (name[0] == '.' || name == "target" || name.starts_with("bait") || name.starts_with("junk")) continue;
        auto const path = directory + "/" + name;
        auto const away = directory + "/junk" + std::to_string(turn % 50);
        for (auto const& file : {path, path + "/rank0.data", path + "/rank1.data", path + "/rank0.meta"}) {
            int const fd = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
            struct stat found = {};
            bool const theirs = fd >= 0 && ::fstat(fd, &found) == 0 && found.st_uid != nobody && S_ISREG(found.st_mode);
            if (theirs && !name.starts_with("report")) ::close(::open(leak.c_str(), O_CREAT | O_WRONLY, 0666));
            if (fd >= 0) ::close(fd);
        }
        struct stat found = {};
        if (::lstat(path.c_str(), &found) == 0 && found.st_uid == nobody) {
            (void)::unlink(path.c_str());
            continue;
        }
        (void)::rename(path.c_str(), away.c_str());
        switch (turn++ % 5) {
        case 0: (void)::symlink(victim.c_str(), path.c_str()); break;
        case 1: (void)::mkfifo(path.c_str(), 0666); break;
        case 2: ::close(::open(path.c_str(), O_CREAT | O_WRONLY, 0666)); break;
        case 3: (void)::rename((directory + "/bait").c_str(), path.c_str()); break;
        default: (void)::symlink(directory.c_str(), path.c_str()); break;
        }
    }
    ::closedir(entries);
}

class Race : public testing::Test {
protected:
    /// Runs `turn` for two seconds while the attacker is at it. Collective.
    void run(std::function<void(int)> const& turn) const
    {
        if (rank() == 0) {
            write_plain(place_.path("bait"), stream(5, memory_bytes));
            ::chmod(place_.path("bait").c_str(), 0600);
            int const bait = ::open(place_.path("bait").c_str(), O_RDONLY);
            {
                Attacker const attacker(
                    [&] { swap_all(place_.directory(), place_.victim(), place_.path("junk.leak")); });
                loop(turn);
            }
            std::vector<std::byte> found(memory_bytes);
            EXPECT_EQ(::pread(bait, found.data(), found.size(), 0), static_cast<ssize_t>(memory_bytes));
            EXPECT_TRUE(found == stream(5, memory_bytes)) << "a file that was swapped in was written to";
            ::close(bait);
            EXPECT_FALSE(fs::exists(place_.path("junk.leak"))) << "data was readable by another user";
        } else {
            loop(turn);
        }
        barrier();
        place_.expect_victim_untouched();
    }
    SharedPlace const place_{false};

private:
    static void loop(std::function<void(int)> const& turn)
    {
        auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
        int turns = 0;
        while (from_rank_0(std::chrono::steady_clock::now() < end ? 1 : 0) != 0) turn(turns++);
        RecordProperty("turns", turns);
        if (rank() == 0) std::printf("  %d turns\n", turns);
    }
};

TEST_F(Race, ForMemoryFilesThatRanksShareEndsInTheirOwnMemoryOrAnError)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    auto const tier = machine::make_tier({"ssd", "ssd", place_.directory(), {}, {}, {}, {}, {}});
    ASSERT_TRUE(tier);
    int good = 0;
    run([&](int turn) {
        auto const mapping = engine::map_on_node(MPI_COMM_WORLD, **tier, memory_bytes);
        ASSERT_TRUE(on_all_ranks(mapping.has_value()) || on_all_ranks(!mapping.has_value()));
        if (!mapping) return;
        ++good;
        auto const value = static_cast<std::byte>(turn);
        mapping->data()[rank()] = value;
        barrier();
        for (int r = 0; r < ranks(); ++r) EXPECT_EQ(mapping->data()[r], value) << "not the same memory";
        barrier();
    });
    if (rank() == 0) std::printf("  %d of them good\n", good);
}

TEST_F(Race, ForStagedFilesTouchesNobodysFileAndShowsNothing)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    Options options;
    options.stage = "ssd:" + place_.directory();
    options.aggrtier = "ssd:" + place_.directory();
    options.report = place_.path("report.json");
    int good = 0;
    run([&](int turn) {
        auto const error = caught([&] {
            auto file = File::open(MPI_COMM_WORLD, place_.path("target"), Mode::create, options);
            Pattern pattern;
            pattern.add({{rank() * 1000, 1000}});
            auto step = file.declare(pattern);
            auto const data = stream(static_cast<std::uint64_t>(turn + rank()), 1000);
            step.write(0, data);
            step.finish();
            file.close();
        });
        bool const failed = error.code != Errc::ok;
        EXPECT_TRUE(on_all_ranks(failed) || on_all_ranks(!failed)) << error.text;
        if (on_all_ranks(failed)) expect_same_on_all_ranks(error);
        if (!failed) ++good;
        barrier();
        if (rank() == 0)  // else the next turn would only ask for a recovery
            (void)::unlink(place_.path("target.tapioca").c_str());
        barrier();
    });
    if (rank() == 0) std::printf("  %d of them good\n", good);
}

}  // namespace
}  // namespace tapioca::test
