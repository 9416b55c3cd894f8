// Memory that is free on this node. `root` is where /proc and /sys are found: "" but in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tapioca::machine {

/// MemAvailable. Without bounds if the system does not tell.
std::uint64_t available_memory(std::string const& root = "");
/// What this process's cgroups (v2 and v1, up to the root) let it use still; page cache counts as free, since the
/// kernel drops it first. Without bounds if they set none.
std::uint64_t cgroup_free_bytes(std::string const& root = "");
/// Of one NUMA node, page cache again counted as free; nothing if there is no such node.
std::optional<std::uint64_t> node_free_bytes(unsigned node, std::string const& root = "");
/// Of the file system of a directory, for this user; 0 if there is none.
std::uint64_t directory_free_bytes(std::string const& directory);

}  // namespace tapioca::machine
