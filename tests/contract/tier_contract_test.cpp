// What every tier must do: tests all kinds in the table, each at the place that it names for trying it out.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <span>

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contract/every_tier.hpp"
#include "core/units.hpp"

/// What posix_fallocate() says, if not 0.
static int error_of_allocating = 0;

/// In place of the C library's own.
extern "C" int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    if (error_of_allocating != 0) return error_of_allocating;
    static auto* const real = reinterpret_cast<int (*)(int, off_t, off_t)>(::dlsym(RTLD_NEXT, "posix_fallocate"));
    return real(fd, offset, bytes);
}

namespace tapioca::machine {
namespace {

using test::in_another_process;

class TierContract : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override
    {
        auto const traits = choose_tier(GetParam(), find_tiers());
        ASSERT_TRUE(traits) << traits.error().text;
        auto made = make_tier(*traits);
        ASSERT_TRUE(made) << made.error().text;
        tier_ = std::move(*made);
    }
    /// Files of this process in the directory where `tier_` has its own.
    [[nodiscard]] int files() const
    {
        auto const ours = "tapioca-" + std::to_string(::getpid()) + "-";
        int count = 0;
        for (auto const& entry : std::filesystem::directory_iterator(tier_->directory()))
            count += entry.path().filename().string().starts_with(ours);
        return count;
    }
    [[nodiscard]] TierMapping create(std::uint64_t bytes) const
    {
        auto mapping = tier_->create(bytes);
        EXPECT_TRUE(mapping) << mapping.error().text;
        return mapping ? std::move(*mapping) : TierMapping();
    }
    std::unique_ptr<Tier> tier_;
};

constexpr std::uint64_t some = 3 * core::MiB + 123;

TEST_P(TierContract, MemoryIsZeroedAndOfTheSizeWanted)
{
    auto const mapping = create(some);
    ASSERT_EQ(mapping.bytes(), some);
    std::span const bytes(mapping.data(), some);
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST_P(TierContract, TheFileIsTheUsersAloneAndHasAllItsBlocks)
{
    auto const mapping = create(some);
    struct stat info = {};
    ASSERT_EQ(::lstat(mapping.name().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode, S_IFREG | 0600U);
    EXPECT_GE(static_cast<std::uint64_t>(info.st_blocks) * 512, some) << "or a full device would be a signal later";
    std::filesystem::create_symlink(mapping.name(), "link");
    EXPECT_FALSE(tier_->attach("link", some)) << "others may put links where they guess a name";
    std::filesystem::remove("link");
}

TEST_P(TierContract, BytesGoBothWaysBetweenProcesses)
{
    auto const mapping = create(some);
    std::memset(mapping.data(), 7, some);
    auto const status = in_another_process([&] {
        auto const same = tier_->attach(mapping.name(), some);
        if (!same || same->data() == mapping.data()) return false;
        std::span const bytes(same->data(), some);
        bool const seen = std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{7}; });
        same->data()[some - 1] = std::byte{9};
        return seen;
    });
    EXPECT_EQ(status, 0);
    EXPECT_EQ(mapping.data()[some - 1], std::byte{9});
}

TEST_P(TierContract, UnlinkRemovesTheNameAndKeepsTheMemory)
{
    auto mapping = create(some);
    EXPECT_EQ(files(), 1);
    auto const name = mapping.name();
    auto const attached = tier_->attach(name, some);
    ASSERT_TRUE(attached);
    mapping.unlink();
    EXPECT_EQ(files(), 0);
    EXPECT_EQ(mapping.name(), "");
    mapping.data()[5] = std::byte{5};
    EXPECT_EQ(attached->data()[5], std::byte{5});
    auto const late = tier_->attach(name, some);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Errc::not_found);
    mapping.unlink();  // twice is harmless
}

TEST_P(TierContract, TheCreatorLeavesNothingBehindAndTheOthersTakeNothingAway)
{
    {
        auto const mapping = create(some);
        ASSERT_TRUE(tier_->attach(mapping.name(), some));
        EXPECT_EQ(files(), 1) << "an attached mapping is gone, but the file is not its own";
    }
    EXPECT_EQ(files(), 0);
}

TEST_P(TierContract, FlushSucceeds)
{
    auto const mapping = create(some);
    std::memset(mapping.data(), 1, some);
    EXPECT_TRUE(mapping.flush());
    EXPECT_TRUE(TierMapping().flush());
}

TEST_P(TierContract, WhatDoesNotFitIsAnErrorThatSaysWhatToDo)
{
    auto const free = free_bytes(tier_->traits());
    ASSERT_GT(free, 0U);
    for (auto const bytes : {free + core::GiB, std::uint64_t{1} << 60, std::uint64_t{1} << 63, UINT64_MAX}) {
        auto const mapping = tier_->create(bytes);
        ASSERT_FALSE(mapping) << bytes;
        EXPECT_EQ(mapping.error().code, Errc::no_space);
        EXPECT_NE(mapping.error().text.find("lower TAPIOCA_BUFFERSIZE or TAPIOCA_MEMORY"), std::string::npos)
            << mapping.error().text;
        EXPECT_NE(mapping.error().text.find(core::format_bytes(bytes)), std::string::npos) << mapping.error().text;
    }
    EXPECT_EQ(files(), 0);
}

TEST_P(TierContract, RoomThatSomebodyElseTookMeanwhileIsAnErrorAndNothingIsLeft)
{
    for (int const error : {ENOSPC, EIO}) {
        error_of_allocating = error;
        auto const mapping = tier_->create(some);
        error_of_allocating = 0;
        ASSERT_FALSE(mapping);
        EXPECT_EQ(mapping.error().sys_errno, error);
        EXPECT_EQ(files(), 0);
    }
}

TEST_P(TierContract, NoBytesAreAnEmptyMappingWithoutAFile)
{
    auto const mapping = create(0);
    EXPECT_EQ(mapping.data(), nullptr);
    EXPECT_EQ(mapping.bytes(), 0U);
    EXPECT_EQ(files(), 0);
    auto const attached = tier_->attach(mapping.name(), 0);
    ASSERT_TRUE(attached);
    EXPECT_EQ(attached->data(), nullptr);
}

TEST_P(TierContract, MoreThanTheFileHasIsNotAttached)
{
    auto const mapping = create(core::KiB);
    EXPECT_FALSE(tier_->attach(mapping.name(), core::MiB));
}

TEST_P(TierContract, MappingsMove)
{
    auto first = create(some);
    auto const* const data = first.data();
    auto const name = first.name();
    TierMapping second(std::move(first));
    EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(first.name(), "");
    EXPECT_EQ(second.data(), data);
    EXPECT_EQ(second.name(), name);
    EXPECT_EQ(second.bytes(), some);
    second = create(core::KiB);
    EXPECT_EQ(files(), 1) << "what is assigned over is gone";
    auto& alias = second;
    second = std::move(alias);
    EXPECT_EQ(second.bytes(), core::KiB);
    second = TierMapping();
    EXPECT_EQ(files(), 0);
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierContract, testing::ValuesIn(test::every_tier()), test::tier_of_test);

}  // namespace
}  // namespace tapioca::machine
