// Measures all methods in turn, repetition by repetition, each on a fresh file, and verifies each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "method.hpp"
#include "timing.hpp"

namespace bench {

struct Setup {
    std::string directory;
    std::vector<std::string> methods;
    int repetitions = 7;
    bool fsync = false;
    bool read = true;
    MethodSetup method;
    double link_bytes_per_s = 0;  ///< of every node's link, each way; 0: unknown
    int switches = 1;             ///< number of switches, between which the ranks are divided equally
    bool dropin = false;          ///< measure MPI-IO also through the drop-in library
    /// Called on rank 0 before each piece of work: method, repetition.
    std::function<void(std::string const&, int)> progress;
};

/// One method, one direction, one phase: a row of the table.
struct Cell {
    std::string workload, layout, op, phase, method;
    std::int64_t bytes_per_rank = 0;
    std::int64_t block_bytes = 0;
    int ranks = 0;
    Spread mb_per_s;  ///< one per repetition
    bool verified = true;
    bool declared = false;                         ///< has a plan, from which the crossing bytes follow
    std::optional<std::int64_t> crossing_bytes;    ///< bytes between nodes in TAPIOCA's plan, if links are asked for
    std::optional<std::int64_t> must_cross_bytes;  ///< least bytes between switches with that plan's partitions
    double link_mb_per_s = 0;                      ///< rate that the nodes' links allow with that plan; 0: no limit
};

/// Figures of TAPIOCA's declaration: worst rank, median repetition.
struct DeclareCost {
    double declare_seconds = 0;
    double step_seconds = 0;
    std::uint64_t bookkeeping_bytes = 0;
    std::int64_t pieces = 0;
};

/// How TAPIOCA spent its time in an additional, untimed write and read: mean seconds over ranks.
struct Breakdown {
    double planning = 0;
    struct DirectionTimes {
        double copying = 0, waiting = 0, draining = 0;
    } write, read;
    std::string plan;
};

/// What TAPIOCA's plan sends between nodes in one step; 0 nodes: unknown.
struct NetworkTotals {
    int nodes = 0;
    std::int64_t crossing_bytes = 0;
    std::int64_t most_in_bytes = 0;     ///< into the node that receives most
    std::int64_t most_out_bytes = 0;    ///< out of the node that sends most
    std::int64_t must_cross_bytes = 0;  ///< between switches, wherever the aggregators are
    /// MB/s of a step of `step_bytes` if the busiest link were the only limit; 0 if nothing crosses.
    [[nodiscard]] double allowed_mb_per_s(std::int64_t step_bytes, double link_bytes_per_s) const;
};

/// Seconds to open and close a file that is not used.
struct Unused {
    Spread alone, through;  ///< many values per repetition
};

struct BenchOutcome {
    std::vector<Cell> cells;
    std::optional<Unused> unused;  ///< only with the drop-in library
    NetworkTotals write, read;
    DeclareCost declare;
    Breakdown breakdown;
};

/// Whether the file has exactly `total` bytes, and they are those of `seed`. Collective: each rank reads a slice with
/// plain calls and compares every byte.
bool file_matches(MPI_Comm comm, std::string const& path, std::int64_t total, std::uint64_t seed);
/// The same for a file that consists of subfiles.
bool set_matches(MPI_Comm comm, std::string const& path, std::int64_t total, std::uint64_t seed);

/// Collective over `comm`; the outcome is complete on rank 0 only.
BenchOutcome measure(MPI_Comm comm, BenchWorkload const& workload, Setup const& setup);

}  // namespace bench
