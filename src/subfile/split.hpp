// Makes a set of subfiles of a plain file. All calls are local.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/result.hpp"

namespace tapioca::subfile {

inline constexpr std::uint32_t most_subfiles = 65536;

struct SplitFacts {
    std::uint32_t subfiles = 0;  ///< fewer than wanted if the file has less than 1 MiB for each
    std::uint64_t bytes = 0;
};

/// Makes a set of `subfiles` subfiles of the plain file `path`, each a slice that begins at a multiple of 1 MiB. A stub
/// takes the place of the file when the set is complete and durable: if this is killed, there is either the file as it
/// was, or the set. Calls progress(bytes) now and then.
core::Result<SplitFacts> split(std::string const& path, std::uint32_t subfiles,
                               std::function<void(std::uint64_t bytes)> const& progress);
/// What the file is called in which a split notes the set that it is making.
std::string splitting_name(std::string const& path);

}  // namespace tapioca::subfile
