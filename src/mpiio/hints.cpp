#include "mpiio/hints.hpp"

#include <algorithm>
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
    auto pairs = comm::pairs_of(info);
    std::erase_if(pairs, [](Hint const& pair) { return !pair.first.starts_with("tapioca"); });
    if (pairs.empty()) return false;
    auto known = comm::pairs_of(info_);
    for (auto& pair : shown(!refuse())) known.push_back(std::move(pair));
    bool any = false;
    for (auto const& pair : pairs) {
        if (std::find(known.begin(), known.end(), pair) != known.end()) continue;
        if (info_ == MPI_INFO_NULL) PMPI_Info_create(&info_);
        PMPI_Info_set(info_, pair.first.c_str(), pair.second.c_str());
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

std::vector<Hints::Hint> Hints::shown(bool serves) const
{
    std::vector<Hint> pairs = {{"tapioca", serves ? "true" : "false"}};
    auto const in_force = settings();
    if (!serves || !in_force) return pairs;
    // Programs open other handles with these hints. There, a stage would count as the program's wish, even if it comes
    // from the environment.
    for (auto const& [name, value, origin] : in_force->lines())
        if (name != "stage" || has("tapioca_stage")) pairs.emplace_back("tapioca_" + name, value);
    return pairs;
}

}  // namespace tapioca::mpiio
