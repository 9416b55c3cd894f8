// Storage: what is known of the file system under a file: its block and the costs that planning weighs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace tapioca::machine {

/// What makes room for new bytes of a file faster than the write itself does.
enum class Reserve {
    nothing,
    allocate,  ///< fallocate the whole range before: one allocation instead of one per page
    populate,  ///< touch the pages first, outside of the lock that a write holds, several processes at once
};

/// Costs of a file system. Bandwidths in bytes per second, all writers or readers together unless said otherwise.
struct Storage {
    std::string name;
    std::int64_t block_bytes = 4096;
    Reserve reserve = Reserve::nothing;
    int write_streams = 1;                         ///< writers of one file beyond which nothing is gained
    int read_streams = 16;                         ///< likewise readers
    std::uint64_t write_round_bytes = 0;           ///< best size of one write, by one writer
    std::uint64_t parallel_write_round_bytes = 0;  ///< by several, after Reserve::populate
    double call_s = 0;                             ///< one read or write call without its bytes
    double contended_call_s = 0;                   ///< the same when several processes write one file
    double write_bw = 0;                           ///< one writer
    double parallel_write_bw = 0;                  ///< write_streams writers, after Reserve::populate
    double contended_write_bw = 0;                 ///< several processes writing one file without it
    double read_bw = 0;                            ///< each reader
    std::int64_t stripe_bytes = 0;                 ///< of a striped file; 0: not striped, or unknown
    int stripe_count = 0;                          ///< servers that the file's stripes go round
    bool remote = false;                           ///< served by other machines
    bool each_node = false;  ///< the figures are what a node by itself sees; those of all together are unknown
    int share_nodes = 0;     ///< a job on so many nodes has the streams above, others in proportion; 0: all have them
    std::string note = {};   ///< for people: what became of a wish for stripes
    bool coherent = true;    ///< hosts see each other's writes at once, not when one finds time
};

/// The file system that holds the open file `fd`. Fails for a directory, which open() lets one read.
core::Result<Storage> storage_of(int fd);

/// Whose files of one path may be one and the same file.
enum class Reach {
    one_host,       ///< a disk or memory of each host's own
    several_hosts,  ///< served by other machines
    unknown,
};
/// That of the file system that holds the open file `fd`. Local; one call of the system, unless it is FUSE.
Reach reach_of(int fd);

/// Takes the figures that a platform file gives for the kind of file system that was found.
void adopt(Storage& found, Storage const& described);

/// Names of the file systems that are known.
std::vector<std::string_view> storage_names();

/// The profile of a file system by name: "tmpfs", "ext", "xfs", ...; a careful one for an unknown name.
Storage storage_profile(std::string const& name);

/// What serves a file of FUSE on the device `major:minor`, from the text of /proc/self/mountinfo; "fuse" if unknown.
std::string fuse_name(std::string_view mountinfo, unsigned major, unsigned minor);

}  // namespace tapioca::machine
