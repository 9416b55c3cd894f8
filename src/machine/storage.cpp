#include "machine/storage.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <sys/stat.h>
#include <sys/statfs.h>

namespace tapioca::machine {

namespace {

struct Magic {
    std::int64_t number;
    char const* name;
};

// statfs(2), and the kernel's include/uapi/linux/magic.h
constexpr std::array<Magic, 12> magics = {{{0x01021994, "tmpfs"},
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
                                           {0x2FC12FC1, "zfs"}}};

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
    return {name, 4096, reserve, 1, 16, 2048 * KiB, 2048 * KiB, 0.8e-6, 3e-6, 4.5e9, 3.3e9, 3.3e9, 2.5e9};
}

core::Result<Storage> storage_of(int fd)
{
    struct stat file = {};
    if (fstat(fd, &file) == 0 && S_ISDIR(file.st_mode)) return core::fail_errno(EISDIR, "opening");
    struct statfs info = {};
    if (fstatfs(fd, &info) != 0) return core::fail_errno(errno, "fstatfs");
    auto const* const magic = std::find_if(magics.begin(), magics.end(), [&](Magic const& m) {
        return m.number == static_cast<std::int64_t>(static_cast<std::uint32_t>(info.f_type));
    });
    Storage storage = storage_profile(magic == magics.end() ? "unknown" : magic->name);
    // f_bsize is the preferred size of a transfer; on some file systems that is megabytes, on none less than 512.
    auto const block = static_cast<std::uint64_t>(info.f_bsize);
    if (block >= 512 && block <= (1U << 26) && std::has_single_bit(block)) storage.block_bytes = info.f_bsize;
    return storage;
}

}  // namespace tapioca::machine
