// The files in the directory of a set: opening, locking and listing them. For the parts of SetDirectory only; all calls
// are local.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "core/descriptor.hpp"
#include "subfile/set_directory.hpp"

namespace tapioca::subfile {

inline constexpr char const* new_index_name = "index.new";

/// Never follows a link, and never waits. A file that is made may be used by whoever may use the directory.
core::Result<core::Descriptor> open_in(int directory, char const* name, int flags);
/// Gives a file the directory's owner, if this user can, and its permissions.
core::Status take_mode(int directory, int fd);
/// Makes the directory one of whoever may use the open file `like`, but for the permissions in `without`. Fails if it
/// belongs to neither this user nor the file's owner.
core::Status give_mode(int directory, int like, mode_t without = 0);
/// Takes the lock of a whole file, or fails at once. Locks belong to the descriptor, so another handle of this process
/// counts as another job.
bool lock_alone(int fd);
bool is_locked(int fd);
/// Waits for the lock of a whole file: alone, or together with others. Released by unlock(), or with the descriptor.
enum class Sharing { alone, with_others };
void wait_for_lock(int fd, Sharing sharing);
void unlock(int fd);
/// `durable` files and directories; what cannot be synced counts as synced.
core::Status sync(int fd, char const* what);

/// The number at the end of a name such as subfile.3.
std::optional<std::uint32_t> number_in(std::string_view name, std::string_view prefix);
bool belongs_to_set(std::string_view name);
/// Calls visit(name) for everything in the directory. It may remove what it is told of.
core::Status each_name(int directory, std::function<void(std::string const& name)> const& visit);

std::uint64_t checksum_of(WriterNote const& note);

/// Cuts the text off if it is too long.
template <std::size_t size>
void put_text(char (&to)[size], std::string const& text)
{
    auto const bytes = std::min(text.size(), size - 1);
    std::memcpy(to, text.data(), bytes);
    to[bytes] = 0;
}

}  // namespace tapioca::subfile
