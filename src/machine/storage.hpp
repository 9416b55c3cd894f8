// Storage: what is known of the file system under a file: its block and the costs that planning weighs.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.hpp"

namespace tapioca::machine {

/// Costs of a file system as one node sees it. Bandwidths in bytes per second.
struct Storage {
    std::string name;
    std::int64_t block_bytes = 4096;
    int write_streams = 1;          ///< writers of one file beyond which nothing is gained
    int read_streams = 1;           ///< likewise readers
    double call_s = 0;              ///< one read or write call without its bytes
    double contended_call_s = 0;    ///< the same when several processes write one file
    double write_bw = 0;            ///< one writer
    double contended_write_bw = 0;  ///< several processes writing one file, all together
    double read_bw = 0;             ///< one reader
};

/// The file system that holds the open file `fd`.
core::Result<Storage> storage_of(int fd);

/// The profile of a file system by name: "tmpfs", "ext", "xfs", ...; a general one for an unknown name.
Storage storage_profile(std::string const& name);

}  // namespace tapioca::machine
