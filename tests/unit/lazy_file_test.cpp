// The file as one rank accesses it: opened when it is needed, opened again after it was closed, and never another file.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "target/lazy_file.hpp"

namespace tapioca::target {
namespace {

namespace fs = std::filesystem;

/// A file with a few bytes, in the test's own directory.
class Lazy : public testing::Test {
protected:
    Lazy()
    {
        std::ofstream(path_) << "bytes";
        auto const opened = open_file(path_, OpenMode::read);
        expected_ = {path_, OpenMode::update, *identity_of((*opened)->descriptor()), "elsewhere", false};
        file_.expect(expected_);
    }
    ~Lazy() override { fs::remove(path_); }

    void write(Target& target) { ASSERT_TRUE(target.write(0, std::as_bytes(std::span("BY", 2)))); }
    [[nodiscard]] std::string content() const
    {
        std::string text;
        std::ifstream(path_) >> text;
        return text;
    }

    std::string path_ = "lazy_file_test";
    LazyFile::Expected expected_;
    LazyFile file_;
};

TEST_F(Lazy, FileIsOpenedWhenItIsNeededAndAgainAfterItWasClosed)
{
    EXPECT_EQ(file_.if_open(), nullptr);
    EXPECT_TRUE(file_.close()) << "nothing is open";
    for (int i = 0; i < 2; ++i) {
        auto* const target = file_.get();
        ASSERT_NE(target, nullptr);
        EXPECT_EQ(file_.get(), target) << "it is opened once";
        EXPECT_EQ(file_.if_open(), target);
        EXPECT_EQ(target->size().value_or(0), 5U);
        EXPECT_TRUE(file_.close());
        EXPECT_EQ(file_.if_open(), nullptr);
    }
}

TEST_F(Lazy, FileThatIsGoneOrReplacedIsAFailureUntilItIsBack)
{
    fs::rename(path_, path_ + ".away");
    EXPECT_EQ(file_.get(), nullptr);
    ASSERT_FALSE(file_.status());
    EXPECT_EQ(file_.status().error().code, Errc::not_found);
    EXPECT_NE(file_.status().error().text.find("rank 0 has open on elsewhere"), std::string::npos);
    std::ofstream(path_) << "other";
    EXPECT_EQ(file_.get(), nullptr);
    ASSERT_FALSE(file_.status());
    EXPECT_EQ(file_.status().error().code, Errc::mismatch);
    EXPECT_FALSE(file_.open_again());
    fs::rename(path_ + ".away", path_);
    EXPECT_NE(file_.get(), nullptr);
    EXPECT_TRUE(file_.status());
}

TEST_F(Lazy, FileTellsOfChangesAlsoWhenItIsOpenedLater)
{
    std::uint64_t when = 0;
    file_.tell_changes(std::make_shared<Changes>(&when, 0, -1));
    for (int i = 0; i < 2; ++i) {
        when = 0;
        write(*file_.get());
        EXPECT_NE(when, 0U);
        EXPECT_TRUE(file_.close());
    }
    write(*file_.get());
    when = 0;
    file_.tell_changes(nullptr);
    write(*file_.get());
    EXPECT_EQ(when, 0U);
    EXPECT_EQ(content(), "BYtes");
}

TEST_F(Lazy, FileSwallowsWritesWhereItIsToldTo)
{
    expected_.discard = true;
    file_.expect(expected_);
    write(*file_.get());
    EXPECT_EQ(content(), "bytes");
    file_.keep(*file_.open_again());
    write(*file_.get());
    EXPECT_EQ(content(), "bytes") << "also to what was opened elsewhere";
}

}  // namespace
}  // namespace tapioca::target
