// Arguments: the benchmark's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "election.hpp"
#include "halo.hpp"
#include "measure.hpp"

namespace bench {

struct Arguments {
    Setup setup;
    ElectionSetup election;
    std::optional<HaloSetup> halo;
    std::string json;
    bool live = false;  ///< redraw the progress line
    bool explain = false;
    bool write_only = false;
    bool parse_only = false;
    bool ways = false;       ///< every way that the planner could have taken
    std::int64_t steps = 0;  ///< of a whole file; 0: two steps, timed one by one
    std::optional<double> compute_s;
    bool all_methods = false;                       ///< none were named
    workloads::WorkloadKind const* kind = nullptr;  ///< null: the election or the halo
    std::vector<workloads::Maker> workloads;        ///< one after the other

    /// Whole files are measured, in phases.
    [[nodiscard]] bool writes_whole_files() const { return steps > 0 || compute_s || (kind && kind->whole_files); }
};

/// Fills in `arguments`. A status if there is nothing more to do: help was asked for, or something is wrong, and said.
std::optional<int> parse(int argc, char** argv, Arguments& arguments);

}  // namespace bench
