// What the program can call at all: the functions that it, and the libraries it has loaded, are linked to.
#pragma once

namespace tapioca::mpiio {

/// Whether the program may begin collective accesses that are ended later: nonblocking or split. One that looks up such
/// a function by its name is not seen. Local; asked once.
bool may_begin_accesses();

}  // namespace tapioca::mpiio
