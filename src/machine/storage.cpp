#include "machine/storage.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <iterator>

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "machine/stripes.hpp"

namespace tapioca::machine {

namespace {

/// A row of the table. To add a file system, write its row here and, if it has stripes, its part of stripes.cpp.
struct FileSystem {
    std::string_view name;
    std::array<std::uint32_t, 2> magics;  ///< statfs(2), and the kernel's include/uapi/linux/magic.h; 0: none
    Reach reach;
    bool coherent;  ///< false: hosts cache what they have written, or this is unknown
    Reserve reserve = Reserve::nothing;
    /// If it is mounted through FUSE: prefixes of the mount's type or, if that does not identify it, of its source.
    std::array<std::string_view, 4> mounts = {};
};

constexpr FileSystem file_systems[] = {
    {"tmpfs", {0x01021994}, Reach::one_host, true, Reserve::populate},
    {"ext", {0xEF53}, Reach::one_host, true, Reserve::allocate},
    {"xfs", {0x58465342}, Reach::one_host, true, Reserve::allocate},
    {"btrfs", {0x9123683E}, Reach::one_host, true},
    {"overlay", {0x794C7630}, Reach::one_host, true},
    {"zfs", {0x2FC12FC1}, Reach::one_host, true},
    {"nfs", {0x6969}, Reach::several_hosts, false},
    {"lustre", {0x0BD00BD0}, Reach::several_hosts, true},
    {"gpfs", {0x47504653}, Reach::several_hosts, true},
    {"beegfs", {0x19830326}, Reach::several_hosts, true},
    {"ceph", {0x00C36400}, Reach::several_hosts, true, Reserve::nothing, {"fuse.ceph"}},
    {"gluster", {}, Reach::several_hosts, true, Reserve::nothing, {"fuse.glusterfs"}},
    {"moosefs", {}, Reach::several_hosts, true, Reserve::nothing, {"fuse.mfs", "fuse.moosefs", "mfs#", "mfs\\043"}},
    {"orangefs", {0x20030528}, Reach::several_hosts, true},
    {"smb", {0xFF534D42, 0xFE534D42}, Reach::several_hosts, false},
    {"9p", {0x01021997}, Reach::several_hosts, false},
    // These match what no row above does, so they must stay the last.
    {"fuse", {0x65735546}, Reach::unknown, false},
    {"unknown", {}, Reach::unknown, false},
};
constexpr FileSystem const& fuse = *(std::end(file_systems) - 2);
constexpr FileSystem const& unknown = *(std::end(file_systems) - 1);
static_assert(fuse.name == "fuse" && unknown.name == "unknown");

/// The first row for which `fits` is true, or the row for unknown file systems.
template <class Fits>
FileSystem const& find_system(Fits fits)
{
    auto const* const found = std::find_if(std::begin(file_systems), std::end(file_systems), fits);
    return found == std::end(file_systems) ? unknown : *found;
}

/// Removes the next word from `line` and returns it.
std::string_view next_word(std::string_view& line)
{
    auto const word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    return word;
}

FileSystem const& named(std::string_view name)
{
    return find_system([&](FileSystem const& one) { return one.name == name; });
}

FileSystem const& behind_fuse(struct stat const& file)
{
    std::ifstream mounts("/proc/self/mountinfo");
    std::string const text{std::istreambuf_iterator<char>(mounts), {}};
    return named(fuse_name(text, major(file.st_dev), minor(file.st_dev)));
}

FileSystem const& system_of(int fd, struct statfs const& info)
{
    auto const magic = static_cast<std::uint32_t>(info.f_type);
    auto const& system = find_system([&](FileSystem const& one) {
        return magic != 0 && std::find(one.magics.begin(), one.magics.end(), magic) != one.magics.end();
    });
    struct stat file = {};
    return &system == &fuse && fstat(fd, &file) == 0 ? behind_fuse(file) : system;
}

bool is_mounted_as(FileSystem const& system, std::string_view type, std::string_view source)
{
    return std::any_of(system.mounts.begin(), system.mounts.end(), [&](std::string_view beginning) {
        return !beginning.empty() && (type.starts_with(beginning) || source.starts_with(beginning));
    });
}

}  // namespace

Storage storage_profile(std::string const& name)
{
    // Measured on a 16-core machine with 16 ranks (docs/design.md). Linux lets one process at a time write a file
    // through the page cache, so one writer is fastest, and many only wait for the inode's lock. Reads have no such
    // lock. On tmpfs most of that time is the allocation of pages, which a page fault does without the lock.
    constexpr std::uint64_t KiB = 1024;
    auto const& system = named(name);
    auto const reserve = system.reserve;
    Storage storage =
        reserve == Reserve::populate
            ? Storage{name, 4096, reserve, 6, 16, 1024 * KiB, 128 * KiB, 0.8e-6, 1e-6, 2.7e9, 5e9, 2.4e9, 2.5e9}
            : Storage{name, 4096, reserve, 1, 16, 2048 * KiB, 2048 * KiB, 0.8e-6, 5.5e-6, 4.5e9, 3.3e9, 3.3e9, 2.5e9};
    storage.remote = system.reach == Reach::several_hosts;
    storage.each_node = storage.remote;
    storage.coherent = system.coherent;
    return storage;
}

std::string fuse_name(std::string_view mountinfo, unsigned major, unsigned minor)
{
    auto const device = fmt::format("{}:{}", major, minor);
    while (!mountinfo.empty()) {
        auto line = mountinfo.substr(0, mountinfo.find('\n'));
        mountinfo.remove_prefix(std::min(mountinfo.size(), line.size() + 1));
        // proc(5): id, parent, device, ..., a dash, type, source, options
        next_word(line);
        next_word(line);
        if (next_word(line) != device) continue;
        while (!line.empty() && next_word(line) != "-") {}
        auto const type = next_word(line);
        auto const source = next_word(line);
        for (auto const& system : file_systems)
            if (is_mounted_as(system, type, source)) return std::string(system.name);
    }
    return std::string(fuse.name);
}

core::Result<Storage> storage_of(int fd)
{
    struct stat file = {};
    if (fstat(fd, &file) == 0 && S_ISDIR(file.st_mode)) return core::fail_errno(EISDIR, "opening");
    struct statfs info = {};
    if (fstatfs(fd, &info) != 0) return core::fail_errno(errno, "fstatfs");
    std::string const name(system_of(fd, info).name);
    Storage storage = storage_profile(name);
    // f_bsize is the preferred size of a transfer. On some file systems it is megabytes, on none less than 512.
    auto const block = static_cast<std::uint64_t>(info.f_bsize);
    if (block >= 512 && block <= (1U << 26) && std::has_single_bit(block)) storage.block_bytes = info.f_bsize;
    if (auto const stripes = stripes_of(fd, name)) enter(storage, *stripes);
    return storage;
}

Reach reach_of(int fd)
{
    struct statfs info = {};
    return fstatfs(fd, &info) == 0 ? system_of(fd, info).reach : Reach::unknown;
}

std::vector<std::string_view> storage_names()
{
    std::vector<std::string_view> names;
    for (auto const& system : file_systems) names.push_back(system.name);
    return names;
}

void adopt(Storage& found, Storage const& described)
{
    if (found.name != described.name) return;
    found.each_node = described.each_node;
    found.share_nodes = described.share_nodes;
    found.read_streams = described.read_streams;
    found.read_bw = described.read_bw;
    if (found.reserve == Reserve::populate) return;  // its writers do more than plain writes
    found.write_streams = described.write_streams;
    found.write_bw = described.write_bw;
    found.parallel_write_bw = described.parallel_write_bw;
    found.contended_write_bw = described.contended_write_bw;
}

}  // namespace tapioca::machine
