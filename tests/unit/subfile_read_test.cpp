// How sets are read: where bytes are known to be covered, pieces that go straight to their places, and reads of what
// was written as it is.
#include <sys/resource.h>

#include "subfile/set_target.hpp"
#include "subfile/straight.hpp"
#include "support/subfile_sets.hpp"

namespace tapioca::subfile {
namespace {

using test::expect;
using test::failure_of;
using test::SetBytes;
using test::SetJob;
using test::SetScratch;
using test::some_set;

/// `count` pieces of `length` bytes, `stride` apart.
std::vector<Extent> comb(std::int64_t begin, std::int64_t length, std::int64_t stride, int count)
{
    std::vector<Extent> extents;
    for (int i = 0; i < count; ++i) extents.push_back({begin + i * stride, length});
    return extents;
}

class Reads : public testing::Test {
protected:
    SetTarget& set() { return set_; }
    SetBytes read(std::int64_t begin, std::size_t bytes)
    {
        SetBytes to(bytes, std::byte{0xA5});
        EXPECT_EQ(expect(set_.read(begin, std::span(to))), bytes);
        return to;
    }
    std::optional<std::vector<StraightPiece>> straight(std::vector<Extent> const& extents)
    {
        EXPECT_EQ(failure_of(set_.look()), "");
        return straight_pieces(set_, *test::variables_of({extents}).front(), 0);
    }

    SetScratch scratch_;
    std::string directory_ = scratch_.path("a.subfiles");
    SetJob job_{directory_, true, 2};
    SetTarget set_{nullptr, directory_, some_set, target::OpenMode::update};
};

TEST_F(Reads, HolesAreZerosEvenIfOthersWereWrittenTwice)
{
    auto const twice = comb(0, 4, 8, 400);
    job_.advance();
    job_.write(job_.form({twice, twice}), 0, std::string(3200, 'x'));
    EXPECT_EQ(failure_of(set().grow(3200)), "");
    auto const bytes = read(0, 3200);  // as many as were written
    for (std::size_t i = 0; i < 3200; ++i) ASSERT_EQ(bytes[i], std::byte(i % 8 < 4 ? 'x' : 0)) << i;
}

TEST_F(Reads, LargePiecesInAnyOrder)
{
    constexpr std::int64_t piece = 5000;
    constexpr int count = 300;
    job_.advance();
    std::string data;
    for (int i = 0; i < count; ++i) data += std::string(piece, static_cast<char>('a' + i % 26));
    job_.write(job_.form({comb(piece, piece, 2 * piece, count)}, 1), 0, data, 1);
    job_.write(job_.form({comb(0, piece, 2 * piece, count)}, 0), 0, std::string(count * piece, '-'), 0);
    auto const bytes = read(100, static_cast<std::size_t>(2 * count * piece - 100));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        auto const offset = static_cast<std::int64_t>(i) + 100;
        auto const number = offset / piece;
        ASSERT_EQ(static_cast<char>(bytes[i]), number % 2 == 0 ? '-' : static_cast<char>('a' + number / 2 % 26)) << i;
    }
}

TEST_F(Reads, GoStraightToWhatWasWrittenAsItIs)
{
    auto const pieces = comb(0, 4, 8, 100);
    job_.advance();
    job_.write(job_.form({pieces}), 0, std::string(400, 'x'));
    auto const found = straight(pieces);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 1U);
    EXPECT_EQ(found->front().length, 400);
    SetBytes bytes(400);
    EXPECT_EQ(failure_of(read_piece(found->front(), bytes.data())), "");
    EXPECT_EQ(bytes, SetBytes(400, std::byte{'x'}));
    EXPECT_FALSE(straight(comb(0, 4, 8, 99))) << "fewer";
    EXPECT_FALSE(straight(comb(1, 4, 8, 100))) << "elsewhere";
    job_.write_at(9, "y");
    EXPECT_FALSE(straight(pieces)) << "something has come over it";
}

TEST_F(Reads, DoNotGoStraightToWhatAnotherGroupMayHaveWrittenAtTheSameTime)
{
    auto const pieces = comb(0, 4, 8, 100);
    job_.advance();
    job_.write(job_.form({pieces}, 0), 0, std::string(400, 'x'), 0);
    job_.write(job_.form({{{8, 1}}}, 1), 0, "y", 1);
    EXPECT_FALSE(straight(pieces));
}

TEST_F(Reads, DoNotGoStraightToWhatWasCutOff)
{
    auto const pieces = comb(0, 4, 8, 100);
    job_.advance();
    job_.write(job_.form({pieces}), 0, std::string(400, 'x'));
    job_.cut(500);
    EXPECT_FALSE(straight(pieces));
}

TEST_F(Reads, GoStraightToLongStretches)
{
    std::size_t const half = 200'000;
    job_.advance();
    job_.write(job_.form({{{0, static_cast<std::int64_t>(half)}}}, 0), 0, std::string(half, 'a'), 0);
    job_.write(job_.form({{{static_cast<std::int64_t>(half), static_cast<std::int64_t>(half)}}}, 1), 0,
               std::string(half, 'b'), 1);
    auto const both = straight({{10, 2 * static_cast<std::int64_t>(half) - 20}});
    ASSERT_TRUE(both);
    EXPECT_EQ(both->size(), 2U);
    SetBytes bytes(2 * half - 20);
    for (auto const& piece : *both) EXPECT_EQ(failure_of(read_piece(piece, bytes.data())), "");
    EXPECT_EQ(bytes, read(10, bytes.size()));
    EXPECT_FALSE(straight({{10, 2 * static_cast<std::int64_t>(half)}})) << "beyond the end";
}

TEST_F(Reads, FailOnceTheSetIsGone)
{
    job_.write_at(0, "data");
    EXPECT_EQ(failure_of(set().grow(100)), "");
    EXPECT_EQ(failure_of(job_.complete()), "");
    EXPECT_EQ(read(0, 4), (SetBytes{std::byte{'d'}, std::byte{'a'}, std::byte{'t'}, std::byte{'a'}}));
    EXPECT_EQ(failure_of(remove_set(directory_)), "");  // as a join does
    SetBytes to(4);
    EXPECT_NE(failure_of(set().Target::read(0, std::span<std::byte>(to)).map([](auto) {})).find("open the file again"),
              std::string::npos);
    EXPECT_NE(failure_of(set().Target::write(0, std::span<std::byte const>(to))).find("open the file again"),
              std::string::npos);
    EXPECT_FALSE(set().find(0, 4)) << "nor from memory, by another thread";
}

TEST_F(Reads, FailIfTheLastLookHasFailed)
{
    job_.write_at(0, "data");
    EXPECT_EQ(failure_of(job_.complete()), "");
    EXPECT_EQ(failure_of(set().look()), "");
    EXPECT_EQ(expect(set().find(0, 4)).size(), 1U);
    test::put_file(directory_ + "/index", SetBytes(5));
    EXPECT_NE(failure_of(set().look()), "");
    EXPECT_FALSE(set().find(0, 4)) << "not a set without chunks";
}

TEST_F(Reads, TakeMoreSubfilesThanTheProcessMayHaveFilesOpen)
{
    constexpr std::int64_t count = 60;
    SetJob many(scratch_.path("many.subfiles"), true, count);
    many.advance();
    for (std::int64_t i = 0; i < count; ++i) {
        auto const group = static_cast<std::size_t>(i);
        many.write(many.form({{{10 * i, 10}}}, group), 0, std::string(10, static_cast<char>('a' + i % 26)), group);
    }
    EXPECT_EQ(failure_of(many.complete()), "");
    rlimit limit = {};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    auto const before = limit;
    limit.rlim_cur = 48;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    SetTarget set(nullptr, scratch_.path("many.subfiles"), some_set, target::OpenMode::read);
    SetBytes bytes(10 * count);
    EXPECT_EQ(expect(set.Target::read(0, std::span<std::byte>(bytes))), bytes.size());
    ::setrlimit(RLIMIT_NOFILE, &before);
    for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], std::byte('a' + i / 10 % 26)) << i;
}

}  // namespace
}  // namespace tapioca::subfile
