// What this library says on stderr.
#pragma once

#include <string>

namespace tapioca::mpiio {

/// A warning. `text` may be an Error's own words, which begin with our name already.
void tell(std::string const& text);

/// On rank 0 of the job, and once: the first reason why files are left to the MPI library although nobody wished that.
void tell_left_alone(std::string const& why);

}  // namespace tapioca::mpiio
