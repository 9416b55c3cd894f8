// The stub of a set of subfiles: what is written is read back, and nothing else is taken for one.
#include <climits>

#include <sys/stat.h>

#include "subfile/stub.hpp"
#include "support/subfile_sets.hpp"

namespace tapioca::subfile {
namespace {

using test::SetScratch;

Stub some_stub()
{
    return {test::some_set, "a.nc.subfiles"};
}

TEST(Stub, IsReadAsItWasWritten)
{
    auto const text = to_text(some_stub());
    EXPECT_EQ(text.size(), stub_bytes);
    EXPECT_EQ(text.substr(0, beginning_bytes + 1), "        \n");
    EXPECT_TRUE(text.substr(beginning_bytes + 1).starts_with("TAPIOCA subfile set, version 1\n"));
    EXPECT_EQ(text.back(), '\n');
    auto const stub = parse_stub(text);
    ASSERT_TRUE(stub);
    ASSERT_TRUE(*stub);
    EXPECT_EQ((*stub)->identity, test::some_set);
    EXPECT_EQ((*stub)->directory, "a.nc.subfiles");
}

TEST(Stub, EveryChangeOfItsTextIsNoticed)
{
    auto const text = to_text(some_stub());
    for (std::size_t i = 0; i < text.size(); ++i) {
        auto changed = text;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        auto const stub = parse_stub(changed);
        bool const same = stub && *stub && (*stub)->directory == "a.nc.subfiles";
        EXPECT_EQ(same, i <= beginning_bytes) << "byte " << i;
    }
}

TEST(Stub, OtherFilesAreNone)
{
    auto const text = to_text(some_stub());
    for (auto const& other : {std::string(), std::string(stub_bytes, '\0'), text + "\n", text.substr(0, stub_bytes - 1),
                              text.substr(beginning_bytes + 1) + std::string(beginning_bytes + 1, '\n')}) {
        auto const stub = parse_stub(other);
        EXPECT_TRUE(stub && !*stub);
    }
}

/// The text with something replaced, and a checksum that fits.
std::string with(std::string const& what, std::string const& by)
{
    auto text = to_text(some_stub());
    text.replace(text.find(what), what.size(), by);
    auto const keeps = beginning_bytes + 1;
    auto const key = text.rfind("checksum: ");
    text.erase(key);
    text.resize(stub_bytes - 27, '\n');
    auto const sum = stage::checksum_of(text.data() + keeps, text.size() - keeps);
    char line[40];
    std::snprintf(line, sizeof line, "checksum: %016llx\n", static_cast<unsigned long long>(sum));
    return text + line;
}

TEST(Stub, OfALaterVersionIsRefused)
{
    ASSERT_TRUE(parse_stub(with("version 1", "version 1")));
    auto const later = parse_stub(with("version 1", "version 2"));
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().code, Errc::unsupported);
}

TEST(Stub, LeadsOnlyToADirectoryBesideIt)
{
    for (auto const* const name : {"../a.subfiles", "/a.subfiles", "b/a.subfiles", "a.subfiler", ".subfiles", ""})
        EXPECT_FALSE(parse_stub(with("directory: a.nc.subfiles", std::string("directory: ") + name))) << name;
    EXPECT_FALSE(parse_stub(with("directory: a.nc", "directory: " + std::string(255 - 8, 'x'))));
    EXPECT_TRUE(parse_stub(with("directory: a.nc", "directory: " + std::string(255 - 9, 'x'))));
    EXPECT_FALSE(parse_stub(with("identity: 5e07", "identity: 5e0g")));
    EXPECT_FALSE(parse_stub(with("identity: 5e07", "identity: 5e0")));
    EXPECT_FALSE(parse_stub(with("identity: 5e07", "identity: 5E07")));
}

TEST(Stub, NamesADirectoryOfItsOwn)
{
    EXPECT_EQ(directory_name("/some/where/a.nc"), "a.nc.subfiles");
    EXPECT_EQ(beside("/some/where/a.nc", "a.nc.subfiles"), "/some/where/a.nc.subfiles");
    EXPECT_EQ(beside("a.nc", "a.nc.subfiles"), "a.nc.subfiles");
    std::string const longest(NAME_MAX, 'x');
    EXPECT_EQ(directory_name("/d/" + longest.substr(9)), longest.substr(9) + ".subfiles");
    EXPECT_LE(directory_name("/d/" + longest).size(), static_cast<std::size_t>(NAME_MAX));
    EXPECT_NE(directory_name("/d/" + longest), directory_name("/d/" + longest.substr(1) + "y"));
    EXPECT_NE(directory_name("a\nb"), directory_name("a_b"));
    for (auto const& path : {longest, std::string("a\nb")}) {
        auto const stub = parse_stub(to_text({test::some_set, directory_name(path)}));
        ASSERT_TRUE(stub && *stub);
        EXPECT_EQ((*stub)->directory, directory_name(path));
    }
}

TEST(Stub, BeginsAsTheFileDoes)
{
    SetScratch const scratch;
    auto const path = scratch.path("a.nc");
    test::put_file(path, std::vector<std::byte>(5000, std::byte{1}));
    core::Descriptor const file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(write_stub(file.get(), some_stub()));
    auto const begins_with = [&](std::string const& first, std::string const& stored) {
        EXPECT_EQ(test::failure_of(write_beginning(file.get(), std::as_bytes(std::span(first)))), "");
        auto const bytes = test::file_bytes(path);
        std::string const text(reinterpret_cast<char const*>(bytes.data()), bytes.size());
        EXPECT_EQ(text, stored + to_text(some_stub()).substr(beginning_bytes));
        auto const stub = find_stub(path);
        EXPECT_TRUE(stub && *stub);
    };
    begins_with(std::string("CDF\5\0\0\0\0", 8), std::string("CDF\5\0\0\0\0", 8));
    begins_with("\x89HDF\r\n\x1a\n and more", "\x89HDF\r\n\x1a\n");
    begins_with("1234567", "        ");
    begins_with("", "        ");
    begins_with(std::string(8, '\0'), "        ");
}

TEST(Stub, IsAPlainFile)
{
    SetScratch const scratch;
    auto const nothing = [&](std::string const& name) {
        auto const stub = find_stub(scratch.path(name));
        return stub && !*stub;
    };
    EXPECT_TRUE(nothing("missing"));
    std::filesystem::create_directory(scratch.path("directory"));
    EXPECT_TRUE(nothing("directory"));
    ASSERT_EQ(::mkfifo(scratch.path("fifo").c_str(), 0600), 0);
    EXPECT_TRUE(nothing("fifo"));
    auto const text = to_text(some_stub());
    test::put_file(scratch.path("stub"), std::as_bytes(std::span(text)));
    EXPECT_FALSE(nothing("stub"));
}

}  // namespace
}  // namespace tapioca::subfile
