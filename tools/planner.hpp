// Planner: makes plans of jobs on described machines, without running them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.hpp"
#include "plan/plan.hpp"
#include "workloads/workload.hpp"

namespace tools {

class Planner {
public:
    /// `ranks_per_node` ranks on each of the first `nodes` nodes of the machine.
    Planner(std::shared_ptr<tapioca::machine::Machine const> machine, int nodes, int ranks_per_node,
            tapioca::machine::Storage storage, workloads::Workload workload);

    [[nodiscard]] tapioca::core::Result<tapioca::plan::Plan> plan(tapioca::Options const& options) const;
    /// Bytes of each node in each partition of `cuts`.
    [[nodiscard]] std::vector<tapioca::plan::Weight> weigh(std::vector<std::int64_t> const& cuts,
                                                           std::int64_t unit) const;
    [[nodiscard]] workloads::Workload const& workload() const { return workload_; }

private:
    tapioca::plan::Job job_;
    tapioca::plan::Nodes nodes_;
    workloads::Workload workload_;
};

}  // namespace tools
