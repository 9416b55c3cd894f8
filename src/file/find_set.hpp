// Finds out, while a file is opened, whether it is a set of subfiles or is to become one. All calls are local.
#pragma once

#include "file/open_file.hpp"

namespace tapioca::file {

/// On rank 0: finds out whether the open file is a set of subfiles, or is to become one, and whether this opening may
/// add chunks to it.
core::Status find_set(OpenFile& file, int fd);
/// On ranks that have heard from rank 0 what the file is: finds this node's directory for its subfiles.
core::Status place_set(OpenFile& file);

}  // namespace tapioca::file
