// SecondLevel: what it would change if the nodes of a group (behind one switch, in one group of a dragonfly, in one
// Pset) first gathered for one another, so that an aggregator had one message a round from each group and not from each
// node.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.hpp"

namespace tapioca::plan {

struct SecondLevel {
    int groups = 0;           ///< that have nodes of the job
    int nodes = 0;            ///< of the largest group
    double links_s = 0;       ///< the links' part of the prediction with one level
    double two_levels_s = 0;  ///< and with two
    double step_s = 0;        ///< the longest part of the prediction with one level
    double two_levels_step_s = 0;

    /// Whether a step would be shorter by more than a fiftieth: predictions are not more exact than that.
    [[nodiscard]] bool pays() const { return two_levels_step_s < 0.98 * step_s; }
};

/// For writing, with the groups that save most. Nothing if the route does not gather over nodes, if the nodes do not
/// form several groups of several, or if the file is a set of subfiles, whose groups gather by themselves.
std::optional<SecondLevel> second_level(Plan const& plan);
/// In words; empty if there is nothing to say. Takes time and memory for each partition and group.
std::string explain_second_level(Plan const& plan);

}  // namespace tapioca::plan
