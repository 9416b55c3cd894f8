// Arguments: the benchmark's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "election.hpp"
#include "halo.hpp"
#include "measure.hpp"
#include "workflow.hpp"

namespace bench {

struct Arguments {
    Setup setup;
    ElectionSetup election;
    std::optional<HaloSetup> halo;
    std::optional<WorkflowSetup> workflow;
    std::string json;
    bool live = false;  ///< redraw the progress line
    bool explain = false;
    bool write_only = false;
    bool parse_only = false;
    bool ways = false;       ///< measure every way that the planner could have taken
    std::int64_t steps = 0;  ///< steps of a whole file; 0: two steps, timed separately
    std::optional<double> compute_s;
    bool all_methods = false;                       ///< no methods were named
    workloads::WorkloadKind const* kind = nullptr;  ///< null: measure the election, the halo or the workflow
    std::vector<workloads::Maker> workloads;        ///< run one after the other

    /// True if whole files are measured, in phases.
    [[nodiscard]] bool writes_whole_files() const { return steps > 0 || compute_s || (kind && kind->whole_files); }
};

/// Fills `arguments`. Returns an exit status if there is nothing more to do: help was printed, or an error.
std::optional<int> parse(int argc, char** argv, Arguments& arguments);

}  // namespace bench
