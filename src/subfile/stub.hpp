// The stub: the small text that stands under a file's own name while its data lies in subfiles. It tells programs that
// do not know of subfiles what they have found, and where the data is. It begins as the file does, for programs that
// find out a file's format from its first bytes. Specified in docs/formats/subfiles.md; change both together.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "stage/log_format.hpp"

namespace tapioca::subfile {

using SetId = stage::OpeningId;  ///< a random number that identifies a set

struct Stub {
    SetId identity = {};
    std::string directory;  ///< name of the directory beside the stub, without a path
    std::string tier = {};  ///< on which new subfiles lie, as in the setting `target`; empty: in the directory
};

/// The name of a tier in a stub is not longer.
inline constexpr std::size_t longest_tier = 200;
/// Every stub has this size, so that the size alone rules out almost every other file.
inline constexpr std::size_t stub_bytes = 1013;
/// So many of the file's first bytes are at the beginning of the stub; a line end follows.
inline constexpr std::size_t beginning_bytes = 8;

/// A name of the directory for a new set, beside the file that `path` leads to: the first choice, or another one if
/// that is taken. Different for all files of a directory.
std::string directory_name(std::string const& path, int choice = 1);
/// The file that the path leads to if it is a link; otherwise the path itself.
std::string real_path(std::string const& path);
/// The path of a directory beside the file that `path` leads to.
std::string beside(std::string const& path, std::string const& directory);

/// The identity that these hexadecimal digits mean, all of them.
std::optional<SetId> parse_identity(std::string_view hex);

std::string to_text(Stub const& stub);
/// Nothing if this is not a stub. Fails if it is one that this version cannot use, or that somebody has changed.
core::Result<std::optional<Stub>> parse_stub(std::string_view text);
/// The same for an open file.
core::Result<std::optional<Stub>> read_stub(int fd);
/// The same for a path. Nothing if the file does not exist or cannot be read.
core::Result<std::optional<Stub>> find_stub(std::string const& path);
/// Fails if the open file of so many bytes, which is no stub, was one: something has changed it, and its set is still
/// there.
core::Status check_remains(std::string const& path, int fd, std::uint64_t bytes);
/// The second name of a stub, in its directory.
inline constexpr char const* link_name = "stub";
/// What can still be read of a stub at `path` that was changed: the tier, empty if there is none, and the directory, or
/// the one that most files have.
struct StubRemains {
    std::string directory;
    std::string tier;
};
StubRemains salvage(std::string const& path, std::string_view text);
/// Whether the text is that of a stub, though it may have been changed.
bool is_of_stub(std::string_view text);
/// Makes the file a stub; whatever it held is lost. It begins with spaces.
core::Status write_stub(int fd, Stub const& stub);
/// Gives an open stub the first bytes of the file, as `first` has them. If these are fewer than eight, or all zero, the
/// stub begins with spaces.
core::Status write_beginning(int fd, std::span<std::byte const> first);

}  // namespace tapioca::subfile
