// Checks that all ranks use the file that rank 0 has opened.
#pragma once

#include "file/open_file.hpp"

namespace tapioca::file {

/// Throws on all ranks unless all have opened the same file as rank 0, in the same mode. Collective.
void require_same_file(OpenFile& file);

}  // namespace tapioca::file
