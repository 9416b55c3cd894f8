// TOPOLOGY_AWARE: the least cost wins, and a node's further aggregators cost five percent more each.
#include "plan/strategy/strategy.hpp"

namespace tapioca::plan {

namespace {

double five_percent_more(std::size_t number)
{
    double factor = 1;  // not pow(), whose result may differ between processors
    for (std::size_t i = 0; i < number; ++i) factor *= 1.05;
    return factor;
}

}  // namespace

extern Strategy const topology_aware;
Strategy const topology_aware = {
    "cost", "counts 5 % more each", false, true, score_by_cost, five_percent_more,
};

}  // namespace tapioca::plan
