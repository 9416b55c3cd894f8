// What this library says on stderr.
#pragma once

#include <string>

namespace tapioca::mpiio {

/// A whole line, such as an Error's own words: it begins with our name.
void tell(std::string const& line);

/// On rank 0 of the job, and once: the first reason why files are left to the MPI library although nobody wished that.
/// Such a line, too.
void tell_left_alone(std::string const& why);

}  // namespace tapioca::mpiio
