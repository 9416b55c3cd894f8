// Which file is it? All ranks must mean the one that rank 0 has opened, when they open it and ever after.
#pragma once

#include "file/open_file.hpp"

namespace tapioca::file {

/// Throws on all ranks unless all mean the file that rank 0 has opened, and in the same mode. Collective.
void require_same_file(OpenFile& file);

}  // namespace tapioca::file
