// Planning: what the ranks of a file tell each other about a pattern, and the plan that all make of it.
#pragma once

#include "engine/session.hpp"
#include "pattern/variable.hpp"
#include "plan/plan.hpp"

namespace tapioca::engine {

/// What a plan depends on beside the pattern. The same on all ranks.
struct Scene {
    Session& session;
    DiscoveredMachine const& around;
    machine::Storage const& storage;
    Options const& options;
    bool writes = false;          ///< the file may be written
    bool refuse_overlap = false;  ///< of the bytes of different ranks, where it may be
};

/// The plan of a step in which this rank moves `variables`; the same on every rank, as is the failure. Collective.
core::Result<plan::Plan> make_plan(Scene const& scene, pattern::Variables const& variables);

}  // namespace tapioca::engine
