#include "mpiio/tell.hpp"

#include <atomic>
#include <cstdio>

#include "comm/team.hpp"

namespace tapioca::mpiio {

void tell(std::string const& text)
{
    bool const named = text.starts_with("tapioca: ");
    std::fprintf(stderr, "%s%s\n", named ? "" : "tapioca: ", text.c_str());
}

void tell_left_alone(std::string const& why)
{
    static std::atomic<bool> told = false;
    if (told.exchange(true) || comm::world_rank() != 0) return;
    tell(why + "; files are left to the MPI library");
}

}  // namespace tapioca::mpiio
