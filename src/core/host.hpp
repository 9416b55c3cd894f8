// This host: its name, for messages; which kernel it runs; where its processes share memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tapioca::core {

/// Where processes of a host share memory, as files.
inline constexpr char const* shm_directory = "/dev/shm";

std::string host_name();

/// What the kernel calls itself since it was started: containers of one kernel have the same, virtual machines that
/// were copied while they ran have it, too. Empty if it cannot be found out.
std::string boot_id();

/// A number that nobody else has at this time, as far as the system can tell.
std::uint64_t random_number();

/// A new name for a file of shared memory. One whose maker was killed before it could remove it is found by this name
/// and removed later (machine/tier/leftovers.cpp).
std::string new_memory_name();

/// FNV-1a: the same on every host.
std::uint64_t digest(std::string_view bytes, std::uint64_t hash = 14695981039346656037U);

}  // namespace tapioca::core
