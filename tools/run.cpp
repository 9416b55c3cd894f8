// tapioca run: starts a program that uses MPI-IO with TAPIOCA loaded into its ranks.
#include "run.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "program.hpp"
#include "settings/settings.hpp"

namespace tools {

namespace {

using tapioca::Errc;
namespace core = tapioca::core;
namespace settings = tapioca::settings;

char const* const about =
    "Runs a program that uses MPI-IO, unchanged, with TAPIOCA in its ranks.\n"
    "Usage: tapioca run [OPTIONS] -- [LAUNCHER ARGUMENTS] PROGRAM [ARGUMENTS]\n"
    "\n"
    "  tapioca run -- mpiexec -n 64 ./app input.nml\n"
    "  tapioca run --report io.json --set BUFFERSIZE=16M -- srun -N 16 ./app\n"
    "  tapioca run -- mpirun -n 4 python3 analysis.py\n"
    "\n"
    "Options:\n"
    "  --report FILE      write a JSON account of every file, like TAPIOCA_REPORT\n"
    "  --set NAME=VALUE   set TAPIOCA_NAME; may be repeated\n"
    "  --dry-run          print the command instead of running it\n"
    "  -h,--help          print this text\n"
    "\n"
    "The launcher may be mpiexec or mpirun of Open MPI, MPICH, Intel MPI and others, srun or aprun; without one the\n"
    "program runs as a single process. Programs on MPICH's ABI, such as Intel's, Cray's and MVAPICH's, get MPICH's\n"
    "library. If the MPI cannot be recognised, as in scripts, the launcher's own decides. On several hosts the "
    "library\n"
    "must be at the same path everywhere. Exit status: that of the command; 2 if it was not started.\n";

std::vector<Use> run_uses()
{
    return {{"[--report FILE] [--set NAME=VALUE]... [--dry-run] -- LAUNCHER ARGUMENTS PROGRAM ARGUMENTS",
             "runs a program that uses MPI-IO, unchanged, with TAPIOCA in its ranks: -- mpiexec -n 64 ./app"}};
}

struct Asked {
    EnvironmentVariables set;  ///< TAPIOCA_*
    bool dry_run = false;
    bool help = false;
    Words command;
};

int fail(std::string const& what)
{
    return tools::fail("run", what);
}

core::Status set(Asked& asked, std::string name, std::string const& value)
{
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
    if (!name.starts_with("TAPIOCA_")) name.insert(0, "TAPIOCA_");
    if (auto const known = settings::resolve({}, {}, {{name, value}}); !known) return tl::unexpected(known.error());
    std::erase_if(asked.set, [&](auto const& pair) { return pair.first == name; });
    asked.set.emplace_back(name, value);
    return {};
}

core::Result<Asked> parse(Words const& words)
{
    Asked asked;
    std::size_t at = 0;
    for (; at < words.size() && words[at].starts_with('-'); ++at) {
        auto const& word = words[at];
        if (word == "--") {
            ++at;
            break;
        }
        if (word == "--help" || word == "-h") asked.help = true;
        if (word == "--dry-run") asked.dry_run = true;
        if (word == "--help" || word == "-h" || word == "--dry-run") continue;
        auto const option = word.substr(0, word.find('='));
        if (option != "--report" && option != "--set")
            return core::fail(Errc::setting, fmt::format("unknown option {}: try tapioca run --help", word));
        if (option == word && at + 1 == words.size()) return core::fail(Errc::setting, option + " needs a value");
        auto const value = option == word ? words[++at] : word.substr(option.size() + 1);
        auto const equals = value.find('=');
        if (option == "--set" && (equals == std::string::npos || equals == 0))
            return core::fail(Errc::setting, fmt::format("--set {}: expected NAME=VALUE", value));
        auto const status = option == "--report" ? set(asked, "REPORT", value)
                                                 : set(asked, value.substr(0, equals), value.substr(equals + 1));
        if (!status) return tl::unexpected(status.error());
    }
    asked.command.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    return asked;
}

struct Library {
    std::string path;
    Mpi mpi;
};

/// The drop-in libraries of this installation: its own, and those for other MPIs that were installed beside it.
std::vector<Library> installed()
{
    std::vector<Library> found;
    std::error_code error;
    auto const bin = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    for (auto const* const lib : {"lib", TAPIOCA_LIBDIR, "lib64", "lib/" TAPIOCA_MULTIARCH})
        for (auto const* const of : {"", "tapioca/openmpi", "tapioca/mpich"}) {
            auto const file = (bin.parent_path() / lib / of / "libtapioca_mpiio.so").lexically_normal().string();
            auto const known = [&](auto const& library) { return library.path == file; };
            if (::access(file.c_str(), R_OK) != 0 || std::any_of(found.begin(), found.end(), known)) continue;
            auto const libraries = libraries_of(file);
            if (!libraries) continue;
            if (auto const mpi = mpi_among(*libraries)) found.push_back({file, *mpi});
        }
    return found;
}

core::Result<Library> choose(std::optional<Mpi> const& wanted, std::string const& whose)
{
    auto const all = installed();
    if (all.empty())
        return core::fail(Errc::not_found,
                          "libtapioca_mpiio.so is not in ../lib beside this command: build or install it there");
    if (!wanted) return all[0];
    for (auto const& library : all)
        if (library.mpi.family == wanted->family && wanted->family != Family::unknown) return library;
    std::vector<std::string> ours;
    for (auto const& library : all) ours.push_back(library.mpi.describe());
    auto const preset = wanted->family == Family::open_mpi ? "openmpi" : "mpich";
    return core::fail(
        Errc::unsupported,
        fmt::format("{} {}, this tapioca is built on {}: {}", whose, wanted->describe(), fmt::join(ours, " and "),
                    wanted->family == Family::unknown
                        ? "TAPIOCA has libraries for Open MPI from 3.0 and for the MPICH ABI only"
                        : fmt::format("build TAPIOCA's preset {} and use its tapioca, or install its library as "
                                      "lib/tapioca/{}/libtapioca_mpiio.so",
                                      preset, preset)));
}

std::optional<Mpi> mpi_of_launcher(Launcher launcher)
{
    if (launcher == Launcher::open_mpi) return Mpi{Family::open_mpi, ""};
    if (launcher == Launcher::hydra || launcher == Launcher::aprun) return Mpi{Family::mpich, ""};
    return std::nullopt;
}

/// The first program whose MPI is visible; nothing if none is.
struct SeenProgram {
    std::optional<Mpi> mpi;
    std::string shown, path;
    EnvironmentVariables variables;
};

core::Result<SeenProgram> look_at(Command const& command)
{
    SeenProgram seen;
    bool const also_here = command.kind == Launcher::open_mpi || command.kind == Launcher::srun;
    for (auto const& part : command.parts) {
        if (!part.has_program()) continue;
        auto const& shown = command.words[part.program];
        auto const path = find_program(shown, part.directory, also_here);
        if (path.empty()) {
            if (part.program != part.starts) continue;  // an unusually used wrapper reports errors itself
            return core::fail(Errc::not_found, fmt::format("{}: there is no such program", shown));
        }
        EnvironmentVariables variables;
        if (!part.library_path.empty()) variables.emplace_back("LD_LIBRARY_PATH", part.library_path);
        auto const mpi = mpi_of_program(path, shown, variables);
        if (!mpi) return tl::unexpected(mpi.error());
        if (!*mpi) continue;
        if (!seen.mpi)
            seen = {*mpi, shown, path, variables};
        else if (seen.mpi->family != (*mpi)->family)
            return core::fail(Errc::unsupported,
                              fmt::format("{} is built on {}, but {} on {}: all programs must use one MPI", seen.shown,
                                          seen.mpi->describe(), shown, (*mpi)->describe()));
    }
    return seen;
}

/// Whether the dynamic linker finds everything that the library needs, in the program if its libraries are visible.
core::Status check_loads(Library const& library, SeenProgram const& seen)
{
    auto variables = seen.variables;
    auto const before = seen.mpi ? libraries_of(seen.path, variables) : core::Result<Libraries>{};
    if (seen.mpi) variables.emplace_back("LD_PRELOAD", library.path);
    auto const with = libraries_of(seen.mpi ? seen.path : library.path, variables);
    if (!before || !with) return {};  // it was readable a moment ago
    for (auto const& file : with->missing)
        if (std::find(before->missing.begin(), before->missing.end(), file) == before->missing.end())
            return core::fail(Errc::not_found,
                              fmt::format("{} needs {}, which is not found: load the module of its MPI, or "
                                          "set LD_LIBRARY_PATH",
                                          library.path, file));
    return {};
}

std::string quoted(std::string const& word)
{
    auto const plain = [](unsigned char c) { return std::isalnum(c) || std::strchr("_-+=./:,@%^", c); };
    if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
    std::string text = "'";
    for (char const c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

int start(PreloadedLaunch const& start, bool dry_run)
{
    if (dry_run) {
        Words shown;
        for (auto const& [name, value] : start.environment) shown.push_back(name + "=" + quoted(value));
        for (auto const& word : start.words) shown.push_back(quoted(word));
        fmt::print("{}\n", fmt::join(shown, " "));
        return 0;
    }
    for (auto const& [name, value] : start.environment) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (auto const& word : start.words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::fflush(nullptr);
    ::execvp(arguments[0], arguments.data());
    return fail(fmt::format("cannot start {}: {}", start.words[0], std::strerror(errno)));
}

std::string value_of(char const* name, char const* otherwise)
{
    auto const* const value = std::getenv(name);
    return value ? value : otherwise;
}

}  // namespace

int run_program(Words const& words)
{
    auto asked = parse(words);
    if (!asked) return fail(asked.error().text);
    if (asked->help) {
        fmt::print("{}", about);
        return 0;
    }
    if (asked->command.empty())
        return fail("no command: tapioca run [OPTIONS] -- LAUNCHER ARGUMENTS PROGRAM ARGUMENTS");

    auto const& first = asked->command[behind_wrappers(asked->command, is_program)];
    auto const path = find_program(first, "", false);
    if (path.empty()) return fail(fmt::format("{}: there is no such program", first));
    auto const kind = identify_launcher(path);
    auto command = read_command(asked->command, kind, is_program);
    if (!command) return fail(command.error().text);
    command->exported = value_of("SLURM_EXPORT_ENV", "ALL");
    if (kind == Launcher::open_mpi && std::getenv("OMPI_MCA_mca_base_env_list"))
        return fail(
            "OMPI_MCA_mca_base_env_list: Open MPI does not take it beside -x, which tapioca run adds; unset it");

    auto const seen = look_at(*command);
    if (!seen) return fail(seen.error().text);
    auto const of_launcher = mpi_of_launcher(kind);
    auto const library = choose(seen->mpi ? seen->mpi : of_launcher,
                                seen->mpi ? seen->shown + " is built on" : first + " starts programs of");
    if (!library) return fail(library.error().text);
    if (library->path.find_first_of(": ") != std::string::npos)
        return fail(
            fmt::format("{}: LD_PRELOAD cannot name a file with a blank or a colon in its path", library->path));
    if (auto const loads = check_loads(*library, *seen); !loads) return fail(loads.error().text);
    if (seen->mpi && of_launcher && seen->mpi->family != of_launcher->family)
        fmt::print(stderr, "tapioca run: {} is built on {}, but {} starts programs of {}: each rank may be alone\n",
                   seen->shown, seen->mpi->describe(), first, of_launcher->describe());

    EnvironmentVariables variables = asked->set;
    for (auto const& [name, value] : settings::read_environment())
        if (std::none_of(variables.begin(), variables.end(), [&](auto const& pair) { return pair.first == name; }))
            variables.emplace_back(name, value);
    return start(with_library(*command, library->path, value_of("LD_PRELOAD", ""), variables), asked->dry_run);
}

extern constexpr Verb run = {
    .name = "run", .uses = run_uses, .run = run_program, .examples = "  tapioca run -- mpiexec -n 64 ./app\n"};

}  // namespace tools
