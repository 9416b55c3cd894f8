// To which file the data belongs that lies in a set's directory on a tier. All calls are local.
#pragma once

#include <string>

#include "subfile/tier_place.hpp"

namespace tapioca::subfile {

enum class Belonging {
    file,     ///< which is there, perhaps under another name
    gone,     ///< the file does not exist any more, or was moved to another directory
    other,    ///< the name is now another file's
    unknown,  ///< perhaps the file system is not there
};
struct PlaceOwner {
    Belonging belonging;
    std::string path;    ///< of the file now
    std::string reason;  ///< if it is not known
};
PlaceOwner find_owner(TierPlace const& place);

/// The file to which the data belongs, if it is another one than the open file `stub`, which then is a copy of it.
/// Empty otherwise.
std::string original_of(TierPlace const& place, int stub);

/// Fails if the open file `stub` at `path` is a copy: whoever writes, drains or removes must not touch the original's
/// data.
core::Status check_original(TierPlace const& place, std::string const& path, int stub);

/// Enters the name that the set's file has now, if it was moved since the entry was made. If this user may not change
/// the entry, it stays as it is.
void note_moved(TierPlace const& place, std::string const& path);

/// Removes what a node has of a set whose file is gone. If a file has the set after all, since the one that is gone was
/// a copy or was copied, its data stays.
void remove_orphans(std::string const& place, SetId const& identity);

}  // namespace tapioca::subfile
