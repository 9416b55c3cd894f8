// FileIdentity: which file it is that a rank has found under a path. Paths do not tell: a path that every host has for
// itself, a name that was given to another file, or another working directory lead elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "machine/storage.hpp"

namespace tapioca::target {

struct FileIdentity {
    std::uint64_t kernel = 0;  ///< a number of the running kernel: device and inode mean something on one only
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    machine::Reach reach = machine::Reach::unknown;

    /// Whether it is the same file, both seen on one kernel. Mounts of a file system that is served have a device each.
    [[nodiscard]] bool same_inode(FileIdentity const& other) const
    {
        return inode == other.inode && (device == other.device || reach == machine::Reach::several_hosts);
    }
};

/// The same in all containers of a kernel, and never the same on two kernels. Where the kernel does not tell, a number
/// of this process alone.
std::uint64_t kernel_number();

/// Of an open file. What is no plain file, such as /dev/null, is the same wherever its number is.
core::Result<FileIdentity> identity_of(int fd);

enum class Verdict {
    same,
    different,
    unsure,  ///< only a probe can tell
};
/// Whether two ranks have found the same file. On one kernel device and inode decide, but for file systems that are
/// served, by others or by this host, which may be mounted twice. Across kernels equal numbers are believed only of a
/// file system that several hosts share; different ones prove nothing.
Verdict compare(FileIdentity const& a, FileIdentity const& b);

/// `path`, made independent of the working directory, unless that is unknown.
std::string absolute(std::string const& path);

/// Something that other hosts can look for, to find out whether they see this file: a file beside it for as long as
/// this object lives, or samples of its content where none can be made. The file itself stays as it is.
class Probe {
public:
    /// Of the file `fd`, which was found at `path`. Local.
    Probe(std::string const& path, int fd);
    Probe(Probe const&) = delete;
    Probe& operator=(Probe const&) = delete;
    /// Removes the file beside it.
    ~Probe();
    /// What others must know to look for it.
    [[nodiscard]] std::string const& evidence() const { return evidence_; }

private:
    std::string beside_;
    std::string evidence_;
};

/// Whether the file `fd`, which this rank found at `path`, is the one that the evidence is of. Local; waits for two
/// seconds at most, since some file systems show a new name late.
bool confirms(std::string_view evidence, std::string const& path, int fd);

}  // namespace tapioca::target
