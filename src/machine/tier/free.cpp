#include "machine/tier/free.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <sstream>

#include <fmt/core.h>
#include <sys/statvfs.h>

namespace tapioca::machine {

namespace {

/// The number after `key` in a line such as "MemFree:  12 kB", "Node 0 MemFree: 12 kB" or "inactive_file 4096".
std::optional<std::uint64_t> number_after(std::string const& key, std::string const& line)
{
    auto const at = line.find(key);
    auto const end = at + key.size();
    bool const whole = at != std::string::npos && (at == 0 || line[at - 1] == ' ') && end < line.size();
    if (!whole || (line[end] != ' ' && line[end] != '\t')) return std::nullopt;
    std::istringstream words(line.substr(end));
    std::uint64_t number = 0;
    std::string unit;
    if (!(words >> number)) return std::nullopt;
    return words >> unit && unit == "kB" ? number * 1024 : number;
}

/// The sum of the numbers after any of `keys` in a file; none if there is no such line.
std::optional<std::uint64_t> fields(std::string const& file, std::initializer_list<std::string> keys)
{
    std::optional<std::uint64_t> sum;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        for (auto const& key : keys)
            if (auto const number = number_after(key, line)) sum = sum.value_or(0) + *number;
    return sum;
}

std::optional<std::uint64_t> number_in(std::string const& file)
{
    std::uint64_t number = 0;
    if (std::ifstream in(file); in >> number) return number;
    return std::nullopt;  // also for "max"
}

struct CgroupFiles {
    char const *limit, *current, *inactive, *active;
};
constexpr CgroupFiles version1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                               "total_active_file"};
constexpr CgroupFiles version2{"memory.max", "memory.current", "inactive_file", "active_file"};

/// If there is no limit, version 1 writes the largest number of whole pages.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 62;

std::uint64_t free_in_cgroup(std::string const& directory, CgroupFiles const& files)
{
    auto const limit = number_in(directory + '/' + files.limit);
    if (!limit || *limit >= no_limit) return UINT64_MAX;
    auto const current = number_in(directory + '/' + files.current);
    if (!current) return UINT64_MAX;
    auto const cache = fields(directory + "/memory.stat", {files.inactive, files.active}).value_or(0);
    auto const used = *current - std::min(*current, cache);
    return *limit - std::min(*limit, used);
}

/// The least of a cgroup and those above it. In a container, some of them cannot be seen; they are skipped.
std::uint64_t free_upwards(std::string const& mount, std::string path, CgroupFiles const& files)
{
    std::uint64_t least = UINT64_MAX;
    while (true) {
        least = std::min(least, free_in_cgroup(mount + path, files));
        auto const slash = path.rfind('/');
        if (slash == std::string::npos) return least;
        path.resize(slash);
    }
}

}  // namespace

std::uint64_t available_memory(std::string const& root)
{
    return fields(root + "/proc/meminfo", {"MemAvailable:"}).value_or(UINT64_MAX);
}

std::uint64_t cgroup_free_bytes(std::string const& root)
{
    std::uint64_t least = UINT64_MAX;
    auto const mount = root + "/sys/fs/cgroup";
    std::ifstream in(root + "/proc/self/cgroup");
    for (std::string line; std::getline(in, line);) {  // "0::/user.slice", "4:cpu,memory:/job"
        auto const first = line.find(':');
        auto const second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        auto const controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
        auto const path = line.substr(second + 1);
        if (controllers == ",,")
            for (auto const* const at : {"", "/unified"})
                least = std::min(least, free_upwards(mount + at, path, version2));
        if (controllers.find(",memory,") != std::string::npos)
            least = std::min(least, free_upwards(mount + "/memory", path, version1));
    }
    return least;
}

std::optional<std::uint64_t> node_free_bytes(unsigned node, std::string const& root)
{
    auto const file = fmt::format("{}/sys/devices/system/node/node{}/meminfo", root, node);
    if (!fields(file, {"MemFree:"})) return std::nullopt;
    return fields(file, {"MemFree:", "Inactive(file):", "Active(file):"});
}

std::uint64_t directory_free_bytes(std::string const& directory)
{
    struct statvfs info = {};
    if (::statvfs(directory.c_str(), &info) != 0) return std::uint64_t{1} << 62;  // unknown: allocation will tell
    return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace tapioca::machine
