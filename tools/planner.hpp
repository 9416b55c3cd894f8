// Planner: plans of jobs that do not run, on described machines.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tapioca/pattern.hpp>

#include "core/result.hpp"
#include "plan/plan.hpp"

namespace tools {

/// What every rank would move.
struct Workload {
    std::string label;  ///< such as "HACC-IO aos, 25000 particles a rank"
    std::function<tapioca::Pattern(int rank)> pattern;
};
/// "hacc:25000,aos", "interleaved:4K,1M" (block, bytes a rank), "array1d:100K,normal" or "sizes:10M,50M" for `ranks`
/// ranks.
tapioca::core::Result<Workload> workload(std::string const& text, int ranks);

class Planner {
public:
    /// `ranks_per_node` ranks on each of the first `nodes` nodes of the machine.
    Planner(std::shared_ptr<tapioca::machine::Machine const> machine, int nodes, int ranks_per_node,
            tapioca::machine::Storage storage, Workload workload);

    [[nodiscard]] tapioca::core::Result<tapioca::plan::Plan> plan(tapioca::Options const& options) const;
    /// Bytes of each node in each partition of `cuts`.
    [[nodiscard]] std::vector<tapioca::plan::Weight> weigh(std::vector<std::int64_t> const& cuts,
                                                           std::int64_t unit) const;
    [[nodiscard]] Workload const& workload() const { return workload_; }

private:
    tapioca::plan::Job job_;
    tapioca::plan::Nodes nodes_;
    Workload workload_;
};

}  // namespace tools
