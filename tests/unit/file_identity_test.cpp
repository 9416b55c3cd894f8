// File identity: what numbers prove on one kernel and on several, and what a probe finds out.
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "target/file_identity.hpp"

namespace tapioca::target {
namespace {

using machine::Reach;

FileIdentity seen(std::uint64_t kernel, std::uint64_t device, std::uint64_t inode, Reach reach,
                  std::uint64_t bytes = 10)
{
    return {kernel, device, inode, bytes, reach};
}

TEST(FileIdentity, IsDeviceAndInodeOnOneKernel)
{
    for (auto const reach : {Reach::one_host, Reach::several_hosts, Reach::unknown}) {
        auto const first = seen(1, 2, 3, reach);
        EXPECT_EQ(compare(first, seen(1, 2, 3, reach, 99)), Verdict::same) << "somebody may be writing";
        EXPECT_EQ(compare(first, seen(1, 2, 4, reach)), Verdict::different);
    }
    EXPECT_EQ(compare(seen(1, 2, 3, Reach::one_host), seen(1, 5, 3, Reach::one_host)), Verdict::different);
    EXPECT_EQ(compare(seen(1, 2, 3, Reach::one_host), seen(1, 5, 3, Reach::several_hosts)), Verdict::unsure)
        << "a server may have mounted what it serves";
    // Hosts of namespaces mount the same servers each for itself.
    EXPECT_EQ(compare(seen(1, 2, 3, Reach::several_hosts), seen(1, 5, 3, Reach::several_hosts)), Verdict::unsure);
    EXPECT_EQ(compare(seen(1, 2, 3, Reach::unknown), seen(1, 5, 9, Reach::unknown)), Verdict::unsure);
}

TEST(FileIdentity, OfAnotherKernelIsBelievedOnlyOfSharedFileSystems)
{
    for (auto const reach : {Reach::one_host, Reach::unknown})
        EXPECT_EQ(compare(seen(1, 2, 3, reach), seen(9, 2, 3, reach)), Verdict::unsure) << "hosts may be clones";
    auto const shared = seen(1, 2, 3, Reach::several_hosts);
    EXPECT_EQ(compare(shared, seen(9, 7, 3, Reach::several_hosts)), Verdict::same);
    EXPECT_EQ(compare(shared, seen(9, 2, 4, Reach::several_hosts)), Verdict::unsure);
    EXPECT_EQ(compare(shared, seen(9, 2, 3, Reach::several_hosts, 11)), Verdict::unsure);
    EXPECT_EQ(compare(shared, seen(9, 2, 3, Reach::one_host)), Verdict::unsure);
}

TEST(FileIdentity, StaysTheSameBehindAnotherMount)
{
    auto const expected = seen(1, 2, 3, Reach::several_hosts);
    EXPECT_TRUE(seen(1, 5, 3, Reach::several_hosts).same_inode(expected)) << "a rank with mounts of its own";
    EXPECT_FALSE(seen(1, 2, 4, Reach::several_hosts).same_inode(expected));
    EXPECT_FALSE(seen(1, 5, 3, Reach::one_host).same_inode(seen(1, 2, 3, Reach::one_host)));
}

TEST(FileIdentity, OfADeviceIsItsNumber)
{
    int const fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    auto const null = identity_of(fd);
    ::close(fd);
    ASSERT_TRUE(null);
    EXPECT_EQ(null->kernel, 0U) << "the same on every host";
    EXPECT_FALSE(identity_of(-1));
}

TEST(FileIdentity, OfPathsDoesNotDependOnTheWorkingDirectory)
{
    EXPECT_EQ(absolute("/a/b"), "/a/b");
    EXPECT_EQ(absolute("b"), std::filesystem::current_path().string() + "/b");
    EXPECT_EQ(absolute(""), "") << "and still names nothing";
}

/// A file in a directory of its own.
class Place {
public:
    explicit Place(std::string const& directory, std::string const& name = "file", std::string const& content = "abc")
        : path(directory + "/" + name)
    {
        std::filesystem::create_directory(directory);
        std::ofstream(path) << content;
        fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    }
    Place(Place const&) = delete;
    Place& operator=(Place const&) = delete;
    ~Place() { ::close(fd); }
    std::string path;
    int fd;
};

std::size_t files_in(std::string const& directory)
{
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

TEST(Probe, IsSeenByWhoeverHasTheSameFile)
{
    Place const mine("shared");
    Place const clone("clone");
    Place const neighbour("shared", "neighbour");
    std::filesystem::create_directories("links");
    std::filesystem::remove("links/link");
    std::filesystem::create_symlink("../shared/file", "links/link");
    {
        Probe const probe(mine.path, mine.fd);
        EXPECT_EQ(files_in("shared"), 3U);
        EXPECT_TRUE(confirms(probe.evidence(), mine.path, mine.fd));
        EXPECT_TRUE(confirms(probe.evidence(), "links/link", mine.fd));
        EXPECT_FALSE(confirms(probe.evidence(), clone.path, clone.fd));
        EXPECT_FALSE(confirms(probe.evidence(), neighbour.path, neighbour.fd)) << "only the directory is the same";
    }
    EXPECT_EQ(files_in("shared"), 2U) << "the probe was left behind";
    std::ifstream in(mine.path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "abc");
}

TEST(Probe, TakesSamplesWhereItMayNotMakeAFile)
{
    int const version = ::open("/proc/version", O_RDONLY | O_CLOEXEC);
    int const again = ::open("/proc/version", O_RDONLY | O_CLOEXEC);
    int const other = ::open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
    Probe const probe("/proc/version", version);
    EXPECT_TRUE(confirms(probe.evidence(), "/proc/version", again));
    EXPECT_FALSE(confirms(probe.evidence(), "/proc/version", other)) << "other content";
    Place const disk("own disk");
    EXPECT_FALSE(confirms(probe.evidence(), disk.path, disk.fd)) << "no host shares that";
    // What one host sees on its own disk it may serve to another.
    auto served = probe.evidence();
    auto const local = Reach::one_host;
    std::memcpy(served.data() + offsetof(FileIdentity, reach), &local, sizeof local);
    EXPECT_TRUE(confirms(served, "/proc/version", again));
    for (int const fd : {version, again, other}) ::close(fd);
}

}  // namespace
}  // namespace tapioca::target
