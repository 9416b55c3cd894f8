// CONTENTION_AWARE: the least cost wins, and the aggregators of a node share its link.
#include "plan/strategy/strategy.hpp"

namespace tapioca::plan {

namespace {

double share_the_link(std::size_t number)
{
    return 1 + static_cast<double>(number);
}

}  // namespace

extern Strategy const contention_aware;
Strategy const contention_aware = {
    "cost", "counts 2, 3, ... times: they share its link", false, true, score_by_cost, share_the_link, true,
};

}  // namespace tapioca::plan
