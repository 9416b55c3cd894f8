// Command lines of launchers: where the programs are, and what is added so that every rank gets the library.
#include <gtest/gtest.h>

#include <sstream>

#include "launcher.hpp"
#include "program.hpp"

namespace tools {
namespace {

Words split(std::string const& line)
{
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

std::string join(Words const& words)
{
    std::string line;
    for (auto const& word : words) line += (line.empty() ? "" : " ") + word;
    return line;
}

bool is_app(std::string const& word)
{
    return word == "./app" || word == "./b";
}

/// The programs of a line, as "./app ./b".
std::string programs(Launcher launcher, std::string const& line)
{
    auto const command = read_command(split(line), launcher, is_app);
    if (!command) return command.error().text;
    Words found;
    for (auto const& part : command->parts)
        found.push_back(part.has_program() ? command->words[part.program] : std::string("?"));
    return join(found);
}

/// The line with /lib/t.so put before.
std::string started(Launcher launcher, std::string const& line, std::string const& preload = "",
                    EnvironmentVariables const& settings = {})
{
    auto const command = read_command(split(line), launcher, is_app);
    if (!command) return command.error().text;
    auto const start = with_library(*command, "/lib/t.so", preload, settings);
    Words words;
    for (auto const& [name, value] : start.environment) words.push_back(name + "=" + value);
    words.insert(words.end(), start.words.begin(), start.words.end());
    return join(words);
}

TEST(Programs, AreFoundBehindOpenMpisOptions)
{
    auto const found = [](char const* line) { return programs(Launcher::open_mpi, line); };
    EXPECT_EQ(found("mpirun app"), "app");
    EXPECT_EQ(found("mpirun -np 4 --mca io ompio -x A=B -x C --host a:2,b:2 --bind-to core app -n 3"), "app");
    EXPECT_EQ(found("mpirun --oversubscribe --allow-run-as-root app"), "app");
    EXPECT_EQ(found("mpirun --timeout 5 -n 1 app : -n 2 --wdir /tmp app2 x : app3"), "app app2 app3");
    EXPECT_EQ(found("mpirun -- app"), "app");
    EXPECT_EQ(found("mpirun -n 4"), "no program in: mpirun -n 4");
    EXPECT_EQ(found("mpirun -n 4 app :"), "no program in: mpirun -n 4 app :");
    EXPECT_EQ(found("mpirun"), "no program in: mpirun");
    EXPECT_NE(found("mpirun --app file").find("--app file"), std::string::npos);
    EXPECT_NE(found("mpirun --mca mca_base_env_list A app").find("mca_base_env_list"), std::string::npos);
}

TEST(Programs, AreFoundBehindHydrasOptions)
{
    auto const found = [](char const* line) { return programs(Launcher::hydra, line); };
    EXPECT_EQ(found("mpiexec -n 4 -ppn 2 -genv A B -genv C=D app"), "app");
    EXPECT_EQ(found("mpiexec --genv=A B -n=4 -bind-to core:2 -hosts a,b app"), "app");
    EXPECT_EQ(found("mpiexec -genv=A=B -genvnone -l app : -env X Y -n 1 app2"), "app app2");
    EXPECT_EQ(found("mpiexec -configfile file"), "?");
}

TEST(Programs, AreFoundBehindSlurmsAndCraysOptions)
{
    auto const found = [](char const* line) { return programs(Launcher::srun, line); };
    EXPECT_EQ(found("srun -n4 -N 2 -lu --mpi=pmix --cpu-bind cores -c2 app -n 1"), "app");
    EXPECT_EQ(found("srun -lN 2 --exclusive --export NONE -- app"), "app");
    EXPECT_EQ(found("srun -n1 app : -n2 app2"), "app app2");
    EXPECT_EQ(found("srun -n4 --multi-prog file"), "?");
    EXPECT_EQ(programs(Launcher::aprun, "aprun -n 4 -N2 -cc depth -e A=B -q app"), "app");
}

TEST(Programs, AreFoundBehindOptionsThatNoTableKnows)
{
    EXPECT_EQ(programs(Launcher::open_mpi, "mpirun --future ./app ./b"), "./app");
    EXPECT_EQ(programs(Launcher::open_mpi, "mpirun --future value ./app"), "./app");
    EXPECT_EQ(programs(Launcher::open_mpi, "mpirun --future=value ./app"), "./app");
    EXPECT_EQ(programs(Launcher::srun, "srun --future --other 3 ./app"), "./app");
    EXPECT_EQ(programs(Launcher::open_mpi, "mpirun --- ./app"), "./app");
}

TEST(Programs, AreFoundBehindWrappers)
{
    auto const found = [](std::string const& rest) { return programs(Launcher::hydra, "mpiexec -n 2 " + rest); };
    EXPECT_EQ(found("env -u X A=B C=/d=e app F=G"), "app");
    EXPECT_EQ(found("/usr/bin/env -i nice -n 5 app"), "app");
    EXPECT_EQ(found("numactl -N 0 --membind=0 -l app"), "app");
    EXPECT_EQ(found("taskset -c 0-3 app"), "app");
    EXPECT_EQ(found("timeout -k 5 60 time -p app"), "app");
    EXPECT_EQ(found("valgrind --leak-check=full -q app"), "app");
    EXPECT_EQ(found("stdbuf -oL app"), "app");
    EXPECT_EQ(found("env"), "env");
    EXPECT_EQ(found("python3 script.py"), "python3");
    EXPECT_EQ(programs(Launcher::none, "env A=B ./app"), "./app");
    EXPECT_EQ(behind_wrappers(split("timeout 60 env A=B mpiexec -n 2 app"), is_app), 4U);
}

TEST(Library, GoesToEveryProgramOfOpenMpi)
{
    auto const line = [](char const* words, char const* preload = "", EnvironmentVariables const& settings = {}) {
        return started(Launcher::open_mpi, words, preload, settings);
    };
    EXPECT_EQ(line("mpirun -n 2 a : -n 1 b"), "mpirun -x LD_PRELOAD=/lib/t.so -n 2 a : -x LD_PRELOAD=/lib/t.so -n 1 b");
    EXPECT_EQ(line("mpirun a", "x.so"), "mpirun -x LD_PRELOAD=/lib/t.so:x.so a");
    EXPECT_EQ(line("mpirun a", "/lib/t.so"), "mpirun -x LD_PRELOAD=/lib/t.so a") << "it is there already";
    EXPECT_EQ(line("mpirun -x LD_PRELOAD=y.so a", "x.so"), "mpirun -x LD_PRELOAD=/lib/t.so:y.so a");
    EXPECT_EQ(line("mpirun -x LD_PRELOAD a", "x.so"), "mpirun -x LD_PRELOAD=/lib/t.so:x.so a");
    EXPECT_EQ(line("timeout 9 mpirun a", "", {{"TAPIOCA_CHECK", "1"}}),
              "timeout 9 mpirun -x LD_PRELOAD=/lib/t.so -x TAPIOCA_CHECK=1 a");
    EXPECT_EQ(line("mpirun -x TAPIOCA_CHECK=0 a", "", {{"TAPIOCA_CHECK", "1"}}),
              "mpirun -x LD_PRELOAD=/lib/t.so -x TAPIOCA_CHECK=0 a")
        << "the launcher's option is nearer to the program";
    EXPECT_EQ(line("env LD_PRELOAD=z.so mpirun a", "x.so"),
              "env LD_PRELOAD=z.so mpirun -x LD_PRELOAD=/lib/t.so:z.so a");
}

TEST(Library, GoesToAllProgramsOfHydraAtOnce)
{
    auto const line = [](char const* words, char const* preload = "", EnvironmentVariables const& settings = {}) {
        return started(Launcher::hydra, words, preload, settings);
    };
    EXPECT_EQ(line("mpiexec -n 2 a : -n 1 b", "x.so"), "mpiexec -genv LD_PRELOAD /lib/t.so:x.so -n 2 a : -n 1 b");
    EXPECT_EQ(line("mpiexec -genv LD_PRELOAD y.so a", "x.so"), "mpiexec -genv LD_PRELOAD /lib/t.so:y.so a");
    EXPECT_EQ(line("mpiexec -genv LD_PRELOAD=y.so a"), "mpiexec -genv LD_PRELOAD=/lib/t.so:y.so a");
    EXPECT_EQ(line("mpiexec a : -env LD_PRELOAD y.so b"),
              "mpiexec -genv LD_PRELOAD /lib/t.so a : -env LD_PRELOAD /lib/t.so:y.so b");
    EXPECT_EQ(line("mpiexec -configfile f", "", {{"TAPIOCA_CHECK", "1"}}),
              "mpiexec -genv LD_PRELOAD /lib/t.so -genv TAPIOCA_CHECK 1 -configfile f");
}

TEST(Library, JoinsWhatSrunExports)
{
    auto const line = [](char const* words, char const* preload = "", EnvironmentVariables const& settings = {}) {
        return started(Launcher::srun, words, preload, settings);
    };
    EXPECT_EQ(line("srun a : -n 2 b"),
              "srun --export=ALL,LD_PRELOAD=/lib/t.so a : --export=ALL,LD_PRELOAD=/lib/t.so -n 2 b");
    EXPECT_EQ(line("srun --export=NONE a"), "srun --export=LD_PRELOAD=/lib/t.so a");
    EXPECT_EQ(line("srun --export A,B='1,2' a"), "srun --export A,B='1,2',LD_PRELOAD=/lib/t.so a");
    EXPECT_EQ(line("srun --export=LD_PRELOAD=y.so,A a", "x.so"), "srun --export=A,LD_PRELOAD=/lib/t.so:y.so a");
    EXPECT_EQ(line("srun --export=LD_PRELOAD,A a", "x.so"), "srun --export=A,LD_PRELOAD=/lib/t.so:x.so a");
    EXPECT_EQ(line("srun --export=A a", "", {{"TAPIOCA_CHECK", "1"}}),
              "TAPIOCA_CHECK=1 srun --export=A,LD_PRELOAD=/lib/t.so,TAPIOCA_CHECK a");
}

TEST(Library, IsSetInTheEnvironmentWhereThereIsNoOtherWay)
{
    EXPECT_EQ(started(Launcher::none, "./app", "x.so"), "LD_PRELOAD=/lib/t.so:x.so ./app");
    EXPECT_EQ(started(Launcher::other, "mpiexec -n 2 app"), "LD_PRELOAD=/lib/t.so mpiexec -n 2 app");
    EXPECT_EQ(started(Launcher::aprun, "aprun -n 2 app"), "aprun -e LD_PRELOAD=/lib/t.so -n 2 app");
}

TEST(Library, SurvivesWrappersThatChangeTheEnvironment)
{
    EXPECT_EQ(started(Launcher::hydra, "mpiexec env LD_PRELOAD=y.so app"),
              "mpiexec -genv LD_PRELOAD /lib/t.so env LD_PRELOAD=/lib/t.so:y.so app");
    EXPECT_EQ(started(Launcher::hydra, "mpiexec env -i A=B app", "", {{"TAPIOCA_CHECK", "1"}}),
              "mpiexec -genv LD_PRELOAD /lib/t.so -genv TAPIOCA_CHECK 1 env -i A=B LD_PRELOAD=/lib/t.so "
              "TAPIOCA_CHECK=1 app");
}

TEST(Launchers, AreKnownByNameOrByWhatTheySay)
{
    EXPECT_EQ(launcher_by_name("/usr/bin/orterun"), Launcher::open_mpi);
    EXPECT_EQ(launcher_by_name("mpiexec.hydra"), Launcher::hydra);
    EXPECT_EQ(launcher_by_name("/opt/bin/mpirun"), Launcher::other);
    EXPECT_EQ(launcher_by_name("./app"), Launcher::none);
    EXPECT_EQ(launcher_by_version("mpirun (Open MPI) 4.1.4\n"), Launcher::open_mpi);
    EXPECT_EQ(launcher_by_version("Intel(R) MPI Library for Linux* OS, Version 2021.9"), Launcher::hydra);
    EXPECT_EQ(launcher_by_version("mpiexec: unknown option"), Launcher::other);
}

TEST(Mpi, IsSeenAmongAProgramsLibraries)
{
    auto const seen = [](std::vector<std::string> names) {
        auto const mpi = mpi_among({std::move(names), {}});
        return mpi ? mpi->describe() : "none";
    };
    EXPECT_EQ(seen({"libm.so.6", "libmpi_mpifh.so.40", "libmpi.so.40"}), "Open MPI (libmpi.so.40)");
    EXPECT_EQ(seen({"libmpichfort.so.12", "libmpich.so.12"}), "MPICH (libmpich.so.12)");
    EXPECT_EQ(seen({"libmpifort.so.12", "libmpi.so.12"}), "MPICH (libmpi.so.12)");
    EXPECT_EQ(seen({"libmpi_gnu_123.so.12"}), "MPICH (libmpi_gnu_123.so.12)");
    EXPECT_EQ(seen({"libmpi.so.12", "libopen-pal.so.13"}), "another MPI (libmpi.so.12)");
    EXPECT_EQ(seen({"libmpi_abi.so.0"}), "another MPI (libmpi_abi.so.0)");
    EXPECT_EQ(seen({"libmpi_ibm.so.3"}), "another MPI (libmpi_ibm.so.3)");
    EXPECT_EQ(seen({"libmpi_cxx.so.40", "libmpifr.so.2", "libc.so.6"}), "none");
}

TEST(Mpi, IsReadFromWhatTheDynamicLinkerSays)
{
    auto const libraries = parse_trace(
        "ERROR: ld.so: object 'x' cannot be preloaded: ignored.\n"
        "\tlinux-vdso.so.1 (0x00007ffd)\n"
        "\tlibmpi.so.40 => not found\n"
        "\t/opt/lib/libfoo.so.1 (0x00007f)\n"
        "\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n"
        "\tstatically linked\n");
    EXPECT_EQ(join(libraries.names), "linux-vdso.so.1 libmpi.so.40 libfoo.so.1 libc.so.6");
    EXPECT_EQ(join(libraries.missing), "libmpi.so.40");
}

}  // namespace
}  // namespace tools
