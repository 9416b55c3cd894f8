// Output: files that tools write at places that a user names, and the printing of names that others chose.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace tapioca::core {

/// Opens `path` for writing, and creates it if necessary; does not truncate it. In a directory in which everybody may
/// create files (sticky, such as /tmp), a link or a file of another user is refused, whatever the kernel's
/// fs.protected_* settings are: it could lead to another file, or show the content to another user. @return a
/// descriptor
Result<int> open_output(std::string const& path);
/// Replaces the content of `path` by `bytes`.
Status write_output(std::string const& path, std::span<std::byte const> bytes);

/// `text` with control characters escaped, as in \x1b, because a name may contain a newline or a terminal's control
/// sequences.
std::string printable(std::string_view text);
/// The name of a file as one word of a shell, for messages that advise a command: somebody will paste it. Unchanged if
/// no shell does anything with its characters, otherwise in single quotes, or in $'...' if it has control characters,
/// so that the result is also printable(). A name that would be an option gets "./" in front.
std::string shell_word(std::string_view path);

}  // namespace tapioca::core
