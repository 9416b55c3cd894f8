// Planning: the ranks of a file exchange what they know about a pattern, and all make the same plan from it.
#pragma once

#include "engine/session.hpp"
#include "pattern/variable.hpp"
#include "plan/plan.hpp"

namespace tapioca::engine {

/// What a plan depends on in addition to the pattern. The same on all ranks.
struct Scene {
    Session& session;
    DiscoveredMachine const& around;
    machine::Storage const& storage;
    Options const& options;
    bool writes = false;          ///< the file may be written
    bool refuse_overlap = false;  ///< fail if ranks overlap, for a file that may be written
};

/// The plan of a step in which this rank moves `variables`. The plan or the failure is the same on every rank.
/// Collective.
core::Result<plan::Plan> make_plan(Scene const& scene, pattern::Variables const& variables);

}  // namespace tapioca::engine
