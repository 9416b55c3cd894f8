#include "mpiio/call_names.hpp"

namespace tapioca::mpiio {

namespace {

constexpr std::string_view independent = "an independent access";
constexpr std::string_view shared = "the shared file pointer";
constexpr std::string_view nonblocking = "a nonblocking collective call";
constexpr std::string_view none;

#define X(name, why) #name,
constexpr std::array<std::string_view, calls> names = {TAPIOCA_CALLS(X)};
#undef X
#define X(name, why) why,
constexpr std::array<std::string_view, calls> why_never = {TAPIOCA_CALLS(X)};
#undef X

}  // namespace

std::string_view name(Call call)
{
    return names[static_cast<std::size_t>(call)];
}

void Calls::passed(Call call, std::string const& why)
{
    std::lock_guard const lock(mutex_);
    auto& reasons = passed_[static_cast<std::size_t>(call)];
    constexpr std::size_t most = 16;  // limits the memory for reasons that contain numbers
    ++reasons[reasons.contains(why) || reasons.size() < most ? why : "other reasons"];
}

void Calls::clear()
{
    std::lock_guard const lock(mutex_);
    for (auto& count : served_) count = 0;
    for (auto& count : never_) count = 0;
    for (auto& reasons : passed_) reasons.clear();
}

std::vector<std::uint64_t> Calls::counts() const
{
    std::vector<std::uint64_t> result(served_.begin(), served_.end());
    result.resize(2 * calls);
    for (std::size_t call = 0; call < calls; ++call)
        for (auto const& [why, count] : reasons(static_cast<Call>(call))) result[calls + call] += count;
    return result;
}

std::map<std::string, std::uint64_t> Calls::reasons(Call call) const
{
    auto const i = static_cast<std::size_t>(call);
    auto all = [&] {
        std::lock_guard const lock(mutex_);
        return passed_[i];
    }();
    if (auto const count = never_[i].load(std::memory_order_relaxed); count > 0)
        all[std::string(why_never[i])] += count;
    return all;
}

}  // namespace tapioca::mpiio
