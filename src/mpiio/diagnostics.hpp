// Messages of this library on stderr.
#pragma once

#include <string>

namespace tapioca::mpiio {

/// Prints a whole line, such as an Error's text, which begins with the library's name.
void tell(std::string const& line);

/// Prints, once and on rank 0 of the job, the first reason why files are left to the MPI library although nobody asked
/// for that. `why` is a whole line, too.
void tell_left_alone(std::string const& why);

}  // namespace tapioca::mpiio
