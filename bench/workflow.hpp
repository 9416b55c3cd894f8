// Workflow: what it takes to write the particles of a simulation and to read them in an analysis, through MPI-IO and by
// TAPIOCA's three ways: the file system, aggregation on SSD, SSD target. Tables 7 and 8 of the paper of 2024.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "method.hpp"
#include "timing.hpp"

namespace bench {

/// What happens to the nodes' caches of files between writing and reading.
enum class Between { none, drop, fill };

struct WorkflowSetup {
    std::string directory;                  ///< for the files; all ranks see it
    std::string ssd = "/tmp";               ///< directory on the SSD of every node
    std::vector<std::string> methods = {};  ///< empty: all
    std::int64_t particles = 25600;
    std::string layout = "aos";
    int steps = 1;
    int repetitions = 7;
    int ranks_per_node = 0;   ///< treat every group of so many ranks as a node; 0: the real nodes
    bool same_ranks = false;  ///< every rank reads what it wrote
    bool fsync = false;       ///< count fsync with writing
    Between between = Between::none;
    std::int64_t fill_bytes = std::int64_t{1} << 30;             ///< of other data on each node, for Between::fill
    std::function<void(std::string const&, int)> progress = {};  ///< as Setup::progress
};

/// One figure of a method: seconds, and the MB/s of the bytes of the file.
struct WorkflowFigure {
    Spread seconds, mb_per_s;
};

struct WorkflowCost {
    std::string method;
    std::string label;           ///< of the method, for users
    WorkflowFigure write, read;  ///< of the steps, without opening and closing
    WorkflowFigure solution;     ///< writing and reading, with opening and closing
    Spread cached;               ///< share of the data in the cache of the node with most of it, before it is read
    bool verified = true;
};

struct WorkflowOutcome {
    std::string label;    ///< of the data
    std::string readers;  ///< who reads what
    std::string between;  ///< what happened between writing and reading
    std::string layout;
    std::int64_t bytes_per_rank = 0;  ///< in a step
    std::int64_t block_bytes = 0;
    int ranks = 0, nodes = 0;
    std::vector<WorkflowCost> costs;
};

/// The methods: "mpi-io", "file", "buffers" and "target".
std::vector<std::string> workflow_methods();

/// Collective over `comm`. The outcome is the same on all ranks.
WorkflowOutcome measure_workflow(MPI_Comm comm, WorkflowSetup const& setup);

std::string table(std::string const& title, WorkflowOutcome const& outcome);
std::string to_json(WorkflowOutcome const& outcome);

}  // namespace bench
