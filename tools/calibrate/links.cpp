#include "links.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace calibrate {

namespace {

namespace machine = tapioca::machine;

std::size_t outermost(std::vector<int> const& hops)
{
    auto level = hops.size();
    while (level > 0 && hops[level - 1] == 0) --level;
    return level;  // counted from 1; 0: the same node
}

/// Half of the median round trip. Only the two ranks of the pair call it.
double half_trip_s(MPI_Comm comm, int peer, bool first, int bytes, double seconds, int least, int most)
{
    std::vector<char> data(static_cast<std::size_t>(bytes));
    auto const send = [&] { MPI_Send(data.data(), bytes, MPI_BYTE, peer, 0, comm); };
    auto const receive = [&] { MPI_Recv(data.data(), bytes, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE); };
    auto const trip = [&] {
        first ? send() : receive();
        first ? receive() : send();
    };
    constexpr int warm_ups = 2;
    double once_s = 0;
    for (int i = 0; i < warm_ups; ++i) {
        auto const begin = now();
        trip();
        once_s = now() - begin;
    }
    int count = static_cast<int>(std::clamp(seconds / std::max(once_s, 1e-9), double(least), double(most)));
    if (first)
        MPI_Send(&count, 1, MPI_INT, peer, 0, comm);
    else
        MPI_Recv(&count, 1, MPI_INT, peer, 0, comm, MPI_STATUS_IGNORE);
    return median(repeat(count, count, 0, trip)) / 2;
}

/// What one hop of a level adds to the latency of the levels inside it. Never negative: on a noisy machine, a longer
/// path may seem shorter.
double hop_s(double way_s, std::vector<int> const& hops, std::vector<LinkFigures> const& inner)
{
    for (std::size_t level = 0; level < inner.size(); ++level) way_s -= hops[level] * inner[level].latency_s;
    return std::max(0.0, way_s / hops[inner.size()]);
}

}  // namespace

std::vector<std::vector<NodePair>> choose_pairs(machine::Topology const& topology, std::vector<int> const& where,
                                                std::size_t most)
{
    constexpr int starts = 64;  // for each distance in the job; limits the search in a large job
    auto const nodes = static_cast<int>(where.size());
    std::vector<std::vector<NodePair>> pairs(topology.levels().size());
    for (int apart = 1; apart < nodes; ++apart) {
        for (int const from : spread(nodes - apart, starts)) {
            auto const level = outermost(topology.hops(where[from], where[from + apart]));
            if (level > 0 && pairs[level - 1].size() < most) pairs[level - 1].push_back({from, from + apart});
        }
        if (std::all_of(pairs.begin(), pairs.end(), [&](auto const& list) { return list.size() == most; })) break;
    }
    return pairs;
}

std::vector<LinkFigures> measure_links(Crew const& crew, machine::Topology const& topology,
                                       std::vector<int> const& where)
{
    constexpr int small = 8;
    int const large = crew.quick() ? 1 << 20 : 4 << 20;
    auto const& team = crew.team();
    auto const pairs = choose_pairs(topology, where, crew.quick() ? 2 : 4);
    int total = 0, n = 0;
    for (auto const& list : pairs) total += static_cast<int>(list.size());

    std::vector<LinkFigures> figures;
    for (std::size_t level = 0; level < pairs.size(); ++level) {
        auto const& described = topology.levels()[level];
        std::vector<double> latencies, bandwidths;
        for (auto const [from, to] : pairs[level]) {
            int const a = team.nodes()[from][0];
            int const b = team.nodes()[to][0];
            bool const mine = team.rank() == a || team.rank() == b;
            crew.show("links", ++n, total, fmt::format("{}, ranks {} and {}", described.name, a, b));
            std::vector<double> times(2);
            crew.meet(mine);
            if (mine) {
                bool const first = team.rank() == a;
                int const peer = first ? b : a;
                times[0] = half_trip_s(team.all(), peer, first, small, 0.1, 20, 2000);
                times[1] = half_trip_s(team.all(), peer, first, large, crew.quick() ? 0.05 : 0.4, 3, 50);
            }
            crew.meet(mine);
            times = crew.told_by(a, times);
            latencies.push_back(hop_s(times[0], topology.hops(where[from], where[to]), figures));
            bandwidths.push_back(large / times[1]);
        }
        if (pairs[level].empty())
            figures.push_back({0, described.latency_s, described.bandwidth});
        else
            figures.push_back({static_cast<int>(pairs[level].size()), median(latencies), median(bandwidths)});
    }
    return figures;
}

}  // namespace calibrate
