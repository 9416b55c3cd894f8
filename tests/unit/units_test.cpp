// Byte counts as text, rounding and "did you mean".
#include "core/units.hpp"

#include <array>

#include <gtest/gtest.h>

#include "core/result.hpp"

namespace tapioca::core {
namespace {

TEST(ParseBytes, TakesPlainNumbersAndPowersOf1024)
{
    EXPECT_EQ(parse_bytes("0"), 0U);
    EXPECT_EQ(parse_bytes("4096"), 4096U);
    EXPECT_EQ(parse_bytes("7b"), 7U);
    EXPECT_EQ(parse_bytes("64K"), 64 * KiB);
    EXPECT_EQ(parse_bytes("64k"), 64 * KiB);
    EXPECT_EQ(parse_bytes("64KB"), 64 * KiB);
    EXPECT_EQ(parse_bytes("16MiB"), 16 * MiB);
    EXPECT_EQ(parse_bytes("16mib"), 16 * MiB);
    EXPECT_EQ(parse_bytes("5g"), 5 * GiB);
    EXPECT_EQ(parse_bytes("2T"), 2048 * GiB);
}

TEST(ParseBytes, RefusesEverythingElse)
{
    for (auto const* const text : {"", " ", "K", "-1", "+1", "1.5M", "4 K", "4X", "4Kx", "4iB", "0x10", "4MM", "1e6",
                                   "4096 ", "\n", "99999999999999999999"})
        EXPECT_EQ(parse_bytes(text), std::nullopt) << '"' << text << '"';
}

TEST(ParseBytes, NeverOverflowsSilently)
{
    EXPECT_EQ(parse_bytes("18446744073709551615"), UINT64_MAX);
    EXPECT_EQ(parse_bytes("18446744073709551616"), std::nullopt);
    EXPECT_EQ(parse_bytes("16777215T"), std::uint64_t{16777215} << 40);
    EXPECT_EQ(parse_bytes("16777216T"), std::nullopt);
    EXPECT_EQ(parse_bytes("18014398509481984K"), std::nullopt);
}

TEST(FormatBytes, ReadsLikePeopleWrite)
{
    EXPECT_EQ(format_bytes(0), "0 B");
    EXPECT_EQ(format_bytes(38), "38 B");
    EXPECT_EQ(format_bytes(4096), "4 KiB");
    EXPECT_EQ(format_bytes(16 * MiB), "16 MiB");
    EXPECT_EQ(format_bytes(GiB + GiB / 2), "1.5 GiB");
    EXPECT_EQ(format_bytes(UINT64_MAX), "16384 PiB");
}

TEST(Align, RoundsToMultiples)
{
    EXPECT_EQ(align_down(0, 4096), 0);
    EXPECT_EQ(align_down(4095, 4096), 0);
    EXPECT_EQ(align_down(4096, 4096), 4096);
    EXPECT_EQ(align_up(0, 4096), 0);
    EXPECT_EQ(align_up(1, 4096), 4096);
    EXPECT_EQ(align_up(4097, 4096), 8192);
}

TEST(Nearest, FindsTheNameWithTheFewestChanges)
{
    std::array<std::string_view, 3> const names = {"buffers", "buffersize", "nbaggr"};
    EXPECT_EQ(nearest("bufersize", names), "buffersize");
    EXPECT_EQ(nearest("BUFFER", names), "buffers");
    EXPECT_EQ(nearest("nbagr", names), "nbaggr");
    EXPECT_EQ(edit_distance("", "abc"), 3U);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Failure, KeepsTheFirst)
{
    Status kept;
    keep_first(kept, {});
    EXPECT_TRUE(kept);
    keep_first(kept, fail_errno(ENOSPC, "writing"));
    keep_first(kept, fail(Errc::io, "later"));
    ASSERT_FALSE(kept);
    EXPECT_EQ(kept.error().code, Errc::no_space);
    EXPECT_EQ(kept.error().sys_errno, ENOSPC);
    EXPECT_EQ(kept.error().text, "writing: No space left on device");
}

TEST(Failure, NamesTheKindOfEveryErrno)
{
    EXPECT_EQ(errc_of(ENOENT), Errc::not_found);
    EXPECT_EQ(errc_of(ENOTDIR), Errc::not_found);
    EXPECT_EQ(errc_of(EACCES), Errc::permission);
    EXPECT_EQ(errc_of(EROFS), Errc::permission);
    EXPECT_EQ(errc_of(EISDIR), Errc::is_directory);
    EXPECT_EQ(errc_of(EDQUOT), Errc::no_space);
    EXPECT_EQ(errc_of(EFBIG), Errc::no_space);
    EXPECT_EQ(errc_of(ENOMEM), Errc::memory);
    EXPECT_EQ(errc_of(EIO), Errc::io);
    EXPECT_EQ(errc_of(ELOOP), Errc::io);
}

}  // namespace
}  // namespace tapioca::core
