#include "plan/plan.hpp"

namespace tapioca::plan {

std::vector<int> NetworkRoute::feeders(std::size_t partition) const
{
    std::vector<int> nodes;
    for (auto const& feed : feeds)
        if (feed.begin <= partition && partition < feed.end && feed.node != homes[partition])
            nodes.push_back(feed.node);
    return nodes;
}

}  // namespace tapioca::plan
