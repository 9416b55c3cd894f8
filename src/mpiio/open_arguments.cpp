#include "mpiio/open_arguments.hpp"

#include <algorithm>

#include <fnmatch.h>
#include <sys/stat.h>

#include "mpiio/environment.hpp"
#include "subfile/stub.hpp"
#include "target/file_identity.hpp"

namespace tapioca::mpiio {

namespace {

bool exists(std::string const& path)
{
    struct stat file = {};
    return ::stat(path.c_str(), &file) == 0;
}

bool matches(std::string const& patterns, std::string const& path)
{
    auto const name = path.substr(path.rfind('/') + 1);
    std::size_t begin = 0;
    while (begin <= patterns.size()) {
        auto const end = std::min(patterns.find(':', begin), patterns.size());
        auto const pattern = patterns.substr(begin, end - begin);
        if (::fnmatch(pattern.c_str(), path.c_str(), 0) == 0 || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0)
            return true;
        begin = end + 1;
    }
    return false;
}

}  // namespace

std::optional<std::string> path_of(std::string const& name)
{
    auto const colon = name.find(':');
    if (colon == std::string::npos || name.find('/') < colon || exists(name)) return name;
    auto const rest = name.substr(colon + 1);
    auto const stub = subfile::find_stub(rest);
    if (name.starts_with("ufs:") || !stub || *stub) return rest;
    return std::nullopt;
}

namespace {

bool look_up(std::string const& name, struct stat& file)
{
    auto const path = path_of(name);
    return ::stat((path ? *path : name.substr(name.find(':') + 1)).c_str(), &file) == 0;
}

}  // namespace

std::optional<Which> which(std::string const& name)
{
    struct stat file = {};
    return look_up(name, file) ? std::optional(Which{file.st_dev, file.st_ino}) : std::nullopt;
}

OpenArguments::OpenArguments(MPI_File opened, MPI_Comm comm, std::string const& name, int mode)
    : handle(opened), amode(mode)
{
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    auto const its_path = path_of(name);
    path = target::absolute(its_path.value_or(name));
    struct stat file = {};
    if (look_up(its_path ? path : name, file)) {
        which = {file.st_dev, file.st_ino};
        bytes = file.st_size;
    }
    auto const settings = environment();
    auto const patterns = settings ? settings->options.files : std::nullopt;
    if (!its_path) refusal = "a prefix of another file system";
    if (patterns && !matches(*patterns, path)) refusal = "TAPIOCA_FILES";
    if (amode & MPI_MODE_SEQUENTIAL) refusal = "opened with MPI_MODE_SEQUENTIAL";
}

}  // namespace tapioca::mpiio
