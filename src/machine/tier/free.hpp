// Memory that is free on this node. `root` is where /proc and /sys are found: "" except in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tapioca::machine {

/// MemAvailable. Unlimited if the system does not tell.
std::uint64_t available_memory(std::string const& root = "");
/// What this process's cgroups (v2 and v1, up to the root) still let it use; page cache counts as free, since the
/// kernel drops it first. Unlimited if they set no limit.
std::uint64_t cgroup_free_bytes(std::string const& root = "");
/// Free memory of one NUMA node, counting page cache as free; nothing if there is no such node.
std::optional<std::uint64_t> node_free_bytes(unsigned node, std::string const& root = "");
/// Free space of a directory's file system for this user; 0 if the directory does not exist.
std::uint64_t directory_free_bytes(std::string const& directory);

}  // namespace tapioca::machine
