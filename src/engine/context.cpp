#include "engine/context.hpp"

#include <algorithm>

namespace tapioca::engine {

void Tickets::pass(plan::Schedule const& schedule, bool through_lanes)
{
    ++step;
    for (std::size_t p = 0; p < schedule.partitions.size(); ++p) {
        auto const rounds = static_cast<std::uint64_t>(schedule.partitions[p].rounds);
        if (through_lanes)
            lanes[p] += rounds;
        else
            read += rounds;
    }
}

std::int64_t Context::most_rounds() const
{
    std::int64_t most = 0;
    for (auto const& partition : schedule.partitions) most = std::max(most, partition.rounds);
    return most;
}

std::optional<std::size_t> Context::own_partition() const
{
    auto const& aggregators = route->ranks;
    auto const mine = std::find(aggregators.begin(), aggregators.end(), rank);
    if (mine == aggregators.end()) return std::nullopt;
    return static_cast<std::size_t>(mine - aggregators.begin());
}

void Context::add_cursors(std::size_t partition, std::vector<pattern::LayoutCursor>& to) const
{
    for (auto const& variable_buffer : variable_buffers) {
        to.emplace_back(*variable_buffer.layout);
        to.back().seek(schedule.partitions[partition].begin - base);
    }
}

std::int64_t Context::next_round(std::size_t partition, std::span<pattern::LayoutCursor const> cursors) const
{
    auto position = pattern::no_offset;
    for (auto const& cursor : cursors) position = std::min(position, cursor.position());
    bool const more = position < schedule.partitions[partition].end - base;
    return more ? schedule.round_of(partition, position + base) : no_round;
}

}  // namespace tapioca::engine
