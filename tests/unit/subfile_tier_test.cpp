// The directory of a set on a tier, and its catalogue entry: made by several at once, read as it was written, and not
// taken from those who may not write to the file.
#include <cstdlib>
#include <thread>

#include <sys/stat.h>

#include "subfile/tier_place.hpp"
#include "support/subfile_sets.hpp"

namespace tapioca::subfile {
namespace {

using test::failure_of;
using test::some_set;

class TierPlaceTest : public testing::Test {
protected:
    [[nodiscard]] core::Status make(int like = -1) const { return make_tier_place(place_, some_set, facts_, like); }
    [[nodiscard]] std::string why_not_found(int like = -1) const
    {
        auto const found = find_tier_place(place_, some_set, like);
        return found ? *found ? "found" : "nothing" : found.error().text;
    }
    void put(std::string const& name, std::string const& text = "data") const
    {
        test::put_file(place_ + "/" + name, std::as_bytes(std::span(text)));
    }
    [[nodiscard]] mode_t mode_of(std::string const& path) const
    {
        struct stat facts = {};
        EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
        return facts.st_mode & 0777;
    }
    [[nodiscard]] std::size_t names() const
    {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(place_), {}));
    }

    test::SetScratch const scratch_;
    std::string const tier_ = scratch_.path("");
    std::string const place_ = tier_place(tier_, some_set);
    PlaceFacts const facts_ = {"ssd:/scratch", "/files/a.nc"};
};

TEST_F(TierPlaceTest, IsFoundAsItWasMade)
{
    EXPECT_EQ(why_not_found(), "nothing");
    ::setenv("SLURM_JOB_ID", "4711", 1);
    EXPECT_EQ(failure_of(make()), "");
    ::unsetenv("SLURM_JOB_ID");
    EXPECT_TRUE(place_.ends_with("/tapioca-5e070000000000000000000000000000.set"));
    put("subfile.10");
    put("subfile.9");
    put("subfile.09");
    put("subfile.x");
    auto const found = find_tier_place(place_, some_set);
    ASSERT_TRUE(found && *found);
    auto const& entry = (*found)->entry;
    EXPECT_EQ(entry.identity, some_set);
    EXPECT_STREQ(entry.tier, "ssd:/scratch");
    EXPECT_STREQ(entry.path, "/files/a.nc");
    EXPECT_STREQ(entry.job, "4711");
    EXPECT_STRNE(entry.host, "");
    EXPECT_EQ(entry.process, static_cast<std::uint64_t>(::getpid()));
    EXPECT_EQ((*found)->owner, ::geteuid());
    EXPECT_EQ((*found)->subfiles, (std::vector<std::uint32_t>{9, 10}));
    EXPECT_EQ(mode_of(place_), 0700U);
}

TEST_F(TierPlaceTest, BelongsToTheFirstWhoMakesIt)
{
    std::vector<std::thread> makers;
    std::vector<SetId> places(8);
    for (auto& place : places)
        makers.emplace_back([&] {
            EXPECT_EQ(failure_of(make()), "");
            auto const found = find_tier_place(place_, some_set);
            if (found && *found) place = (*found)->entry.place;
        });
    for (auto& maker : makers) maker.join();
    EXPECT_NE(places[0], SetId());
    for (auto const& place : places) EXPECT_EQ(place, places[0]);
    EXPECT_EQ(names(), 1U) << "nothing but the entry is left";
}

TEST_F(TierPlaceTest, IsForThoseWhoMayUseTheFile)
{
    test::put_file(scratch_.path("a.nc"), {});
    core::Descriptor const file(::open(scratch_.path("a.nc").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::fchmod(file.get(), 0666), 0);
    EXPECT_EQ(failure_of(make(file.get())), "");
    EXPECT_EQ(mode_of(place_), 0775U) << "never everybody's to write to";
    EXPECT_EQ(mode_of(place_ + "/catalogue"), 0664U);
    EXPECT_TRUE(open_on_tier(place_, 3, O_RDWR | O_CREAT));
    EXPECT_EQ(mode_of(place_ + "/subfile.3"), 0664U);
    EXPECT_EQ(failure_of(make(file.get())), "");
}

TEST_F(TierPlaceTest, IsNotTakenFromOthers)
{
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make a directory of another user";
    test::put_file(scratch_.path("a.nc"), {});
    core::Descriptor const file(::open(scratch_.path("a.nc").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::fchmod(file.get(), 0664), 0);
    ASSERT_EQ(failure_of(make(file.get())), "");
    ASSERT_EQ(::chown(place_.c_str(), 4242, 77), 0);
    EXPECT_NE(why_not_found().find("belongs to user 4242"), std::string::npos);
    EXPECT_NE(failure_of(make(file.get())).find("belongs to user 4242"), std::string::npos);
    EXPECT_NE(why_not_found(file.get()).find("belongs to user 4242"), std::string::npos);
    ASSERT_EQ(::chown(scratch_.path("a.nc").c_str(), 1, 77), 0);
    EXPECT_EQ(why_not_found(file.get()), "found") << "the file's group may write to it";
    ASSERT_EQ(::fchmod(file.get(), 0644), 0);
    EXPECT_NE(why_not_found(file.get()), "found");
    ASSERT_EQ(::chown(scratch_.path("a.nc").c_str(), 4242, 1), 0);
    EXPECT_EQ(why_not_found(file.get()), "found") << "it is the owner's";
    put("subfile.1");
    EXPECT_FALSE(open_on_tier(place_, 1, O_RDONLY)) << "it could be a link to a file of root";
    ASSERT_EQ(::chmod(place_.c_str(), 0777), 0);
    EXPECT_NE(why_not_found(file.get()).find("everybody may write to it"), std::string::npos);
}

TEST_F(TierPlaceTest, WhatIsInTheWayIsNamed)
{
    std::filesystem::create_directory(scratch_.path("elsewhere"));
    std::filesystem::create_symlink(scratch_.path("elsewhere"), place_);
    for (auto const& text : {why_not_found(), failure_of(make())})
        EXPECT_NE(text.find("in the way"), std::string::npos);
    EXPECT_FALSE(open_on_tier(place_, 0, O_RDWR | O_CREAT));
    EXPECT_FALSE(remove_tier_place(place_));
    std::filesystem::remove(place_);
    test::put_file(place_, {});
    EXPECT_NE(why_not_found().find("in the way"), std::string::npos);
    std::filesystem::remove(place_);
    EXPECT_EQ(make_tier_place(tier_place(scratch_.path("missing"), some_set), some_set, facts_).error().code,
              Errc::not_found);
}

TEST_F(TierPlaceTest, WhatCannotBeSaidInFullIsRefused)
{
    EXPECT_EQ(make_tier_place(place_, some_set, {"ssd:/s", "/" + std::string(4095, 'x')}).error().code,
              Errc::unsupported);
    EXPECT_EQ(make_tier_place(place_, some_set, {std::string(longest_tier + 1, 'x'), "/a"}).error().code,
              Errc::unsupported);
}

TEST_F(TierPlaceTest, ADamagedEntryIsNotBelieved)
{
    ASSERT_EQ(failure_of(make()), "");
    auto const path = place_ + "/catalogue";
    auto const sound = test::file_bytes(path);
    ASSERT_EQ(sound.size(), sizeof(CatalogueEntry));
    auto const with = [&](auto const& change, bool seals = true) {
        auto bytes = sound;
        auto& entry = *reinterpret_cast<CatalogueEntry*>(bytes.data());
        change(entry);
        if (seals) entry.checksum = stage::checksum_of(&entry, offsetof(CatalogueEntry, checksum));
        test::put_file(path, bytes);
        return why_not_found();
    };
    EXPECT_EQ(with([](auto&) {}), "found");
    for (std::size_t at = 0; at < sound.size(); at += 37)
        EXPECT_NE(with([&](auto& entry) { reinterpret_cast<char*>(&entry)[at] ^= 1; }, false), "found") << at;
    EXPECT_NE(with([](auto& entry) { entry.version = 2; }).find("version 2"), std::string::npos);
    EXPECT_NE(with([](auto& entry) { entry.bytes = 64; }).find("size"), std::string::npos);
    EXPECT_NE(with([](auto& entry) { entry.identity[3] = std::byte{1}; }).find("another set"), std::string::npos);
    EXPECT_NE(with([](auto& entry) { std::memset(entry.host, 'x', 64); }).find("no end"), std::string::npos);
    EXPECT_NE(with([](auto& entry) { std::memset(entry.job, 'x', 64); }).find("no end"), std::string::npos);
    EXPECT_NE(with([](auto& entry) { std::memset(entry.tier, 'x', 256); }).find("no end"), std::string::npos);
    EXPECT_NE(with([](auto& entry) { std::memset(entry.path, '/', 4096); }).find("no end"), std::string::npos);
    EXPECT_NE(with([](auto& entry) { entry.path[0] = 'x'; }).find("names no file"), std::string::npos);
    for (auto const size : {std::size_t{0}, std::size_t{15}, sound.size() - 1, sound.size() + 1}) {
        auto bytes = sound;
        bytes.resize(size);
        test::put_file(path, bytes);
        EXPECT_NE(why_not_found().find("damaged"), std::string::npos) << size;
    }
    EXPECT_FALSE(make()) << "what is damaged is not replaced";
    std::filesystem::remove(path);
    std::filesystem::create_symlink("/dev/null", path);
    EXPECT_NE(why_not_found(), "found");
    std::filesystem::remove(path);
    EXPECT_EQ(why_not_found(), "nothing") << "somebody is just making it";
    put("subfile.0");
    EXPECT_NE(why_not_found().find("no catalogue entry"), std::string::npos);
    EXPECT_FALSE(make()) << "nobody knows whose data this is";
}

TEST_F(TierPlaceTest, ItsSubfilesArePlainFiles)
{
    ASSERT_EQ(failure_of(make()), "");
    EXPECT_EQ(open_on_tier(place_, 0, O_RDONLY).error().code, Errc::not_found);
    test::put_file(scratch_.path("other"), {});
    std::filesystem::create_symlink(scratch_.path("other"), place_ + "/subfile.0");
    EXPECT_FALSE(open_on_tier(place_, 0, O_RDWR | O_CREAT));
    ASSERT_EQ(::mkfifo((place_ + "/subfile.1").c_str(), 0600), 0);
    EXPECT_FALSE(open_on_tier(place_, 1, O_RDONLY));
    auto const file = open_on_tier(place_, 2, O_RDWR | O_CREAT);
    ASSERT_TRUE(file);
    EXPECT_EQ(::pwrite(file->get(), "data", 4, 0), 4);
    EXPECT_TRUE(open_on_tier(place_, 2, O_RDWR | O_TRUNC));
    EXPECT_EQ(std::filesystem::file_size(place_ + "/subfile.2"), 0U);
}

TEST_F(TierPlaceTest, GoesWithItsLastSubfile)
{
    ASSERT_EQ(failure_of(make()), "");
    for (auto const* const name : {"subfile.0", "subfile.1", "subfile.2", "catalogue.new-5e"}) put(name);
    EXPECT_EQ(failure_of(remove_from_tier(place_, {0, 2, 7})), "");
    auto const found = find_tier_place(place_, some_set);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->subfiles, std::vector<std::uint32_t>{1});
    EXPECT_EQ(failure_of(remove_from_tier(place_, {1})), "");
    EXPECT_FALSE(std::filesystem::exists(place_));
    EXPECT_EQ(failure_of(remove_from_tier(place_, {1})), "");
    ASSERT_EQ(failure_of(make()), "");
    put("subfile.3");
    put("notes");
    EXPECT_EQ(failure_of(remove_tier_place(place_)), "");
    EXPECT_EQ(names(), 1U) << "a file of somebody's own stays";
    EXPECT_EQ(why_not_found(), "nothing");
}

TEST_F(TierPlaceTest, TheCatalogueHasAllOfATier)
{
    EXPECT_EQ(read_catalogue(scratch_.path("missing")).error().code, Errc::not_found);
    auto const id_of = [](int i) { return SetId{static_cast<std::byte>(i)}; };
    for (int i = 1; i <= 3; ++i)
        ASSERT_EQ(failure_of(make_tier_place(tier_place(tier_, id_of(i)), id_of(i), facts_)), "");
    for (auto const* const name : {"tapioca-x.set", "tapioca-5e070000000000000000000000000000", "other"})
        std::filesystem::create_directory(scratch_.path(name));
    // One that lies under the name of another.
    std::filesystem::rename(tier_place(tier_, id_of(2)), tier_place(tier_, id_of(9)));
    auto const catalogue = read_catalogue(tier_);
    ASSERT_TRUE(catalogue);
    ASSERT_EQ(catalogue->places.size(), 2U);
    EXPECT_EQ(catalogue->places[0].entry.identity, id_of(1));
    EXPECT_EQ(catalogue->places[1].entry.identity, id_of(3));
    ASSERT_EQ(catalogue->damaged.size(), 1U);
    EXPECT_NE(catalogue->damaged[0].find("another set"), std::string::npos);
}

TEST(JobName, IsThatOfTheBatchSystem)
{
    ::unsetenv("SLURM_JOB_ID");
    ::setenv("PBS_JOBID", "12.server", 1);
    EXPECT_EQ(job_name(), "12.server");
    ::unsetenv("PBS_JOBID");
}

}  // namespace
}  // namespace tapioca::subfile
