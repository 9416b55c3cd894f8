#include "stage/neighbours.hpp"

#include <algorithm>

namespace tapioca::stage {

Neighbours::State Neighbours::state()
{
    if (first_pages_.empty())
        for (auto const& log : logs_) {
            if (log.own) continue;
            auto const file = open_private(log.place.meta(), false);
            if (!file) continue;
            if (auto page = Mapped::of(file->get(), 0, head_bytes, false)) first_pages_.push_back(std::move(*page));
        }
    State state{pattern::no_offset, 0, 0};
    for (auto const& page : first_pages_) {
        auto const* const counters = reinterpret_cast<Counters const*>(page.data() + sizeof(Head));
        state.appended += __atomic_load_n(&counters->appended, __ATOMIC_ACQUIRE);
        state.begin = std::min(state.begin, __atomic_load_n(&counters->begin, __ATOMIC_ACQUIRE));
        state.end = std::max(state.end, __atomic_load_n(&counters->end, __ATOMIC_ACQUIRE));
    }
    return state;
}

core::Status Neighbours::add_to(Content& content) const
{
    for (auto const& log : logs_) {
        if (auto status = content.add(log.place); !status) return status;
        for (auto const& place : log.overflow)
            if (is_ours(place.meta()))
                if (auto status = content.add(place); !status) return status;
    }
    return {};
}

core::Status Neighbours::add_others_to(Content& content, std::uint32_t rank, std::uint64_t epoch)
{
    if (epoch == UINT64_MAX) return {};
    auto const add = [&](Place const& place) { return content.add_others(place, rank, epoch, passed_[place.meta()]); };
    for (auto const& log : logs_) {
        if (!log.own)
            if (auto status = add(log.place); !status) return status;
        for (auto const& place : log.overflow)
            if (!log.own && is_ours(place.meta()))
                if (auto status = add(place); !status) return status;
    }
    return {};
}

}  // namespace tapioca::stage
