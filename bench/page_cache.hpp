// The cache of files in this node's memory: looking into it, emptying it, and filling it with something else. A cache
// that a file server keeps for itself cannot be seen or emptied from here; it can be filled. All functions are local,
// and throw std::runtime_error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

using Directories = std::vector<std::string>;

/// The share of the bytes of all files below `directories` that are in the cache: 0 to 1.
double cached_share(Directories const& directories);

/// Makes all files below `directories` durable and asks the system to drop them from the cache. A file system that has
/// nothing but memory, such as tmpfs, keeps them.
void drop_from_cache(Directories const& directories);

/// Writes `bytes` of other data to a new file `path`, and reads them, in blocks in random order; then removes the file.
void fill_cache(std::string const& path, std::int64_t bytes);

}  // namespace bench
