#include "mpiio/calls.hpp"

namespace tapioca::mpiio {

std::string_view name(Call call)
{
#define X(name) #name,
    static constexpr std::array<std::string_view, calls> names = {TAPIOCA_CALLS(X)};
#undef X
    return names[static_cast<std::size_t>(call)];
}

void Calls::passed(Call call, std::string const& why)
{
    auto& reasons = passed_[static_cast<std::size_t>(call)];
    constexpr std::size_t most = 16;  // reasons that name numbers must not fill the memory
    ++reasons[reasons.contains(why) || reasons.size() < most ? why : "other reasons"];
}

std::array<std::uint64_t, calls> Calls::all_passed() const
{
    std::array<std::uint64_t, calls> sums = {};
    for (std::size_t call = 0; call < calls; ++call)
        for (auto const& [why, count] : passed_[call]) sums[call] += count;
    return sums;
}

}  // namespace tapioca::mpiio
