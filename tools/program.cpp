#include "program.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf.hpp"

namespace tools {

namespace {

using tapioca::Errc;
namespace core = tapioca::core;

/// A file's bytes, valid as long as this object.
class Mapped {
public:
    explicit Mapped(std::string const& path)
    {
        int const file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat status {};
        if (file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
            readable_ = true;
            auto const size = static_cast<std::size_t>(status.st_size);
            auto* const start = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
            if (start != MAP_FAILED) bytes_ = {static_cast<std::byte const*>(start), size};
        }
        if (file >= 0) ::close(file);
    }
    ~Mapped()
    {
        if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
    Mapped(Mapped const&) = delete;
    Mapped& operator=(Mapped const&) = delete;
    [[nodiscard]] elf::Bytes bytes() const { return bytes_; }
    [[nodiscard]] bool readable() const { return readable_; }

private:
    elf::Bytes bytes_;
    bool readable_ = false;
};

/// Everything that a command prints; it gets no input and has ten seconds.
std::string output_of(Words const& words, EnvironmentVariables const& variables)
{
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    auto const child = ::fork();
    if (child == 0) {
        int const nothing = ::open("/dev/null", O_RDONLY);
        ::dup2(nothing, STDIN_FILENO);
        ::dup2(ends[1], STDOUT_FILENO);
        ::dup2(ends[1], STDERR_FILENO);
        for (auto const& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
        std::vector<char*> arguments;
        for (auto const& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        ::alarm(10);
        ::execv(arguments[0], arguments.data());
        std::_Exit(127);
    }
    ::close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t count = 1; child > 0 && count != 0;) {
        count = ::read(ends[0], buffer, sizeof buffer);
        if (count < 0 && errno != EINTR) break;
        if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
    }
    ::close(ends[0]);
    if (child > 0) ::waitpid(child, nullptr, 0);
    return text;
}

elf::Facts const& ourselves()
{
    static elf::Facts const facts = elf::read(Mapped("/proc/self/exe").bytes()).value_or(elf::Facts{});
    return facts;
}

/// The "12" of libmpi.so.12, if the file is an MPI library and not its Fortran or C++ part; "" if it has no number.
std::optional<std::string> mpi_version(std::string const& file)
{
    auto const dot = file.find(".so");
    if (dot == std::string::npos || !file.starts_with("libmpi")) return std::nullopt;
    auto stem = file.substr(3, dot - 3);
    if (auto const under = stem.find('_'); under != std::string::npos) {
        auto const kind = stem.substr(under + 1);  // Cray and others append the compiler's name here
        for (auto const* const part : {"cxx", "mpifh", "usempi", "java", "ignore"})
            if (kind.starts_with(part)) return std::nullopt;
        stem.resize(under);
    }
    if (stem != "mpi" && stem != "mpich") return std::nullopt;
    auto const version = file.substr(dot + 3);
    return version.starts_with('.') ? version.substr(1, version.find('.', 1) - 1) : "";
}

}  // namespace

char const* name(Family family)
{
    switch (family) {
    case Family::open_mpi: return "Open MPI";
    case Family::mpich: return "MPICH";
    default: return "another MPI";
    }
}

std::string Mpi::describe() const
{
    return library.empty() ? name(family) : fmt::format("{} ({})", name(family), library);
}

Libraries parse_trace(std::string const& text)
{
    Libraries libraries;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with('\t')) continue;  // warnings of the linker
        auto const word = line.substr(1, line.find(' ', 1) - 1);
        auto const file = word.substr(word.rfind('/') + 1);
        if (file.find(".so") == std::string::npos) continue;
        libraries.names.push_back(file);
        if (line.find("=> not found") != std::string::npos) libraries.missing.push_back(file);
    }
    return libraries;
}

std::optional<Mpi> mpi_among(Libraries const& libraries)
{
    bool const with_opal = std::any_of(libraries.names.begin(), libraries.names.end(), [](auto const& file) {
        return file.starts_with("libopen-pal.so");  // before version 2, Open MPI's library had MPICH's number
    });
    for (auto const& file : libraries.names) {
        auto const version = mpi_version(file);
        if (!version) continue;
        auto const family = *version == "40"                 ? Family::open_mpi
                            : *version == "12" && !with_opal ? Family::mpich
                                                             : Family::unknown;
        return Mpi{family, file};
    }
    return std::nullopt;
}

core::Result<Libraries> libraries_of(std::string const& path, EnvironmentVariables const& variables)
{
    Mapped const file(path);
    auto const facts = elf::read(file.bytes());
    if (!facts) return tl::unexpected(facts.error());
    auto const& linker = facts->interpreter.empty() ? ourselves().interpreter : facts->interpreter;
    EnvironmentVariables all = {{"LD_PRELOAD", ""},
                                {"LD_TRACE_LOADED_OBJECTS", "1"}};  // without what the user preloads
    all.insert(all.end(), variables.begin(), variables.end());
    return parse_trace(output_of({linker, path.find('/') == std::string::npos ? "./" + path : path}, all));
}

std::string find_program(std::string const& word, std::string const& directory, bool also_here)
{
    struct stat status {};
    auto const here = word.starts_with('/') || directory.empty() ? word : directory + "/" + word;
    if (word.find('/') != std::string::npos) return ::stat(here.c_str(), &status) == 0 ? here : "";
    auto const* const path = std::getenv("PATH");
    std::istringstream places(path ? path : "/usr/bin:/bin");
    for (std::string place; std::getline(places, place, ':');) {
        auto const file = (place.empty() ? "." : place) + "/" + word;
        if (::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(file.c_str(), X_OK) == 0)
            return file;
    }
    auto const local = (directory.empty() ? "." : directory) + "/" + word;
    return also_here && ::stat(local.c_str(), &status) == 0 ? local : "";
}

bool is_program(std::string const& word)
{
    auto const file = find_program(word, "", false);
    struct stat status {};
    return !file.empty() && ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           ::access(file.c_str(), X_OK) == 0;
}

core::Result<std::optional<Mpi>> mpi_of_program(std::string const& path, std::string const& shown,
                                                EnvironmentVariables const& variables)
{
    auto const refuse = [&](std::string const& why) { return core::fail(Errc::unsupported, shown + why); };
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return core::fail_errno(errno, shown);
    if (S_ISDIR(status.st_mode)) return refuse(" is a directory, not a program");
    if (!S_ISREG(status.st_mode) || ::access(path.c_str(), X_OK) != 0) return refuse(" is not executable");
    Mapped const file(path);
    if (!elf::is_elf(file.bytes())) return std::nullopt;  // a script, or executable but not readable
    auto const facts = elf::read(file.bytes());
    if (!facts) return refuse(" is damaged: " + facts.error().text);
    if (facts->bits != ourselves().bits || facts->machine != ourselves().machine)
        return refuse(fmt::format(" is a {} program, and this tapioca is {}: build TAPIOCA for it",
                                  elf::describe(*facts), elf::describe(ourselves())));
    if (facts->interpreter.empty())
        return refuse(" is statically linked: nothing can be loaded before its MPI; link it with shared libraries");
    if ((status.st_mode & S_ISUID) != 0 || (status.st_mode & S_ISGID) != 0)
        return refuse(" changes its user or group when it starts: LD_PRELOAD is ignored for such programs");
    auto const libraries = libraries_of(path, variables);
    if (!libraries) return refuse(" is damaged: " + libraries.error().text);
    auto const mpi = mpi_among(*libraries);
    if (!mpi && elf::defines(file.bytes(), "MPI_Init"))
        return refuse(
            " has its MPI linked statically (libmpi.a): nothing can be loaded before it; link the shared one");
    return mpi;
}

Launcher identify_launcher(std::string const& path)
{
    auto const by_name = launcher_by_name(path);
    if (by_name != Launcher::other) return by_name;
    std::error_code error;
    auto const real = std::filesystem::canonical(path, error);
    if (error) return Launcher::other;
    if (auto const kind = launcher_by_name(real.string()); kind != Launcher::other && kind != Launcher::none)
        return kind;
    if (auto const libraries = libraries_of(real.string()))
        for (auto const& file : libraries->names)
            if (file.starts_with("libopen-pal.so") || file.starts_with("libopen-rte.so") ||
                file.starts_with("libprrte.so"))
                return Launcher::open_mpi;
    return launcher_by_version(output_of({path, "--version"}, {}));
}

}  // namespace tools
