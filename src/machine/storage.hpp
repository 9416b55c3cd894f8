// Storage: what is known about the file system under a file: its block and the costs that planning uses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace tapioca::machine {

/// A way to make room for new bytes of a file that is faster than the write itself.
enum class Reserve {
    nothing,
    allocate,  ///< fallocate the whole range first: one allocation instead of one per page
    populate,  ///< touch the pages first, without the lock that a write holds, in several processes at once
};

/// Costs of a file system. Bandwidths are in bytes per second, for all writers or readers together unless stated
/// otherwise.
struct Storage {
    std::string name;
    std::int64_t block_bytes = 4096;
    Reserve reserve = Reserve::nothing;
    int write_streams = 1;                         ///< number of writers of one file beyond which nothing is gained
    int read_streams = 16;                         ///< number of readers of one file beyond which nothing is gained
    std::uint64_t write_round_bytes = 0;           ///< best size of one write, by one writer
    std::uint64_t parallel_write_round_bytes = 0;  ///< by several, after Reserve::populate
    double call_s = 0;                             ///< one read or write call without its bytes
    double contended_call_s = 0;                   ///< the same when several processes write one file
    double write_bw = 0;                           ///< one writer
    double parallel_write_bw = 0;                  ///< write_streams writers, after Reserve::populate
    double contended_write_bw = 0;                 ///< several processes that write one file, without Reserve::populate
    double read_bw = 0;                            ///< each reader
    std::int64_t stripe_bytes = 0;                 ///< stripe of a striped file; 0: not striped, or unknown
    int stripe_count = 0;                          ///< number of servers over which the file is striped
    bool remote = false;                           ///< served by other machines
    bool each_node = false;  ///< the figures are what a single node sees; those of all nodes together are unknown
    int share_nodes = 0;     ///< a job on this many nodes has the streams above, others in proportion; 0: all do
    std::string note = {};   ///< for messages: what happened to a request for stripes
    bool coherent = true;    ///< hosts see each other's writes at once
};

/// The file system of the open file `fd`. Fails for a directory, which open() can open for reading.
core::Result<Storage> storage_of(int fd);

/// Which hosts may find one and the same file under one path.
enum class Reach {
    one_host,       ///< a disk or memory of a single host
    several_hosts,  ///< served by other machines
    unknown,
};
/// The reach of the file system of the open file `fd`. Local; one system call, unless it is FUSE.
Reach reach_of(int fd);

/// Replaces the figures by those that a platform file gives for this kind of file system.
void adopt(Storage& found, Storage const& described);

/// Names of the known file systems.
std::vector<std::string_view> storage_names();

/// The profile of a file system by name: "tmpfs", "ext", "xfs", ...; a conservative one for an unknown name.
Storage storage_profile(std::string const& name);

/// The name of the file system that serves the FUSE mount on device `major:minor`, from the text of
/// /proc/self/mountinfo; "fuse" if unknown.
std::string fuse_name(std::string_view mountinfo, unsigned major, unsigned minor);

}  // namespace tapioca::machine
