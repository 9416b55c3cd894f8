// Named memory in bad company: damaged, cut, linked and foreign files, full tiers, tiers of a platform file.
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tapioca/memory.hpp>

#include "attack/users.hpp"
#include "contract/every_tier.hpp"
#include "core/units.hpp"
#include "machine/tier/named.hpp"
#include "support/setting.hpp"

namespace {

/// A call of the C library that fails, with this errno; empty: none.
struct Failing {
    std::string call;
    int error = 0;
} failing;

/// The errno with which `call` fails now; 0: it does not.
int error_of_call(char const* call)
{
    return failing.call == call ? failing.error : 0;
}

/// What the C library itself does.
template <class Function>
Function real(char const* call)
{
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, call));
}

template <class Function, class... Arguments>
int call_or_fail(char const* call, Arguments... arguments)
{
    static auto const function = real<Function>(call);
    if (int const error = error_of_call(call); error != 0) {
        errno = error;
        return -1;
    }
    return function(arguments...);
}

}  // namespace

// In place of the C library's own.
extern "C" {
int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    int const error = error_of_call("posix_fallocate");
    return error != 0 ? error : real<int (*)(int, off_t, off_t)>("posix_fallocate")(fd, offset, bytes);
}
int renameat2(int from_at, char const* from, int to_at, char const* to, unsigned flags) noexcept
{
    return call_or_fail<int (*)(int, char const*, int, char const*, unsigned)>("renameat2", from_at, from, to_at, to,
                                                                               flags);
}
int unlink(char const* path) noexcept
{
    return call_or_fail<int (*)(char const*)>("unlink", path);
}
int fsync(int fd)
{
    return call_or_fail<int (*)(int)>("fsync", fd);
}
}

namespace tapioca::test {
namespace {

class Fails {
public:
    Fails(char const* call, int error) { failing = {call, error}; }
    Fails(Fails const&) = delete;
    Fails& operator=(Fails const&) = delete;
    ~Fails() { failing = {}; }
};

namespace fs = std::filesystem;

/// A directory of its own that everybody may write, as an ssd tier.
class MemoryFiles : public testing::Test {
protected:
    void SetUp() override
    {
        std::array<char, 32> name = {"/tmp/tapioca-memory-XXXXXX"};
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        directory_ = name.data();
        fs::permissions(directory_, fs::perms::all | fs::perms::sticky_bit);
        tier_ = "ssd:" + directory_;
    }
    void TearDown() override
    {
        if (mounted_) ::umount2(directory_.c_str(), MNT_DETACH);
        fs::remove_all(directory_);
    }
    [[nodiscard]] std::string path(std::string const& name = "field") const
    {
        return directory_ + "/tapioca-memory-" + std::to_string(::geteuid()) + "-ssd-" + name;
    }
    [[nodiscard]] std::size_t entries() const
    {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_), {}));
    }
    /// The line of the error that `call` throws, without what all lines of this tier begin with; empty if there is
    /// none.
    template <class Call>
    std::string error_of(Errc code, Call const& call) const
    {
        try {
            call();
        } catch (Error const& error) {
            EXPECT_EQ(error.code(), code) << error.what();
            auto const begin = "tapioca: memory field of " + tier_ + ": ";
            std::string const text = error.what();
            return text.starts_with(begin) ? text.substr(begin.size()) : text;
        }
        return "";
    }
    [[nodiscard]] std::string error_of_attaching(Errc code) const
    {
        return error_of(code, [&] { (void)Memory::attach(tier_, "field"); });
    }
    [[nodiscard]] std::string error_of_allocating(Errc code) const
    {
        return error_of(code, [&] { (void)Memory::allocate(tier_, "field", 100); });
    }
    void patch(off_t at, std::string const& bytes) const
    {
        int const fd = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
        ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), at), static_cast<ssize_t>(bytes.size()));
        ::close(fd);
    }
    std::string directory_;
    std::string tier_;
    bool mounted_ = false;
};

TEST_F(MemoryFiles, TheFileIsCalledAndMadeAsThePageSays)
{
    auto const memory = Memory::allocate(tier_, "field", 100);
    struct stat info = {};
    ASSERT_EQ(::lstat(path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode, S_IFREG | 0600U);
    EXPECT_EQ(info.st_size, 4096 + 100);
    EXPECT_EQ(info.st_nlink, 1U);
    EXPECT_EQ(entries(), 1U);
}

TEST_F(MemoryFiles, WhatIsDamagedIsAnErrorIsListedAndCanBeRemoved)
{
    auto const advice = std::string(": tapioca::Memory::remove() removes it");
    struct Damage {
        std::string text;
        std::function<void()> make;
    };
    std::vector<Damage> const all = {
        {"it does not begin like named memory", [&] { patch(0, "x"); }},
        {"another version of TAPIOCA has written it", [&] { patch(8, "\x02"); }},
        {"its head has been changed", [&] { patch(12, "\x07"); }},
        {"its head has been changed", [&] { patch(16, "\xff\xff\xff\xff\xff\xff\xff\xff"); }},
        {"it has been cut or extended", [&] { fs::resize_file(path(), 4096 + 99); }},
        {"it has been cut or extended", [&] { fs::resize_file(path(), 4096); }},
        {"it has been cut or extended", [&] { fs::resize_file(path(), 4096 + 101); }},
        {"it ends too early", [&] { fs::resize_file(path(), 31); }},
        {"it ends too early", [&] { fs::resize_file(path(), 0); }},
    };
    for (auto const& damage : all) {
        {
            auto const memory = Memory::allocate(tier_, "field", 100);
        }
        damage.make();
        auto const text = path() + " is damaged: " + damage.text + advice;
        EXPECT_EQ(error_of_attaching(Errc::io), text);
        EXPECT_EQ(error_of_allocating(Errc::io), text);
        EXPECT_EQ(Memory::list(tier_), std::vector<std::string>{"field"});
        Memory::remove(tier_, "field");
        EXPECT_EQ(entries(), 0U);
    }
}

TEST_F(MemoryFiles, WhatIsNoPlainFileOfThisUserAloneIsRefusedAndNobodyWaits)
{
    auto const victim = directory_ + "/victim";
    std::ofstream(victim) << std::string(5000, 'v');
    fs::permissions(victim, fs::perms::owner_read | fs::perms::owner_write);
    auto const refused = path() + ": not a plain file of this user alone: somebody has put it there";
    auto const expect_refused = [&] {
        EXPECT_EQ(error_of_attaching(Errc::permission), refused);
        EXPECT_EQ(error_of_allocating(Errc::permission), refused);
        EXPECT_EQ(error_of(Errc::permission, [&] { Memory::remove(tier_, "field"); }), refused);
        EXPECT_TRUE(Memory::list(tier_).empty());
        EXPECT_EQ(entries(), 2U);
        fs::remove(path());
    };
    fs::create_symlink(victim, path());
    expect_refused();
    fs::create_symlink(directory_ + "/nowhere", path());
    expect_refused();
    ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
    expect_refused();
    std::ofstream(path()) << "x";
    fs::permissions(path(), fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
    expect_refused();
    fs::create_directory(path());
    EXPECT_EQ(error_of_attaching(Errc::is_directory), "opening " + path() + ": Is a directory");
    EXPECT_EQ(error_of_allocating(Errc::is_directory), "opening " + path() + ": Is a directory");
    EXPECT_EQ(fs::file_size(victim), 5000U);
}

TEST_F(MemoryFiles, AnotherUsersFileIsNeitherUsedNorRemoved)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    ASSERT_TRUE(as_nobody([&] {
        int const fd = ::open((directory_ + "/tapioca-memory-0-ssd-field").c_str(), O_CREAT | O_RDWR, 0600);
        return fd >= 0 && ::write(fd, "x", 1) == 1;
    }));
    auto const refused = path() + ": not a plain file of this user alone: somebody has put it there";
    EXPECT_EQ(error_of_attaching(Errc::permission), refused);
    EXPECT_EQ(error_of_allocating(Errc::permission), refused);
    EXPECT_EQ(error_of(Errc::permission, [&] { Memory::remove(tier_, "field"); }), refused);
    EXPECT_EQ(fs::file_size(path()), 1U);
}

TEST_F(MemoryFiles, EveryUserHasNamesOfHisOwn)
{
    if (!is_root()) GTEST_SKIP() << needs_root;
    auto const memory = Memory::allocate(tier_, "field", 100);
    EXPECT_TRUE(as_nobody([&] {
        if (!Memory::list(tier_).empty()) return false;
        auto own = Memory::allocate(tier_, "field", 10);
        bool const both = own.bytes() == 10 && entries() == 2;
        own.free();
        return both;
    }));
    EXPECT_EQ(entries(), 1U);
}

TEST_F(MemoryFiles, AFileThatIsCutBehindItsUsersBackIsAnErrorAndNoSignal)
{
    auto memory = Memory::allocate(tier_, "field", core::MiB);
    fs::resize_file(path(), 4096 + 100);
    std::array<char, 200> text = {};
    EXPECT_EQ(error_of(Errc::io, [&] { memory.read(0, text); }), "it is damaged: it ends too early");
    memory.free();
    EXPECT_EQ(entries(), 0U);
}

TEST_F(MemoryFiles, WhoFreesTooLateDoesNotRemoveTheNextMemoryOfTheSameName)
{
    auto first = Memory::allocate(tier_, "field", 100);
    auto const late = machine::open_file(path());
    ASSERT_TRUE(late);
    first.free();
    auto const next = Memory::allocate(tier_, "field", 200);
    EXPECT_TRUE(machine::remove_name(*late, path()));
    EXPECT_EQ(Memory::attach(tier_, "field").bytes(), 200U);
}

TEST_F(MemoryFiles, ALockThatStaysDoesNotKeepFreeFromReturning)
{
    auto memory = Memory::allocate(tier_, "field", 100);
    auto const other = machine::open_file(path());
    ASSERT_TRUE(other);
    struct flock whole = {};
    whole.l_type = F_RDLCK;
    whole.l_whence = SEEK_SET;
    ASSERT_EQ(::fcntl(other->get(), F_OFD_SETLK, &whole), 0);
    memory.free();
    EXPECT_EQ(entries(), 0U);
}

TEST_F(MemoryFiles, HolesOfACopyAreFilledBeforeTheyAreWritten)
{
    {
        auto const memory = Memory::allocate(tier_, "field", core::MiB);
    }
    fs::resize_file(path(), 4096);
    fs::resize_file(path(), 4096 + core::MiB);
    struct stat info = {};
    ASSERT_EQ(::stat(path().c_str(), &info), 0);
    ASSERT_LT(static_cast<std::uint64_t>(info.st_blocks) * 512, core::MiB);
    auto const memory = Memory::attach(tier_, "field");
    ASSERT_EQ(::stat(path().c_str(), &info), 0);
    EXPECT_GE(static_cast<std::uint64_t>(info.st_blocks) * 512, core::MiB);
}

TEST_F(MemoryFiles, AFullTierIsAnErrorWhenAllocatingAndNeverASignal)
{
    if (::mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=1m,mode=1777") != 0)
        GTEST_SKIP() << "mount: " << std::strerror(errno);
    mounted_ = true;
    EXPECT_EQ(
        error_of(Errc::no_space, [&] { (void)Memory::allocate(tier_, "field", 2 * core::MiB); }),
        "2 MiB in " + directory_ + ": there is no room, only 1 MiB are free: free memory there or choose another tier");
    auto memory = Memory::allocate(tier_, "field", 512 * core::KiB);
    EXPECT_NE(error_of(Errc::no_space, [&] { (void)Memory::allocate(tier_, "other", 512 * core::KiB); }), "");
    std::ofstream(directory_ + "/rest") << std::string(core::MiB, 'r');
    std::memset(memory.data().data(), 7, memory.bytes());
    memory.write(0, std::vector<char>(memory.bytes(), 'x'));
    memory.free();
    EXPECT_EQ(entries(), 1U);
}

TEST_F(MemoryFiles, AnAllocationThatFailsLeavesNothing)
{
    struct Fault {
        char const* call;
        int error;
        Errc code;
    };
    for (auto const& fault : {Fault{"posix_fallocate", ENOSPC, Errc::no_space},
                              {"posix_fallocate", EIO, Errc::io},
                              {"renameat2", EIO, Errc::io},
                              {"renameat2", EACCES, Errc::permission},
                              {"renameat2", EEXIST, Errc::invalid_state}}) {
        Fails const fails(fault.call, fault.error);
        EXPECT_NE(error_of_allocating(fault.code), "") << fault.call;
        EXPECT_EQ(entries(), 0U) << fault.call;
    }
}

TEST_F(MemoryFiles, AFileSystemWithoutRenameat2HasNamedMemoryToo)
{
    Fails const fails("renameat2", EINVAL);
    auto const memory = Memory::allocate(tier_, "field", 100);
    struct stat info = {};
    ASSERT_EQ(::lstat(path().c_str(), &info), 0);
    EXPECT_EQ(info.st_nlink, 1U);
    EXPECT_EQ(entries(), 1U);
    EXPECT_TRUE(error_of_allocating(Errc::invalid_state).starts_with("it exists already, as " + path()));
}

TEST_F(MemoryFiles, IfFreeingFailsTheMemoryIsStillThere)
{
    auto memory = Memory::allocate(tier_, "field", 100);
    {
        Fails const fails("unlink", EACCES);
        EXPECT_EQ(error_of(Errc::permission, [&] { memory.free(); }), "removing " + path() + ": Permission denied");
        EXPECT_NE(error_of(Errc::permission, [&] { Memory::remove(tier_, "field"); }), "");
    }
    EXPECT_TRUE(memory.is_allocated());
    memory.write(0, std::string("here"));
    EXPECT_EQ(Memory::attach(tier_, "field").data()[0], std::byte{'h'});
    memory.free();
    EXPECT_EQ(entries(), 0U);
}

TEST_F(MemoryFiles, AFlushThatFailsSaysSo)
{
    auto memory = Memory::allocate(tier_, "field", 100);
    Fails const fails("fsync", EIO);
    EXPECT_EQ(error_of(Errc::io, [&] { memory.flush(); }), "fsync: Input/output error");
}

TEST_F(MemoryFiles, TiersThatShareADirectoryHaveNamesOfTheirOwn)
{
    auto const name = "two" + std::to_string(::getpid());
    auto const dram = Memory::allocate("dram", name, 10);
    auto const numa = Memory::allocate("numa:0", name, 20);
    EXPECT_EQ(Memory::attach("dram", name).bytes(), 10U);
    EXPECT_EQ(Memory::attach("numa:0", name).bytes(), 20U);
}

TEST_F(MemoryFiles, ATierOfThePlatformFileHasItsNameFiguresAndPersistency)
{
    auto const file = directory_ + "/platform.toml";
    std::ofstream(file) << "[topology]\nkind = \"flat\"\nnodes = 1\n[[tier]]\nname = \"nvr\"\nkind = \"ssd\"\n"
                        << "directory = \"" << directory_ << "\"\nlatency = \"5us\"\nwrite_bandwidth = \"3GB/s\"\n"
                        << "read_bandwidth = \"4GB/s\"\npersistency = \"permanent\"\n";
    Setting const platform("TAPIOCA_PLATFORM", file);
    auto memory = Memory::allocate("nvr", "field", 100);
    auto const traits = memory.traits();
    EXPECT_EQ(traits.tier, "nvr");
    EXPECT_EQ(traits.latency_s, 5e-6);
    EXPECT_EQ(traits.write_bandwidth, 3e9);
    EXPECT_EQ(traits.read_bandwidth, 4e9);
    EXPECT_EQ(traits.persistency, Persistency::permanent);
    EXPECT_TRUE(fs::exists(path())) << "the same directory is the same tier";
    auto const tiers = Memory::tiers();
    EXPECT_TRUE(std::any_of(tiers.begin(), tiers.end(), [](auto const& tier) { return tier.tier == "nvr"; }));
    EXPECT_TRUE(std::any_of(tiers.begin(), tiers.end(), [](auto const& tier) { return tier.tier == "dram"; }));
    memory.free();
}

TEST_F(MemoryFiles, ATierThatDoesNotExistIsAnErrorOfASetting)
{
    for (auto const* const tier : {"", "drum", "ssd", "ssd:here", "dram:1"})
        EXPECT_NE(error_of(Errc::setting, [&] { (void)Memory::allocate(tier, "field", 10); }), "") << tier;
    EXPECT_NE(error_of(Errc::not_found, [&] { (void)Memory::allocate("ssd:/nope", "field", 10); }), "");
    Setting const platform("TAPIOCA_PLATFORM", "nope");
    auto const text = error_of(Errc::not_found, [&] { (void)Memory::tiers(); });
    EXPECT_TRUE(text.starts_with("tapioca: TAPIOCA_PLATFORM=nope: ")) << text;
}

TEST_F(MemoryFiles, TheNextProgramThatUsesATierRemovesWhatKilledOnesLeft)
{
    // A tier in a directory whose contents do not outlive their processes.
    auto const file = directory_ + "/platform.toml";
    std::ofstream(file) << "[topology]\nkind = \"flat\"\nnodes = 1\n[[tier]]\nname = \"scratch\"\nkind = \"ssd\"\n"
                        << "directory = \"" << directory_ << "\"\npersistency = \"none\"\n";
    Setting const platform("TAPIOCA_PLATFORM", file);
    (void)in_another_process([] {
        auto const memory = Memory::allocate("scratch", "field", 100);
        return ::kill(::getpid(), SIGKILL) == 0;
    });
    EXPECT_EQ(entries(), 2U);
    EXPECT_EQ(in_another_process([] { return Memory::traits("scratch").capacity_bytes > 0; }), 0);
    EXPECT_EQ(entries(), 1U);
}

}  // namespace
}  // namespace tapioca::test
