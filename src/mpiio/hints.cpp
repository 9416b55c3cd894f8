#include "mpiio/hints.hpp"

#include <array>
#include <string_view>

#include "comm/team.hpp"
#include "mpiio/environment.hpp"

namespace tapioca::mpiio {

Hints::Hints(MPI_Info info)
{
    if (info != MPI_INFO_NULL) PMPI_Info_dup(info, &info_);
}

Hints::~Hints()
{
    if (info_ != MPI_INFO_NULL && comm::mpi_is_active()) PMPI_Info_free(&info_);
}

bool Hints::add(MPI_Info info)
{
    bool any = false;
    for (auto const& [name, value] : comm::pairs_of(info)) {
        if (!name.starts_with("tapioca")) continue;
        if (info_ == MPI_INFO_NULL) PMPI_Info_create(&info_);
        PMPI_Info_set(info_, name.c_str(), value.c_str());
        any = true;
    }
    return any;
}

bool Hints::has(char const* name) const
{
    int length = 0;
    int found = 0;
    if (info_ != MPI_INFO_NULL) PMPI_Info_get_valuelen(info_, name, &length, &found);
    return found != 0;
}

bool Hints::refuse() const
{
    if (info_ == MPI_INFO_NULL) return false;
    std::array<char, 16> value = {};
    int found = 0;
    PMPI_Info_get(info_, "tapioca", static_cast<int>(value.size()) - 1, value.data(), &found);
    if (!found) return false;
    std::string_view const word(value.data());
    return word == "false" || word == "0" || word == "no" || word == "off" || word == "disable";
}

core::Result<settings::Settings> Hints::settings() const
{
    if (info_ == MPI_INFO_NULL) return environment();
    return settings::resolve({}, comm::pairs_of(info_), settings::read_environment());
}

void Hints::describe(MPI_Info info) const
{
    auto const in_force = settings();
    if (!in_force) return;
    // Programs open other handles with this. The stage would be their wish there, even if it is the environment's.
    for (auto const& [name, value, origin] : in_force->lines())
        if (name != "stage" || has("tapioca_stage")) PMPI_Info_set(info, ("tapioca_" + name).c_str(), value.c_str());
}

}  // namespace tapioca::mpiio
