#include "launch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/core.h>
#include <mpi.h>  // only for the name of the MPI
#include <sys/wait.h>
#include <unistd.h>

#include "run.hpp"

namespace tools {

namespace {

using tapioca::Errc;
namespace core = tapioca::core;

#if defined(OPEN_MPI)
constexpr bool open_mpi = true;
#else
constexpr bool open_mpi = false;
#endif

int cores()
{
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// The launcher with which this was built, or the first of its kind on the PATH.
std::string find_launcher()
{
    if (::access(TAPIOCA_MPIEXEC, X_OK) == 0) return TAPIOCA_MPIEXEC;
    return open_mpi ? "mpirun" : "mpiexec";
}

std::string beside(std::string const& name)
{
    std::error_code error;
    auto const self = std::filesystem::read_symlink("/proc/self/exe", error);
    return error ? name : (self.parent_path() / name).string();
}

int execute(Words const& command)
{
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (auto const& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::fflush(nullptr);
    ::execvp(arguments[0], arguments.data());
    return fail("", fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
}

/// Runs a command and returns its exit status.
int wait_for(Words const& command)
{
    auto const child = ::fork();
    if (child == 0) std::_Exit(execute(command));
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) < 0) return fail("", std::strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

core::Status check_io(std::string const& io)
{
    if (open_mpi && io != "ompio" && io != "romio")
        return core::fail(Errc::setting, fmt::format("--io {}: expected ompio or romio", io));
    if (!open_mpi && io != "romio")
        return core::fail(Errc::setting, fmt::format("--io {}: MPICH's MPI-IO is romio", io));
    return {};
}

}  // namespace

char const* mpi_name()
{
    return open_mpi ? "Open MPI" : "MPICH";
}

core::Result<Launch> take_launch(Words const& words, bool with_io)
{
    Launch how;
    how.ranks = cores();
    how.launcher = find_launcher();
    for (std::size_t i = 0; i < words.size(); ++i) {
        auto const& name = words[i];
        if (name != "-n" && name != "--mpiexec" && !(with_io && name == "--io")) {
            how.rest.push_back(name);
            continue;
        }
        if (i + 1 == words.size()) return core::fail(Errc::setting, name + " needs a value");
        auto const& value = words[++i];
        if (name == "--mpiexec") how.launcher = value;
        if (name == "--io") {
            if (auto const known = check_io(value); !known) return tl::unexpected(known.error());
            how.io = value;
        }
        if (name == "-n") {
            char* end = nullptr;
            auto const number = std::strtol(value.c_str(), &end, 10);
            if (*end != '\0' || number < 1 || number > 100000)
                return core::fail(Errc::setting, fmt::format("-n {}: expected a number of ranks", value));
            how.ranks = static_cast<int>(number);
        }
    }
    return how;
}

int start_alone(std::string const& program, Words const& words)
{
    Words command{beside(program)};
    command.insert(command.end(), words.begin(), words.end());
    return execute(command);
}

int launch(std::string const& program, Launch const& how)
{
    Words trial{beside(program)};
    trial.insert(trial.end(), how.rest.begin(), how.rest.end());
    trial.emplace_back("--parse-only");
    if (int const status = wait_for(trial); status != 0) return status;

    Words command{how.launcher, "-n", std::to_string(how.ranks)};
    if (open_mpi) {
        if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
        if (how.ranks > cores()) command.emplace_back("--oversubscribe");
        if (!how.io.empty()) ::setenv("OMPI_MCA_io", how.io == "romio" ? "romio321" : "ompio", 1);
    }
    command.push_back(beside(program));
    command.insert(command.end(), how.rest.begin(), how.rest.end());
    if (::isatty(STDERR_FILENO)) command.emplace_back("--live");
    if (std::find(how.rest.begin(), how.rest.end(), "--dropin") == how.rest.end()) return execute(command);
    command.insert(command.begin(), "--");
    return run_program(command);
}

}  // namespace tools
