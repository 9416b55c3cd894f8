// Files that cannot be opened, impossible settings, and ranks that disagree.
#include <cstdlib>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "support/mpi_test.hpp"

namespace tapioca::test {
namespace {

Options checked()
{
    Options options;
    options.check = true;
    return options;
}

Caught open_error(std::string const& path, Mode mode, Options const& options = {}, MPI_Info info = MPI_INFO_NULL)
{
    return same_error_on_all_ranks([&] { (void)File::open(MPI_COMM_WORLD, path, mode, options, info); });
}

TEST(Open, NamesWhatIsMissing)
{
    Scratch const scratch;
    for (auto const mode : {Mode::read, Mode::update}) {
        auto const error = open_error(scratch.path("missing"), mode);
        EXPECT_EQ(error.code, Errc::not_found);
        EXPECT_EQ(error.sys_errno, ENOENT);
        EXPECT_EQ(error.path, scratch.path("missing"));
        expect_parts(error.text, {"tapioca: open: rank 0: ", scratch.path("missing"), "No such file or directory"});
    }
    EXPECT_EQ(open_error(scratch.path("no/such/directory"), Mode::create).sys_errno, ENOENT);
    if (rank() == 0) write_plain(scratch.path("plain"), {});
    barrier();
    auto const error = open_error(scratch.path("plain/file"), Mode::create);
    EXPECT_EQ(error.code, Errc::not_found);
    EXPECT_EQ(error.sys_errno, ENOTDIR);
    EXPECT_EQ(open_error("", Mode::create).sys_errno, ENOENT);
    expect_next_file_works(scratch);
}

TEST(Open, RefusesPathsAndModesThatAreNone)
{
    Scratch const scratch;
    auto const cut_short = scratch.path("file") + std::string("\0x", 2);
    auto error = same_error_on_all_ranks([&] { File::open(MPI_COMM_WORLD, cut_short, Mode::create); });
    EXPECT_EQ(error.code, Errc::invalid_argument);
    expect_parts(error.text, {"open: rank 0: ", "file\\x00x: the path contains a zero byte"});
    error = same_error_on_all_ranks([&] { File::open(MPI_COMM_WORLD, scratch.path("file"), static_cast<Mode>(7)); });
    EXPECT_EQ(error.code, Errc::invalid_argument);
    expect_parts(error.text, {"7 is not a mode"});
    EXPECT_FALSE(std::filesystem::exists(scratch.path("file")));
    error = same_error_on_all_ranks([&] { File::open(MPI_COMM_WORLD, scratch.path("a\nb"), Mode::read); });
    expect_parts(error.text, {"a\\x0ab"});  // one line, whatever the name
    expect_next_file_works(scratch);
}

TEST(Open, RefusesADirectory)
{
    Scratch const scratch;
    for (auto const mode : {Mode::create, Mode::update, Mode::read}) {
        auto const error = open_error(scratch.directory(), mode);
        EXPECT_EQ(error.code, Errc::is_directory);
        expect_parts(error.text, {"open", scratch.directory(), "Is a directory"});
    }
    expect_next_file_works(scratch);
}

TEST(Open, ReportsAnyOtherErrnoInWords)
{
    Scratch const scratch;
    if (rank() == 0) {
        EXPECT_EQ(::symlink("loop", scratch.path("loop").c_str()), 0);
    }
    barrier();
    auto const error = open_error(scratch.path("loop"), Mode::create);
    EXPECT_EQ(error.code, Errc::io);
    EXPECT_EQ(error.sys_errno, ELOOP);
    expect_parts(error.text, {"Too many levels of symbolic links"});
    EXPECT_EQ(open_error(scratch.path(std::string(300, 'x')), Mode::create).sys_errno, ENAMETOOLONG);
    expect_next_file_works(scratch);
}

/// Lets permissions count, which they do not for root.
class AsNobody {
public:
    explicit AsNobody(bool wanted) : changed_(wanted && ::geteuid() == 0 && ::seteuid(65534) == 0) {}
    AsNobody(AsNobody const&) = delete;
    AsNobody& operator=(AsNobody const&) = delete;
    ~AsNobody()
    {
        if (changed_ && ::seteuid(0) != 0) std::abort();
    }
    static bool possible()
    {
        if (::geteuid() != 0) return true;  // permissions count anyway
        AsNobody const nobody(true);
        return nobody.changed_;
    }

private:
    bool changed_;
};

TEST(Open, SaysThatPermissionIsDenied)
{
    if (!on_all_ranks(AsNobody::possible())) GTEST_SKIP() << "cannot become another user to be refused";
    Scratch const scratch;
    if (rank() == 0) {
        EXPECT_EQ(::mkdir(scratch.path("locked").c_str(), 0555), 0);
        write_plain(scratch.path("secret"), stream(1, 10));
        EXPECT_EQ(::chmod(scratch.path("secret").c_str(), 0), 0);
    }
    barrier();
    for (auto const& [name, mode] : std::initializer_list<std::pair<std::string, Mode>>{
             {"locked/file", Mode::create}, {"secret", Mode::read}, {"secret", Mode::update}}) {
        AsNobody const nobody(true);
        auto const error = open_error(scratch.path(name), mode);
        EXPECT_EQ(error.code, Errc::permission);
        EXPECT_EQ(error.sys_errno, EACCES);
        expect_parts(error.text, {"open", name, "Permission denied"});
    }
    expect_next_file_works(scratch);
}

TEST(Open, AnAggregatorThatIsRefusedLaterFailsTheStepForAll)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    if (!on_all_ranks(AsNobody::possible())) GTEST_SKIP() << "cannot become another user to be refused";
    Scratch const scratch;
    bool const last = rank() == ranks() - 1;
    Options options;
    options.direct = Direct::never;
    options.nbaggr = ranks();
    options.buffersize = 4096;
    Pattern pattern;
    pattern.add({{rank() * 50'000, 50'000}});
    {  // makes the shared memory, which nobody could open later
        auto file = File::open(MPI_COMM_WORLD, scratch.path("before"), Mode::create, options);
        auto step = file.declare(pattern);
        auto data = stream(1, 50'000);
        step.write(0, data);
        step.finish();
        step.read(0, std::span(data));
        step.finish();
        file.close();
    }
    for (bool const writing : {true, false}) {
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        if (rank() == 0) ::chmod(scratch.path("file").c_str(), 0600);
        barrier();
        auto step = file.declare(pattern);
        auto data = stream(1, 50'000);
        {
            AsNobody const nobody(last);
            writing ? step.write(0, data) : step.read(0, std::span(data));
            auto const error = same_error_on_all_ranks([&] { step.finish(); });
            EXPECT_EQ(error.code, Errc::permission);
            EXPECT_EQ(error.rank, ranks() - 1);
            expect_parts(error.text,
                         {"finish", "rank " + std::to_string(ranks() - 1), scratch.path("file"), "Permission denied"});
        }
        file.close();
    }
    expect_next_file_works(scratch);
}

TEST(Open, RefusesTheNullCommunicator)
{
    Scratch const scratch;
    auto const error =
        same_error_on_all_ranks([&] { (void)File::open(MPI_COMM_NULL, scratch.path("file"), Mode::create); });
    EXPECT_EQ(error.code, Errc::invalid_argument);
    expect_parts(error.text, {"open", "MPI_COMM_NULL"});
    expect_next_file_works(scratch);
}

TEST(Settings, UnknownAndMalformedOnesAreErrorsEverywhere)
{
    Scratch const scratch;
    struct Case {
        char const* name;
        char const* value;
        std::vector<std::string> parts;
    };
    for (auto const& [name, value, parts] : std::initializer_list<Case>{
             {"TAPIOCA_BUFERSIZE", "4M", {"TAPIOCA_BUFERSIZE", "did you mean TAPIOCA_BUFFERSIZE?"}},
             {"TAPIOCA_BUFFERSIZE", "4X", {"TAPIOCA_BUFFERSIZE=4X", "expected"}},
             {"TAPIOCA_BUFFERS", "0", {"TAPIOCA_BUFFERS=0", "1 to 64"}},
             {"TAPIOCA_DIRECT", "perhaps", {"auto, never or always"}},
             {"TAPIOCA_STAGE_SYNC", "never", {"write, collective or sync"}}}) {
        ::setenv(name, value, 1);
        auto const error = open_error(scratch.path("file"), Mode::create);
        ::unsetenv(name);
        EXPECT_EQ(error.code, Errc::setting);
        expect_parts(error.text, {"open"});
        expect_parts(error.text, parts);
        EXPECT_NE(::access(scratch.path("file").c_str(), F_OK), 0) << "no file is made";
    }
    Options options;
    options.nbaggr = -1;
    expect_parts(open_error(scratch.path("file"), Mode::create, options).text, {"Options::nbaggr=-1", "1 to 65536"});
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tapioca_bufers", "2");
    expect_parts(open_error(scratch.path("file"), Mode::create, {}, info).text, {"did you mean tapioca_buffers?"});
    MPI_Info_free(&info);
    expect_next_file_works(scratch);
}

TEST(Settings, NamesGivenInCodeAreOneLineThatSaysWhichThereAre)
{
    Scratch const scratch;
    struct Case {
        std::optional<std::string> Options::*member;
        std::string value;
        std::vector<std::string> parts;
    };
    for (auto const& [member, value, parts] : std::initializer_list<Case>{
             {&Options::strategy, "FASTEST", {"Options::strategy=FASTEST: expected", "CONTENTION_AWARE", "RANK_ORDER"}},
             {&Options::model, "paper", {"Options::model=paper: expected", "default", "paper-2024", "report-2017"}},
             {&Options::transport, "rdma", {"Options::transport=rdma: expected p2p or rma"}},
             {&Options::learn, "yes", {"Options::learn=yes: expected on, off, always"}},
             {&Options::stage_drain, "soon", {"Options::stage_drain=soon: expected off, on or a number of bytes"}},
             {&Options::aggrtier, "drum", {"Options::aggrtier=drum: unknown tier drum: did you mean dram"}},
             {&Options::stage, "drum", {"Options::stage=drum: unknown tier drum: did you mean dram"}},
             {&Options::platform, "mirra", {"Options::platform=mirra: ", "did you mean 'mira'", "theta"}}}) {
        Options options;
        options.*member = value;
        auto const error = open_error(scratch.path("file"), Mode::create, options);
        EXPECT_TRUE(error.code == Errc::setting || error.code == Errc::not_found) << error.text;
        EXPECT_EQ(error.text.find('\n'), std::string::npos) << error.text;
        expect_parts(error.text, parts);
    }
    ::setenv("TAPIOCA_AGGRTIER", "drum", 1);
    expect_parts(open_error(scratch.path("file"), Mode::create).text, {"TAPIOCA_AGGRTIER=drum: unknown tier drum"});
    ::unsetenv("TAPIOCA_AGGRTIER");
    expect_next_file_works(scratch);
}

TEST(Settings, OnlyRank0sEnvironmentCounts)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    Scratch const scratch;
    if (rank() == 1) ::setenv("TAPIOCA_NONSENSE", "1", 1);
    expect_next_file_works(scratch);
    ::unsetenv("TAPIOCA_NONSENSE");
}

TEST(Check, FindsArgumentsThatDiffer)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    Scratch const scratch;
    bool const last = rank() == ranks() - 1;
    auto const who = "rank " + std::to_string(ranks() - 1);
    if (rank() == 0) write_plain(scratch.path("a"), {});
    barrier();
    auto const path = open_error(scratch.path(last ? "b" : "a"), Mode::create, checked());
    EXPECT_EQ(path.code, Errc::mismatch);
    EXPECT_EQ(path.rank, ranks() - 1);
    expect_parts(path.text, {"open", who, "the path", scratch.path("b")});
    auto const mode = open_error(scratch.path("a"), last ? Mode::read : Mode::update, checked());
    EXPECT_EQ(mode.code, Errc::mismatch);
    expect_parts(mode.text, {"open", who, "the mode"});
    auto options = checked();
    options.buffers = last ? 3 : 2;
    auto const differing = open_error(scratch.path("a"), Mode::create, options);
    EXPECT_EQ(differing.code, Errc::mismatch);
    expect_parts(differing.text, {"open", who, "options"});

    auto file = File::open(MPI_COMM_WORLD, scratch.path("a"), Mode::create, checked());
    Pattern pattern;
    pattern.add({{rank() * 10, 10}});
    auto step = file.declare(pattern);
    auto data = stream(1, 10);
    step.write(0, data);
    step.rebase(last ? 4096 : 0);
    auto const base = same_error_on_all_ranks([&] { step.finish(); });
    EXPECT_EQ(base.code, Errc::mismatch);
    expect_parts(base.text, {"start", who, "base offset", "4096"});
    step.rebase(0);
    last ? step.read(0, std::span(data)) : step.write(0, data);
    auto const direction = same_error_on_all_ranks([&] { step.finish(); });
    EXPECT_EQ(direction.code, Errc::mismatch);
    expect_parts(direction.text, {"start", who, "direction"});
    step.write(0, data);
    EXPECT_EQ(step.finish().bytes, 10U);
    file.close();
    expect_next_file_works(scratch, checked());
}

TEST(Check, OverlapNamesBothRanks)
{
    if (ranks() == 1) GTEST_SKIP() << "takes two ranks";
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, checked());
    Pattern pattern;  // the last rank reaches 5 bytes into the first one's part
    pattern.add({{rank() * 1000, 1000}});
    pattern.add({{rank() == ranks() - 1 ? 995 : ranks() * 1000, rank() == ranks() - 1 ? 5 : 0}});
    auto const error = same_error_on_all_ranks([&] { (void)file.declare(pattern); });
    EXPECT_EQ(error.code, Errc::mismatch);
    EXPECT_EQ(error.rank, -1) << "it is nobody's alone";
    expect_parts(error.text,
                 {"declare", "ranks 0 and " + std::to_string(ranks() - 1) + " both declare bytes 995 to 1000"});
    Pattern own;  // a rank's own overlap is allowed
    own.add({{rank() * 1000, 1000}, {rank() * 1000 + 10, 20}});
    (void)file.declare(own);
    file.close();
    expect_next_file_works(scratch, checked());
}

TEST(Overlap, WithoutCheckGivesEachByteFromOneOfTheRanks)
{
    Scratch const scratch;
    for (auto const direct : {Direct::never, Direct::always}) {
        Options options;
        options.direct = direct;
        options.buffersize = 4096;
        auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
        Pattern pattern;
        pattern.add({{rank() * 1000, 30'000}});
        auto step = file.declare(pattern);
        std::vector<std::byte> const data(30'000, static_cast<std::byte>(1 + rank()));
        step.write(0, data);
        step.finish();
        file.close();
        auto const bytes = contents(scratch.path("file"));
        ASSERT_EQ(bytes.size(), static_cast<std::size_t>(30'000 + (ranks() - 1) * 1000));
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            auto const who = std::to_integer<int>(bytes[i]) - 1;
            auto const at = static_cast<std::int64_t>(i);
            if (who < 0 || who >= ranks() || at < who * 1000 || at >= who * 1000 + 30'000) ++wrong;
        }
        EXPECT_EQ(wrong, 0U);
        barrier();
    }
}

}  // namespace
}  // namespace tapioca::test
