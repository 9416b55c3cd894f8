// What named memory must do on every tier, through the public interface.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>

#include <poll.h>

#include <tapioca/memory.hpp>

#include "contract/every_tier.hpp"
#include "core/units.hpp"

namespace tapioca::test {
namespace {

constexpr std::uint64_t some = 3 * core::MiB + 123;

/// What this process's names begin with, because several tests may run on a host at once.
std::string const mine = "t" + std::to_string(::getpid()) + "_";

/// The code of the error that `call` throws; ok if it throws none.
template <class Call>
Errc code_of(Call const& call)
{
    try {
        call();
    } catch (Error const& error) {
        return error.code();
    }
    return Errc::ok;
}

class MemoryContract : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override
    {
        for (auto const& name : list()) Memory::remove(tier(), mine + name);
        ASSERT_EQ(files(), 0);
    }
    [[nodiscard]] static std::string const& tier() { return GetParam(); }
    [[nodiscard]] static Memory allocate(std::string const& name = "field", std::uint64_t bytes = some)
    {
        return Memory::allocate(tier(), mine + name, bytes);
    }
    [[nodiscard]] static Memory attach(std::string const& name = "field")
    {
        return Memory::attach(tier(), mine + name);
    }
    [[nodiscard]] static bool is_there(std::string const& name = "field")
    {
        return code_of([&] { (void)attach(name); }) == Errc::ok;
    }
    static void remove(std::string const& name = "field") { Memory::remove(tier(), mine + name); }
    /// The names of this process's memory.
    [[nodiscard]] static std::vector<std::string> list()
    {
        std::vector<std::string> names;
        for (auto const& name : Memory::list(tier()))
            if (name.starts_with(mine)) names.push_back(name.substr(mine.size()));
        return names;
    }
    [[nodiscard]] static bool lasts() { return Memory::traits(tier()).persistency != Persistency::none; }
    [[nodiscard]] static std::string directory()
    {
        auto const made = machine::choose_tier(tier(), machine::find_tiers()).and_then(machine::make_tier);
        return (*made)->directory();
    }
    /// Files of memory in the tier's directory, also those that are not finished.
    [[nodiscard]] static int files()
    {
        auto const unfinished = "tapioca-" + std::to_string(::getpid()) + "-";
        int count = 0;
        for (auto const& entry : std::filesystem::directory_iterator(directory())) {
            auto const name = entry.path().filename().string();
            count += name.starts_with(unfinished) || name.find(mine) != name.npos;
        }
        return count;
    }
};

TEST_P(MemoryContract, NewMemoryIsZeroedAndHasItsNameAndSize)
{
    auto memory = allocate();
    EXPECT_EQ(memory.bytes(), some);
    EXPECT_EQ(memory.name(), mine + "field");
    EXPECT_TRUE(memory.is_allocated());
    ASSERT_EQ(memory.data().size(), some);
    EXPECT_TRUE(std::all_of(memory.data().begin(), memory.data().end(), [](std::byte b) { return b == std::byte{}; }));
    memory.free();
    EXPECT_EQ(files(), 0);
}

TEST_P(MemoryContract, WhatIsWrittenIsReadAndIsInTheMemoryItself)
{
    auto memory = allocate("field", 8 * sizeof(double));
    memory.write(sizeof(double), std::vector<double>{1, 2, 3});
    std::array<double, 2> part = {};
    memory.read(2 * sizeof(double), part);
    EXPECT_EQ(part, (std::array<double, 2>{2, 3}));
    auto const values = memory.values<double>();
    ASSERT_EQ(values.size(), 8U);
    EXPECT_EQ(values[3], 3);
    values[7] = 9;
    memory.read(7 * sizeof(double), std::span(part).first(1));
    EXPECT_EQ(part[0], 9);
    memory.free();
}

TEST_P(MemoryContract, AnotherProcessFindsItByTierAndName)
{
    auto memory = allocate();
    memory.write(some - 4, std::string("last"));
    EXPECT_EQ(in_another_process([] {
                  auto same = attach();
                  std::string text(4, ' ');
                  same.read(some - 4, text);
                  same.write(0, std::string("first"));
                  return text == "last" && same.bytes() == some;
              }),
              0);
    EXPECT_EQ(std::memcmp(memory.data().data(), "first", 5), 0);
    memory.free();
}

TEST_P(MemoryContract, AfterTheProgramItIsThereAsLongAsTheTierSays)
{
    EXPECT_EQ(in_another_process([] {
                  auto memory = allocate();
                  memory.write(5, std::string("kept"));
                  memory.flush();
                  return true;
              }),
              0);
    EXPECT_EQ(files(), lasts() ? 1 : 0);
    if (!lasts()) {
        EXPECT_EQ(code_of([] { (void)attach(); }), Errc::not_found);
        return;
    }
    std::string text(4, ' ');
    auto memory = attach();
    memory.read(5, text);
    EXPECT_EQ(text, "kept");
    memory.free();
    EXPECT_EQ(files(), 0);
}

TEST_P(MemoryContract, WhatAKilledProcessHadIsGoneWhenSomebodyLooksUnlessItLasts)
{
    for (int const look : {0, 1, 2}) {
        (void)in_another_process([] {
            auto const memory = allocate();
            return ::kill(::getpid(), SIGKILL) == 0;
        });
        ASSERT_LE(files(), 1);  // a job beside this test may have removed it
        if (look == 0) {
            EXPECT_EQ(list().empty(), !lasts());
        } else if (look == 1) {
            EXPECT_EQ(is_there(), lasts());
        } else {
            EXPECT_EQ(code_of([] { (void)allocate(); }), lasts() ? Errc::invalid_state : Errc::ok);
        }
        EXPECT_EQ(files(), lasts() ? 1 : 0);
        if (lasts()) remove();
    }
}

TEST_P(MemoryContract, TheLastThatHasItDecidesAndNotTheOneThatAllocatedIt)
{
    std::optional<Memory> first = allocate();
    std::optional<Memory> second = attach();
    first.reset();
    EXPECT_TRUE(is_there());
    EXPECT_EQ(list(), std::vector<std::string>{"field"});
    second.reset();
    EXPECT_EQ(files(), lasts() ? 1 : 0);
}

TEST_P(MemoryContract, AForkedProcessThatEndsTakesNothingAway)
{
    std::optional<Memory> memory = allocate();
    EXPECT_EQ(in_another_process([&] {
                  memory->write(0, std::string("child"));
                  memory.reset();
                  return true;
              }),
              0);
    EXPECT_TRUE(is_there());
    EXPECT_EQ(std::memcmp(memory->data().data(), "child", 5), 0);
    memory->free();
}

TEST_P(MemoryContract, FreeRemovesTheNameAndOthersKeepTheMemory)
{
    auto first = allocate();
    auto other = attach();
    first.free();
    EXPECT_FALSE(first.is_allocated());
    EXPECT_EQ(files(), 0);
    EXPECT_EQ(code_of([] { (void)attach(); }), Errc::not_found);
    other.write(0, std::string("still"));
    auto next = allocate("field", 10);
    EXPECT_EQ(next.data()[0], std::byte{});
    EXPECT_EQ(std::memcmp(other.data().data(), "still", 5), 0);
    other.free();
    EXPECT_TRUE(is_there()) << "the next one is not the other's to free";
    {
        auto const gone = std::move(other);
    }
    next.free();
    EXPECT_EQ(files(), 0);
}

TEST_P(MemoryContract, RemoveFreesWithoutAttaching)
{
    auto const memory = allocate();
    remove();
    EXPECT_EQ(files(), 0);
    EXPECT_EQ(code_of([] { remove(); }), Errc::not_found);
}

TEST_P(MemoryContract, ANameThatIsTakenIsOneClearErrorAndTheMemoryStays)
{
    auto memory = allocate();
    memory.write(0, std::string("mine"));
    try {
        (void)allocate("field", 10);
        FAIL() << "allocated twice";
    } catch (Error const& error) {
        EXPECT_EQ(error.code(), Errc::invalid_state);
        EXPECT_EQ(error.sys_errno(), EEXIST);
        EXPECT_EQ(std::string(error.what())
                      .rfind("tapioca: memory " + mine + "field of " + tier() + ": it exists already, as ", 0),
                  0U)
            << error.what();
    }
    EXPECT_EQ(std::memcmp(memory.data().data(), "mine", 4), 0);
    memory.free();
}

TEST_P(MemoryContract, OfManyThatAllocateOneNameAtOnceOneGetsIt)
{
    constexpr int many = 8;
    std::array<int, 2> start = {};
    std::array<int, 2> done = {};
    ASSERT_EQ(::pipe(start.data()), 0);
    ASSERT_EQ(::pipe(done.data()), 0);
    std::array<pid_t, many> children = {};
    for (auto& child : children)
        if (child = ::fork(); child == 0) {
            ::close(start[1]);
            ::close(done[1]);
            char c = 0;
            (void)!::read(start[0], &c, 1);  // all at once
            std::optional<Memory> memory;
            auto const code = code_of([&] { memory = allocate("field", core::MiB); });
            auto const ended = code == Errc::invalid_state ? 1 : code == Errc::ok ? 0 : 2;
            pollfd others = {done[0], 0, 0};
            if (ended == 0) (void)::poll(&others, 1, 5000);  // keeps it until all have tried
            memory.reset();
            ::_exit(ended);
        }
    ::close(start[1]);
    int lost = 0;
    for (int i = 0; i < many - 1; ++i) {
        int status = 0;
        ::wait(&status);
        lost += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    }
    EXPECT_EQ(lost, many - 1);
    ::close(done[1]);
    int status = 1;
    ::wait(&status);
    EXPECT_EQ(status, 0);
    ::close(start[0]);
    ::close(done[0]);
    EXPECT_EQ(files(), lasts() ? 1 : 0);
}

TEST_P(MemoryContract, WhatDoesNotFitIsAnErrorAndNothingIsLeft)
{
    auto const free = Memory::traits(tier()).capacity_bytes;
    for (auto const bytes :
         {free + core::GiB, std::uint64_t{1} << 60, std::uint64_t{1} << 63, UINT64_MAX - 4000, UINT64_MAX})
        try {
            (void)allocate("field", bytes);
            FAIL() << bytes;
        } catch (Error const& error) {
            EXPECT_EQ(error.code(), Errc::no_space);
            EXPECT_NE(std::string(error.what()).find("there is no room"), std::string::npos) << error.what();
        }
    EXPECT_EQ(code_of([] { (void)allocate("field", 0); }), Errc::invalid_argument);
    EXPECT_EQ(files(), 0);
}

TEST_P(MemoryContract, BytesOutOfRangeAreAnErrorAndNothingIsMoved)
{
    auto memory = allocate("field", 100);
    std::vector<std::byte> bytes(10, std::byte{7});
    std::vector<std::byte> const before = bytes;
    for (auto const offset : {std::uint64_t{91}, std::uint64_t{100}, std::uint64_t{101}, std::uint64_t{1} << 63,
                              UINT64_MAX - 9, UINT64_MAX - 4096, UINT64_MAX}) {
        EXPECT_EQ(code_of([&] { memory.write(offset, bytes); }), Errc::invalid_argument) << offset;
        EXPECT_EQ(code_of([&] { memory.read(offset, bytes); }), Errc::invalid_argument) << offset;
    }
    EXPECT_EQ(bytes, before);
    EXPECT_TRUE(std::all_of(memory.data().begin(), memory.data().end(), [](std::byte b) { return b == std::byte{}; }));
    memory.write(90, bytes);
    memory.write(100, std::span<std::byte const>());
    EXPECT_EQ(memory.data()[99], std::byte{7});
    memory.free();
}

TEST_P(MemoryContract, AnyTextOf1To64BytesIsAName)
{
    std::vector<std::string> names = {"a/b",
                                      "../x",
                                      ".",
                                      "..",
                                      "a",
                                      "A",
                                      "a b",
                                      "a\n",
                                      "%2F",
                                      "/",
                                      "\xc3\xbc",
                                      "-",
                                      "a-b",
                                      std::string("a\0b", 3),
                                      std::string(64 - mine.size(), '/')};
    std::sort(names.begin(), names.end());
    std::vector<Memory> all;
    for (auto const& name : names) {
        all.push_back(allocate(name, 10));
        all.back().write(0, std::string(1, static_cast<char>(all.size())));
    }
    EXPECT_EQ(list(), names);
    for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(attach(names[i]).data()[0], std::byte(i + 1));
    for (auto& memory : all) memory.free();
    for (auto const& name : {std::string(), std::string(65, 'x')}) {
        auto const tier = GetParam();
        EXPECT_EQ(code_of([&] { (void)Memory::allocate(tier, name, 10); }), Errc::invalid_argument);
        EXPECT_EQ(code_of([&] { (void)Memory::attach(tier, name); }), Errc::invalid_argument);
        EXPECT_EQ(code_of([&] { Memory::remove(tier, name); }), Errc::invalid_argument);
    }
    EXPECT_EQ(files(), 0);
}

void expect_all_calls_refused(Memory& memory)
{
    std::array<char, 1> byte = {};
    EXPECT_FALSE(memory.is_allocated());
    EXPECT_EQ(code_of([&] { memory.write(0, byte); }), Errc::invalid_state);
    EXPECT_EQ(code_of([&] { memory.read(0, byte); }), Errc::invalid_state);
    EXPECT_EQ(code_of([&] { (void)memory.data(); }), Errc::invalid_state);
    EXPECT_EQ(code_of([&] { memory.flush(); }), Errc::invalid_state);
    EXPECT_EQ(code_of([&] { memory.free(); }), Errc::invalid_state);
    EXPECT_EQ(code_of([&] { (void)memory.bytes(); }), Errc::invalid_state);
    EXPECT_EQ(code_of([&] { (void)memory.name(); }), Errc::invalid_state);
    EXPECT_EQ(code_of([&] { (void)memory.traits(); }), Errc::invalid_state);
}

TEST_P(MemoryContract, AFreedObjectAndOneThatWasMovedFromAreErrorsToUse)
{
    auto memory = allocate();
    auto taken = std::move(memory);
    expect_all_calls_refused(memory);  // NOLINT(bugprone-use-after-move)
    taken.free();
    expect_all_calls_refused(taken);
    memory = allocate();  // an empty object may be filled again
    EXPECT_EQ(memory.bytes(), some);
    memory.free();
}

TEST_P(MemoryContract, AssigningLetsGoOfWhatWasThere)
{
    auto memory = allocate("old");
    memory = allocate("new");
    EXPECT_EQ(is_there("old"), lasts());
    auto& alias = memory;
    memory = std::move(alias);
    EXPECT_EQ(memory.name(), mine + "new");
    memory.free();
}

TEST_P(MemoryContract, TheTraitsAreThoseOfTheTier)
{
    auto memory = allocate();
    auto const traits = memory.traits();
    EXPECT_EQ(traits.tier, tier());
    EXPECT_GT(traits.latency_s, 0);
    EXPECT_GT(traits.write_bandwidth, 0);
    EXPECT_GT(traits.read_bandwidth, 0);
    EXPECT_GT(traits.capacity_bytes, 0U);
    auto const kind = machine::find_kind(tier().substr(0, tier().find(':')));
    EXPECT_EQ(traits.persistency, kind->persistency);
    memory.flush();
    memory.free();
}

INSTANTIATE_TEST_SUITE_P(Tiers, MemoryContract, testing::ValuesIn(every_tier()), tier_of_test);

}  // namespace
}  // namespace tapioca::test
