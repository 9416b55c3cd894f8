// Stripes: Lustre's layouts byte by byte, CephFS's attributes, what FUSE hides.
#include "machine/stripes.hpp"

#include <cstring>
#include <memory>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tapioca::machine {
namespace {

using Blob = std::vector<std::byte>;

constexpr std::uint32_t v1 = 0x0BD10BD0;
constexpr std::uint32_t v3 = 0x0BD30BD0;

template <class Number>
void add(Blob& blob, Number value)
{
    auto const at = blob.size();
    blob.resize(at + sizeof value);
    std::memcpy(blob.data() + at, &value, sizeof value);
}

Blob plain(std::uint32_t magic, std::uint32_t pattern, std::uint32_t bytes, int count)
{
    Blob blob;
    add(blob, magic);
    add(blob, pattern);
    add(blob, std::uint64_t{77});
    add(blob, std::uint64_t{0});
    add(blob, bytes);
    add(blob, static_cast<std::uint16_t>(count));
    add(blob, std::uint16_t{3});
    if (magic == v3)
        for (char const c : {'p', 'o', 'o', 'l', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0'})
            add(blob, c);
    for (int i = 0; i < count && i < 100; ++i) blob.resize(blob.size() + 24);
    return blob;
}

struct Part {
    std::uint64_t begin, end;
    std::uint32_t flags;
    Blob layout;
};

Blob composite(std::vector<Part> const& parts)
{
    Blob blob;
    auto offset = static_cast<std::uint32_t>(32 + 48 * parts.size());
    add(blob, std::uint32_t{0x0BD60BD0});
    add(blob, std::uint32_t{0});
    add(blob, std::uint32_t{1});
    add(blob, std::uint16_t{0});
    add(blob, static_cast<std::uint16_t>(parts.size()));
    blob.resize(32);
    for (auto const& part : parts) {
        add(blob, std::uint32_t{1});
        add(blob, part.flags);
        add(blob, part.begin);
        add(blob, part.end);
        add(blob, offset);
        add(blob, static_cast<std::uint32_t>(part.layout.size()));
        blob.resize(blob.size() + 16);
        offset += static_cast<std::uint32_t>(part.layout.size());
    }
    for (auto const& part : parts) blob.insert(blob.end(), part.layout.begin(), part.layout.end());
    return blob;
}

/// Parses a copy that ends where memory ends, so that a sanitizer sees every byte too far.
std::optional<Stripes> parse(Blob const& blob)
{
    auto const exact = std::make_unique<std::byte[]>(blob.size());
    std::copy(blob.begin(), blob.end(), exact.get());
    return parse_lustre_layout({exact.get(), blob.size()});
}

/// A file that grows from one server over four to 48, with its beginning on the metadata server.
Blob progressive()
{
    return composite({{0, 65'536, 0x10, plain(v1, 0x100, 65'536, 0)},
                      {65'536, 1 << 26, 0x10, plain(v1, 1, 1 << 20, 1)},
                      {1 << 26, std::uint64_t{1} << 33, 0, plain(v3, 1, 1 << 20, 4)},
                      {std::uint64_t{1} << 33, UINT64_MAX, 0, plain(v3, 0x201, 4 << 20, 48)}});
}

TEST(Lustre, LayoutsTellSizeAndCount)
{
    EXPECT_EQ(parse(plain(v1, 1, 1 << 20, 8)), (Stripes{1 << 20, 8}));
    EXPECT_EQ(parse(plain(v3, 1, 16 << 20, 56)), (Stripes{16 << 20, 56}));
    EXPECT_EQ(parse(plain(v1, 1, 1 << 20, 0xFFFF)), (Stripes{1 << 20, 0})) << "all servers: how many is not said";
    EXPECT_EQ(parse(plain(v1, 0x80000001, 1 << 20, 2)), (Stripes{1 << 20, 2})) << "flags of the pattern";
}

TEST(Lustre, LayoutsOfOtherKindsAreNone)
{
    EXPECT_FALSE(parse({}));
    EXPECT_FALSE(parse(plain(0x0BD70BD0, 1, 1 << 20, 8))) << "foreign";
    EXPECT_FALSE(parse(plain(v1, 0x100, 1 << 20, 0))) << "on the metadata server";
    EXPECT_FALSE(parse(plain(v1, 1, 0, 8)));
    EXPECT_FALSE(parse(plain(v1, 1, 12'345, 8)));
    EXPECT_FALSE(parse(composite({})));
    EXPECT_FALSE(parse(composite({{0, UINT64_MAX, 0x10, plain(v1, 0x100, 65'536, 0)}})));
}

TEST(Lustre, CompositeLayoutIsThatOfItsLargestPart)
{
    EXPECT_EQ(parse(progressive()), (Stripes{4 << 20, 48}));
    // Stale mirrors, extensions and parity do not count.
    for (std::uint32_t const flag : {0x01, 0x40, 0x80})
        EXPECT_EQ(parse(composite(
                      {{0, 1 << 20, 0x10, plain(v1, 1, 65'536, 2)}, {0, UINT64_MAX, flag, plain(v1, 1, 1 << 20, 8)}})),
                  (Stripes{65'536, 2}));
}

TEST(Lustre, TruncatedLayoutsAreNeverReadBeyondTheirEnd)
{
    for (auto const& blob : {plain(v1, 1, 1 << 20, 8), plain(v3, 1, 1 << 20, 8), progressive()})
        for (std::size_t size = 0; size < blob.size(); ++size) {
            auto const found = parse(Blob(blob.begin(), blob.begin() + static_cast<std::ptrdiff_t>(size)));
            ASSERT_TRUE(size >= 30 || !found) << "from " << size << " bytes";
        }
}

TEST(Lustre, MutatedLayoutsAreNeverReadBeyondTheirEnd)
{
    std::mt19937 random(5);
    auto const pick = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
    std::array<std::uint32_t, 6> const edges = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFD0};
    for (int i = 0; i < 20'000; ++i) {
        auto blob = progressive();
        for (std::size_t n = pick(4); n > 0; --n) blob[pick(blob.size() - 1)] = static_cast<std::byte>(pick(255));
        if (pick(1) == 0) std::memcpy(blob.data() + 32 + pick(47) * 4, &edges[pick(5)], 4);
        if (pick(3) == 0) blob.resize(pick(blob.size()));
        if (auto const found = parse(blob)) {
            ASSERT_GT(found->bytes, 0);
            ASSERT_GE(found->count, 0);
        }
    }
}

TEST(Lustre, IsAskedForWhatItWouldTell)
{
    auto const layout = lustre_layout({4 << 20, 48});
    ASSERT_TRUE(layout);
    EXPECT_EQ(parse_lustre_layout(*layout), (Stripes{4 << 20, 48}));
    EXPECT_TRUE(lustre_layout({0, 4})) << "its own size";
    EXPECT_FALSE(lustre_layout({100'000, 4})) << "no multiple of 64 KiB";
    EXPECT_FALSE(lustre_layout({std::int64_t{1} << 32, 4}));
    EXPECT_FALSE(lustre_layout({1 << 20, 100'000}));
}

TEST(Ceph, StripesAreObjectsUnlessARowHasSeveral)
{
    EXPECT_EQ(ceph_stripes(4 << 20, 1, 4 << 20), (Stripes{4 << 20, 0}));
    EXPECT_EQ(ceph_stripes(65'536, 1, 4 << 20), (Stripes{4 << 20, 0}));
    EXPECT_EQ(ceph_stripes(1 << 20, 8, 4 << 20), (Stripes{1 << 20, 8}));
    EXPECT_FALSE(ceph_stripes(0, 0, 0)) << "no such attributes";
    EXPECT_EQ(ceph_layout({1 << 20, 8}), "stripe_unit=1048576 object_size=4194304 stripe_count=8");
    EXPECT_EQ(ceph_layout({8 << 20, 0}), "stripe_unit=8388608 object_size=8388608");
    EXPECT_EQ(ceph_layout({0, 3}), "stripe_count=3");
}

TEST(Storage, BlockIsNoLargerThanAStripe)
{
    auto storage = storage_profile("ceph");
    storage.block_bytes = 4 << 20;
    enter(storage, {192 * 1024, 8});
    EXPECT_EQ(storage.block_bytes, 65'536);
    EXPECT_EQ(storage.stripe_bytes % storage.block_bytes, 0);
    auto lustre = storage_profile("lustre");
    enter(lustre, {1 << 20, 8});
    EXPECT_EQ(lustre.block_bytes, 4096);
}

TEST(Storage, KnowsWhichFileSystemsAreRemote)
{
    for (auto const* const name : {"lustre", "gpfs", "beegfs", "nfs", "ceph", "gluster", "moosefs"})
        EXPECT_TRUE(storage_profile(name).remote) << name;
    for (auto const* const name : {"tmpfs", "ext", "xfs", "fuse", "unknown"})
        EXPECT_FALSE(storage_profile(name).remote) << name;
}

TEST(Fuse, TypeIsInTheListOfMounts)
{
    std::string const mounts =
        "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "40 21 0:50 / /a rw,nosuid - fuse.glusterfs host:/volume rw\n"
        "41 21 0:51 / /b rw shared:7 master:2 - fuse.ceph-fuse ceph-fuse rw\n"
        "42 21 0:52 / /c rw - fuse mfs#master:9421 rw\n"
        "43 21 0:53 / /d rw - fuse.sshfs me@there: rw\n"
        "45 21 0:54 / /f rw - fuse mfs\\043n0:9421 rw\n"
        "44 21 0:5 / /e";
    EXPECT_EQ(fuse_name(mounts, 0, 50), "gluster");
    EXPECT_EQ(fuse_name(mounts, 0, 51), "ceph");
    EXPECT_EQ(fuse_name(mounts, 0, 52), "moosefs");
    EXPECT_EQ(fuse_name(mounts, 0, 53), "fuse");
    EXPECT_EQ(fuse_name(mounts, 0, 54), "moosefs") << "as Linux writes a #";
    EXPECT_EQ(fuse_name(mounts, 0, 5), "fuse");
    EXPECT_EQ(fuse_name("", 0, 50), "fuse");
}

TEST(Create, MakesANewFileAndLeavesAnOldOneAlone)
{
    std::string const path = "striped";
    ::unlink(path.c_str());
    EXPECT_NE(create_striped(path, {1 << 20, 4}).find("has no stripes"), std::string::npos);
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
    EXPECT_NE(create_striped(path, {1 << 20, 4}).find("there already"), std::string::npos);
    EXPECT_EQ(create_striped("no/such/directory", {1 << 20, 4}), "") << "opening it will tell";
    ::unlink(path.c_str());
}

}  // namespace
}  // namespace tapioca::machine
