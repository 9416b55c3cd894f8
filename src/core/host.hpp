// This host: its name, for messages; its kernel; and where its processes share memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tapioca::core {

/// The directory of files through which processes of a host share memory.
inline constexpr char const* shm_directory = "/dev/shm";

std::string host_name();

/// The identifier of the running kernel, which changes at every boot. Containers of one kernel have the same, and so do
/// virtual machines that were copied while they ran. Empty if it cannot be found out.
std::string boot_id();

/// A number that nobody else has at this time, as far as the system can ensure.
std::uint64_t random_number();

/// A new name for a file of shared memory. By this name, a file whose maker was killed before it could remove it is
/// found and removed later (machine/tier/leftovers.cpp).
std::string new_memory_name();

/// FNV-1a: the same on every host.
std::uint64_t digest(std::string_view bytes, std::uint64_t hash = 14695981039346656037U);

}  // namespace tapioca::core
