// Output: files that the tools write where a user wants them, and names that others chose, for a terminal.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace tapioca::core {

/// Opens `path` for writing, and makes it if it is not there; nothing is cut off. In a directory where everybody may
/// put things (sticky, as /tmp is), a link or a file of another user is refused, whatever the kernel's fs.protected_*
/// settings are: it could lead to somebody's file, or show the content to somebody.
/// @return a descriptor
Result<int> open_output(std::string const& path);
/// Replaces what is in `path` by `bytes`.
Status write_output(std::string const& path, std::span<std::byte const> bytes);

/// `text` with control characters spelled out, as \x1b: a name may hold a newline, or what a terminal obeys.
std::string printable(std::string_view text);

}  // namespace tapioca::core
