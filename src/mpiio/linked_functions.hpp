// Which functions the program can call: those to which it, and the libraries that it has loaded, are linked.
#pragma once

namespace tapioca::mpiio {

/// Whether the program may begin collective accesses that are completed later: nonblocking or split. A program that
/// looks up such a function by name is not recognised. Local; computed once.
bool may_begin_accesses();

}  // namespace tapioca::mpiio
