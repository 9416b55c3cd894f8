#include "mpiio/tell.hpp"

#include <atomic>
#include <string_view>

#include "comm/team.hpp"
#include "core/warn.hpp"

namespace tapioca::mpiio {

void tell(std::string const& text)
{
    constexpr std::string_view name = "tapioca: ";
    core::warn(text.starts_with(name) ? text.substr(name.size()) : text);
}

void tell_left_alone(std::string const& why)
{
    static std::atomic<bool> told = false;
    if (told.exchange(true) || comm::world_rank() != 0) return;
    tell(why + "; files are left to the MPI library");
}

}  // namespace tapioca::mpiio
