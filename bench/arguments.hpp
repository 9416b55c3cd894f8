// Arguments: the benchmark's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "election.hpp"
#include "measure.hpp"

namespace bench {

struct Arguments {
    std::string verb;
    Setup setup;
    ElectionSetup election;
    Sizes sizes;
    std::string json;
    bool live = false;  ///< redraw the progress line
    bool explain = false;
    bool write_only = false;
    bool parse_only = false;
    std::vector<std::int64_t> particles{25000};
    std::vector<std::string> layouts{"aos", "soa"};
    std::vector<std::int64_t> blocks{64, 1024, 16384};
    std::int64_t bytes = 8 << 20;
    std::int64_t array_bytes = 100000;
    std::vector<std::int64_t> call_blocks{4096};
    std::int64_t call_bytes = 16 << 20;
    std::int64_t steps = 0;  ///< of a whole file; 0: two steps, timed one by one
    std::optional<double> compute_s;
    bool all_methods = false;  ///< none were named
    std::string declare = "subarray";
    std::vector<std::string> distributions{"uniform", "random", "normal"};

    /// Whole files are measured, in phases.
    [[nodiscard]] bool writes_whole_files() const
    {
        return steps > 0 || compute_s || verb == "strided" || verb == "segmented";
    }
};

/// Fills in `arguments`. A status if there is nothing more to do: help was asked for, or something is wrong, and said.
std::optional<int> parse(int argc, char** argv, Arguments& arguments);

}  // namespace bench
