// Stripes: how a parallel file system distributes a file's bytes over its servers; how to query and to request it.
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
    int count = 0;           ///< number of servers over which they are distributed; 0: unknown

    friend bool operator==(Stripes const&, Stripes const&) = default;
};

/// Parses Lustre's attribute `lustre.lov`. For a composite layout, returns the part that covers most of the file.
/// Nothing if it is truncated, of another kind, or has no stripes (data on the metadata server).
std::optional<Stripes> parse_lustre_layout(std::span<std::byte const> layout);
/// The layout that requests these stripes from Lustre. A member that is 0 is left to the file system. Fails for values
/// that a layout cannot contain.
core::Result<std::array<std::byte, 32>> lustre_layout(Stripes wanted);

/// From CephFS's `ceph.file.layout.*`. With one stripe per row, the stripes are the objects, on an unknown number of
/// servers.
std::optional<Stripes> ceph_stripes(std::int64_t unit, std::int64_t count, std::int64_t object_bytes);
/// The value of `ceph.file.layout` that requests these stripes from CephFS.
std::string ceph_layout(Stripes wanted);

/// True for a file system whose files have stripes, by its name.
bool has_stripes(std::string const& file_system);
/// The stripes of the open file `fd` on `file_system`, if it reports them.
std::optional<Stripes> stripes_of(int fd, std::string const& file_system);

/// Creates the file `path` with these stripes, unless it exists; an existing file keeps its own. Returns a text that
/// says why the stripes could not be set; empty if they were, or if the file cannot be created, since opening it will
/// give the reason. Local.
std::string create_striped(std::string const& path, Stripes wanted);

/// Sets the stripes of `storage`, whose block becomes no larger than a stripe.
void enter(Storage& storage, Stripes stripes);

}  // namespace tapioca::machine
