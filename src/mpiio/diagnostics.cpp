#include "mpiio/diagnostics.hpp"

#include <atomic>
#include <cstdio>

#include "comm/team.hpp"

namespace tapioca::mpiio {

void tell(std::string const& line)
{
    std::fprintf(stderr, "%s\n", line.c_str());
}

void tell_left_alone(std::string const& why)
{
    static std::atomic<bool> told = false;
    if (told.exchange(true) || comm::world_rank() != 0) return;
    tell(why + "; files are left to the MPI library");
}

}  // namespace tapioca::mpiio
