// FileIdentity: identifies the file that a rank has found under a path. A path alone does not: it may lead elsewhere if
// every host has it for itself, if the name was given to another file, or with another working directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "machine/storage.hpp"

namespace tapioca::target {

struct FileIdentity {
    std::uint64_t kernel = 0;  ///< identifies the running kernel, within which device and inode have a meaning
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    machine::Reach reach = machine::Reach::unknown;

    /// Whether both are the same file, seen on one kernel. Each mount of a served file system has its own device
    /// number.
    [[nodiscard]] bool same_inode(FileIdentity const& other) const
    {
        return inode == other.inode && (device == other.device || reach == machine::Reach::several_hosts);
    }
};

/// The same number in all containers of a kernel, and never the same on two kernels. If the kernel does not tell, a
/// number of this process alone.
std::uint64_t kernel_number();

/// The identity of an open file. A special file such as /dev/null is the same wherever its number is the same.
core::Result<FileIdentity> identity_of(int fd);

enum class Verdict {
    same,
    different,
    unsure,  ///< only a probe can decide
};
/// Whether two ranks have found the same file. On one kernel, device and inode decide, except on file systems that are
/// served by others or by this host, which may be mounted twice. Across kernels, equal numbers are trusted only on a
/// file system that several hosts share; different numbers prove nothing.
Verdict compare(FileIdentity const& a, FileIdentity const& b);

/// `path` made absolute, unless the working directory is unknown.
std::string absolute(std::string const& path);

/// Allows other hosts to find out whether they see this file: a file beside it that exists as long as this object or,
/// if none can be made, samples of its content. The file itself is not changed.
class Probe {
public:
    /// For the file `fd`, which was found at `path`. Local.
    Probe(std::string const& path, int fd);
    Probe(Probe const&) = delete;
    Probe& operator=(Probe const&) = delete;
    /// Removes the file beside it.
    ~Probe();
    /// What others need in order to look for the probe.
    [[nodiscard]] std::string const& evidence() const { return evidence_; }

private:
    std::string beside_;
    std::string evidence_;
};

/// Whether `fd`, which this rank found at `path`, is the file that the evidence describes. Local; waits for at most two
/// seconds, since some file systems show a new name late.
bool confirms(std::string_view evidence, std::string const& path, int fd);

}  // namespace tapioca::target
