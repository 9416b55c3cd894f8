// Stripes: how a parallel file system deals a file's bytes to its servers, read from it and asked of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/result.hpp"
#include "machine/storage.hpp"

namespace tapioca::machine {

struct Stripes {
    std::int64_t bytes = 0;  ///< of one stripe; 0: unknown
    int count = 0;           ///< servers that they go round; 0: unknown

    friend bool operator==(Stripes const&, Stripes const&) = default;
};

/// The value of Lustre's attribute `lustre.lov`. Of a composite layout, the part that covers most of the file. Nothing
/// if it is truncated, of another kind, or has no stripes (data on the metadata server).
std::optional<Stripes> parse_lustre_layout(std::span<std::byte const> layout);
/// What asks Lustre for these stripes. A member that is 0 is left to the file system. Fails for what no layout holds.
core::Result<std::array<std::byte, 32>> lustre_layout(Stripes wanted);

/// CephFS's `ceph.file.layout.*`. With one stripe a row, the stripes are the objects, on servers that nobody counts.
std::optional<Stripes> ceph_stripes(std::int64_t unit, std::int64_t count, std::int64_t object_bytes);
/// What asks CephFS for these stripes, as the value of `ceph.file.layout`.
std::string ceph_layout(Stripes wanted);

/// True for a file system whose files have stripes, by its name.
bool has_stripes(std::string const& file_system);
/// The stripes of the open file `fd` on `file_system`, where it tells them.
std::optional<Stripes> stripes_of(int fd, std::string const& file_system);

/// Makes the file `path` with these stripes, if it is not there yet; a file that is there keeps its own. Returns why
/// they could not be had, for people; nothing if all is well, or if the file cannot be made: whoever opens it will
/// know why. Local.
std::string create_striped(std::string const& path, Stripes wanted);

/// Enters stripes into `storage`, whose block becomes no larger than one of them.
void enter(Storage& storage, Stripes stripes);

}  // namespace tapioca::machine
