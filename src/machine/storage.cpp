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

struct Magic {
    std::int64_t number;
    char const* name;
};

// statfs(2), and the kernel's include/uapi/linux/magic.h
constexpr std::array<Magic, 16> magics = {{{0x01021994, "tmpfs"},
                                           {0xEF53, "ext"},
                                           {0x58465342, "xfs"},
                                           {0x9123683E, "btrfs"},
                                           {0x794C7630, "overlay"},
                                           {0x6969, "nfs"},
                                           {0x0BD00BD0, "lustre"},
                                           {0x47504653, "gpfs"},
                                           {0x19830326, "beegfs"},
                                           {0x00C36400, "ceph"},
                                           {0x65735546, "fuse"},
                                           {0x2FC12FC1, "zfs"},
                                           {0x20030528, "orangefs"},
                                           {0xFF534D42, "smb"},
                                           {0xFE534D42, "smb"},
                                           {0x01021997, "9p"}}};

constexpr std::array<std::string_view, 10> remotes = {"nfs",     "lustre",  "gpfs",     "beegfs", "ceph",
                                                      "gluster", "moosefs", "orangefs", "smb",    "9p"};

/// Hosts keep to themselves what they have written, or nothing is known about it.
constexpr std::array<std::string_view, 5> incoherent = {"nfs", "smb", "9p", "fuse", "unknown"};

constexpr std::array<std::string_view, 6> locals = {"tmpfs", "ext", "xfs", "btrfs", "overlay", "zfs"};

/// Beginnings of a mount's type or, for those that do not tell it, its source.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> fuse_types = {{{"fuse.glusterfs", "gluster"},
                                                                                      {"fuse.ceph", "ceph"},
                                                                                      {"fuse.mfs", "moosefs"},
                                                                                      {"fuse.moosefs", "moosefs"},
                                                                                      {"mfs#", "moosefs"},
                                                                                      {"mfs\\043", "moosefs"}}};

/// The next word of `line`, which loses it.
std::string_view next_word(std::string_view& line)
{
    auto const word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    return word;
}

std::string fuse_name_of(struct stat const& file)
{
    std::ifstream mounts("/proc/self/mountinfo");
    std::string const text{std::istreambuf_iterator<char>(mounts), {}};
    return fuse_name(text, major(file.st_dev), minor(file.st_dev));
}

std::string name_of(int fd, struct statfs const& info)
{
    auto const* const magic = std::find_if(magics.begin(), magics.end(), [&](Magic const& m) {
        return m.number == static_cast<std::int64_t>(static_cast<std::uint32_t>(info.f_type));
    });
    std::string name = magic == magics.end() ? "unknown" : magic->name;
    struct stat file = {};
    if (name == "fuse" && fstat(fd, &file) == 0) name = fuse_name_of(file);
    return name;
}

}  // namespace

Storage storage_profile(std::string const& name)
{
    // Measured on a 16-core machine with 16 ranks (docs/design.md). Linux lets one process at a time write a
    // file through the page cache: one writer is fastest, many only wait for the inode's lock. Reads have no
    // such lock. On tmpfs most of that time is the allocation of pages, which a page fault does without the lock.
    constexpr std::uint64_t KiB = 1024;
    if (name == "tmpfs")
        return {name, 4096, Reserve::populate, 6, 16, 1024 * KiB, 128 * KiB, 0.8e-6, 3e-6, 2.7e9, 5e9, 2.4e9, 2.5e9};
    auto const reserve = name == "ext" || name == "xfs" ? Reserve::allocate : Reserve::nothing;
    Storage storage{name, 4096, reserve, 1, 16, 2048 * KiB, 2048 * KiB, 0.8e-6, 3e-6, 4.5e9, 3.3e9, 3.3e9, 2.5e9};
    storage.remote = std::find(remotes.begin(), remotes.end(), name) != remotes.end();
    storage.coherent = std::find(incoherent.begin(), incoherent.end(), name) == incoherent.end();
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
        for (auto const& [beginning, name] : fuse_types)
            if (type.starts_with(beginning) || source.starts_with(beginning)) return std::string(name);
    }
    return "fuse";
}

core::Result<Storage> storage_of(int fd)
{
    struct stat file = {};
    if (fstat(fd, &file) == 0 && S_ISDIR(file.st_mode)) return core::fail_errno(EISDIR, "opening");
    struct statfs info = {};
    if (fstatfs(fd, &info) != 0) return core::fail_errno(errno, "fstatfs");
    auto const name = name_of(fd, info);
    Storage storage = storage_profile(name);
    // f_bsize is the preferred size of a transfer; on some file systems that is megabytes, on none less than 512.
    auto const block = static_cast<std::uint64_t>(info.f_bsize);
    if (block >= 512 && block <= (1U << 26) && std::has_single_bit(block)) storage.block_bytes = info.f_bsize;
    if (auto const stripes = stripes_of(fd, name)) enter(storage, *stripes);
    return storage;
}

Reach reach_of(int fd)
{
    struct statfs info = {};
    if (fstatfs(fd, &info) != 0) return Reach::unknown;
    auto const name = name_of(fd, info);
    auto const among = [&](auto const& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
    return among(locals) ? Reach::one_host : among(remotes) ? Reach::several_hosts : Reach::unknown;
}

std::vector<std::string_view> storage_names()
{
    std::vector<std::string_view> names = {"gluster", "moosefs", "unknown"};
    for (auto const& magic : magics) names.emplace_back(magic.name);
    return names;
}

void adopt(Storage& found, Storage const& described)
{
    if (found.name != described.name) return;
    found.read_streams = described.read_streams;
    found.read_bw = described.read_bw;
    if (found.reserve == Reserve::populate) return;  // its writers are more than plain ones
    found.write_streams = described.write_streams;
    found.write_bw = described.write_bw;
    found.parallel_write_bw = described.parallel_write_bw;
    found.contended_write_bw = described.contended_write_bw;
}

}  // namespace tapioca::machine
