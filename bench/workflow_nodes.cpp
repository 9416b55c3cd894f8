#include "workflow_nodes.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "comm/shared_memory_groups.hpp"

namespace bench {

std::vector<int> leaders_of_nodes(MPI_Comm comm, int ranks_per_node)
{
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int leader = rank;
    if (ranks_per_node > 0) {
        leader -= rank % ranks_per_node;
    } else {
        auto node = tapioca::comm::neighbours(comm);  // MPI_Comm_split_type() may wait for ever on hosts in a box
        MPI_Bcast(&leader, 1, MPI_INT, 0, node);
        MPI_Comm_free(&node);
    }
    std::vector<int> leaders(static_cast<std::size_t>(ranks));
    MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, comm);
    return leaders;
}

int count_nodes(std::vector<int> const& leaders)
{
    return static_cast<int>(std::set<int>(leaders.begin(), leaders.end()).size());
}

int whose_data(std::vector<int> const& leaders, int rank)
{
    std::vector<int> by_node(leaders.size());
    std::iota(by_node.begin(), by_node.end(), 0);
    auto const leader = [&](int r) { return leaders[static_cast<std::size_t>(r)]; };
    std::stable_sort(by_node.begin(), by_node.end(), [&](int a, int b) { return leader(a) < leader(b); });

    std::ptrdiff_t shift = 1;
    if (count_nodes(leaders) > 1)  // a whole node further, also from the largest
        for (auto const one : leaders) shift = std::max(shift, std::count(leaders.begin(), leaders.end(), one));
    auto const position = std::find(by_node.begin(), by_node.end(), rank) - by_node.begin();
    return by_node[static_cast<std::size_t>((position + shift) % std::ssize(by_node))];
}

}  // namespace bench
