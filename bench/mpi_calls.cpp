#include "mpi_calls.hpp"

#include <stdexcept>

#include <fmt/core.h>

namespace bench {

void check_mpi(int code, char const* call)
{
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw std::runtime_error(fmt::format("{}: {}", call, text));
}

HintList::HintList(bool through, StageSetup const* stage, SettingList const& settings)
{
    if (through && !stage && settings.empty()) return;
    MPI_Info_create(&info_);
    if (!through) MPI_Info_set(info_, "tapioca", "false");
    if (through)
        for (auto const& [name, value] : settings) MPI_Info_set(info_, ("tapioca_" + name).c_str(), value.c_str());
    if (!stage) return;
    MPI_Info_set(info_, "tapioca_stage", stage->place.c_str());
    if (stage->drain) MPI_Info_set(info_, "tapioca_stage_drain", stage->drain->c_str());
}

HintList::~HintList()
{
    if (info_ != MPI_INFO_NULL) MPI_Info_free(&info_);
}

}  // namespace bench
