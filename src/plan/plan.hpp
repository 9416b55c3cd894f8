// Planning: pure functions from (pattern summary, storage, options) to a Plan. No MPI, no I/O.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tapioca/options.hpp>

#include "core/result.hpp"
#include "machine/machine.hpp"
#include "machine/platform/gateways.hpp"
#include "machine/storage.hpp"
#include "pattern/summary.hpp"
#include "plan/election.hpp"

namespace tapioca::plan {

/// The input of a plan; the same on every rank.
struct Job {
    pattern::Summary pattern;
    machine::Storage storage;
    Options options;
    int ranks = 1;
    int cores = 1;  ///< cores that the ranks of a node may use together
    int nodes = 1;
    std::shared_ptr<machine::Machine const> machine;     ///< null: one node, with memory only
    std::vector<int> where;                              ///< for each node, its number in the machine; empty: in order
    std::vector<std::vector<std::uint64_t>> free_bytes;  ///< per node, or one entry for all: per tier of the machine
    std::uint64_t fixed_bytes = 0;                       ///< bytes that a process of the communicator takes in any case
    std::vector<std::string> variables;                  ///< names of this rank's variables; empty if none has one
};

enum class Way {
    aggregated,  ///< through buffers in shared memory
    direct,      ///< every rank accesses the file itself
};

enum class Reason {
    fastest,       ///< according to the predicted times
    asked,         ///< by TAPIOCA_DIRECT
    small_pieces,  ///< direct access would move whole blocks for parts of them
};

enum class Transport { p2p, rma };

/// How a route crosses nodes. Empty on one node.
struct NetworkRoute {
    /// A node that may have data in the partitions from `begin` to `end`, including its own.
    struct Feed {
        int node;
        std::size_t begin, end;
    };
    Transport transport = Transport::p2p;
    std::vector<int> homes;                    ///< per partition: the node of its aggregator
    std::vector<Feed> feeds;                   ///< ascending by node, then by partition; full lists would be long
    std::vector<std::vector<int>> senders;     ///< per node: the ranks that take turns in sending what it has gathered
    std::vector<std::uint64_t> slot_bytes;     ///< per node: room for what it sends to one aggregator in one round
    std::vector<std::uint64_t> request_bytes;  ///< per node: the part of a slot for reading that requests have
    std::uint64_t stray_bytes = 0;     ///< a rank waits if more than this of what fitted into no slot is under way
    std::uint64_t crossing_bytes = 0;  ///< bytes of a step's data that cross nodes, at base 0
    std::uint64_t most_in_bytes = 0;   ///< most bytes into one node
    std::uint64_t most_out_bytes = 0;  ///< most bytes out of one node

    /// The other nodes that may have data in `partition`, ascending.
    [[nodiscard]] std::vector<int> feeders(std::size_t partition) const;
    /// Calls use(partition, node, rank) for all feeders of the partitions in order; `rank` sends for the node.
    template <class Use>
    void each_feeder(Use use) const
    {
        std::vector<std::size_t> turn(senders.size(), 0);
        for (std::size_t p = 0; p < homes.size(); ++p)
            for (int const feeder : feeders(p)) {
                auto const node = static_cast<std::size_t>(feeder);
                use(p, feeder, senders[node][turn[node]++ % senders[node].size()]);
            }
    }
};

struct Candidate {
    std::string name;
    double seconds = 0;
};

/// How one direction of a step, write or read, is carried out.
struct Route {
    Way way = Way::direct;
    int aggregators = 0;             ///< writers with a partition each, or readers that share one partition
    std::vector<int> ranks;          ///< ranks of the aggregators, by partition
    std::vector<std::int64_t> cuts;  ///< partition i is [cuts[i], cuts[i+1]), relative to the step's base
    std::int64_t unit = 1;           ///< unit of the cuts: the file's stripe, or its block
    std::uint64_t round_bytes = 0;   ///< size of a buffer
    int buffers = 0;                 ///< per aggregator
    std::uint64_t granule = 1;       ///< bytes per bit of a round's map of valid bytes
    bool dense = false;              ///< no holes, so no map is needed
    machine::Reserve reserve = machine::Reserve::nothing;
    bool patch = false;  ///< small pieces with holes between them may be stored through a mapping of the file
    Reason reason = Reason::fastest;
    int considered = 0;       ///< number of aggregators of the aggregated candidate
    double aggregated_s = 0;  ///< its predicted time; after connect(), including the network's and the tier's part
    double direct_s = 0;
    bool direct_allowed = true;    ///< on one node: pieces are not smaller than blocks or stripes
    std::vector<Candidate> parts;  ///< on several nodes: the parts of the predicted time of the chosen way
    machine::Passage passage;      ///< on several nodes: the data that passes the gateways
    NetworkRoute network;
    std::vector<AggregatorPlace> aggregator_places;  ///< per partition: place and tier; empty: memory of the only node
    std::vector<std::size_t> areas;  ///< per partition: 0: ordinary memory; else the tier, from 1; empty: all 0
    std::vector<std::string> notes;  ///< notes about options that were adapted
    core::Status feasible;           ///< or why this direction cannot be carried out

    /// Changes the route to one without aggregators.
    void go_direct();
    /// Predicted times, that of the chosen way first; and why it was chosen.
    [[nodiscard]] std::vector<Candidate> candidates() const;
    [[nodiscard]] std::string why() const;
    /// Bytes of the map of valid bytes that goes with each buffer.
    [[nodiscard]] std::uint64_t map_bytes() const;
    /// Buffers and maps together.
    [[nodiscard]] std::uint64_t memory_per_aggregator() const;
    [[nodiscard]] std::size_t area(std::size_t partition) const
    {
        return areas.empty() ? 0 : areas[std::min(partition, areas.size() - 1)];
    }
    /// Names of the tiers that hold the buffers, in descending order of the number of buffers.
    [[nodiscard]] std::vector<std::string> tiers(Job const& job) const;
    /// True if the data crosses nodes on its way to the aggregators.
    [[nodiscard]] bool networked() const { return !network.homes.empty(); }
};

struct Plan {
    Job job;
    Route write;
    Route read;
};

/// True if balancing the write's partitions takes a histogram of the bytes: if there are several partitions, and not
/// every byte between the first and the last is written exactly once.
bool wants_histogram(Job const& job);
inline constexpr std::size_t histogram_bins = 512;
inline constexpr int most_partitions = 4096;

/// Fails only if the memory cap cannot be kept. Without a histogram, partitions are cut evenly.
core::Result<Plan> make(Job job, std::vector<std::uint64_t> const& histogram);

/// The ranks of each node.
using Nodes = std::vector<std::vector<int>>;

/// True if the route's aggregators have a choice: several nodes, or several tiers.
bool wants_election(Job const& job, Route const& route);
/// The input of an election of the route's places. `weights` are by partition of its cuts.
core::Result<Election> election_of(Job const& job, Route const& route, Nodes const& nodes,
                                   std::vector<Weight> const& weights);
/// Provides what placing needs from all ranks: from the ranks of a job, or from a description of them.
struct Census {
    std::function<std::vector<Weight>(std::vector<std::int64_t> const& cuts)> weigh;
    std::function<Bids(Election const&)> poll;  ///< returns the best bids of all nodes
};
/// Chooses the aggregators' places and ranks, and who sends to whom, for every route that wants_election(). A route is
/// not feasible if its buffers fit nowhere, or if it cannot keep the memory cap.
void connect(Plan& plan, Nodes const& nodes, Census const& census);

/// Changes to the other transport because windows were refused; `why` is the MPI library's reason.
void refuse_rma(Plan& plan, std::string const& why);

/// The rounds of a route's partitions when the step begins at `base`. Whatever the base, boundaries between partitions
/// are multiples, in the file, of the route's unit, and of the block of the file to which the step was retargeted if
/// that is larger. Rounds end on such boundaries, or on block boundaries if a round does not consist of whole units.
struct Schedule {
    struct Partition {
        std::int64_t begin = 0, end = 0;  ///< in the file
        std::int64_t origin = 0;          ///< begin, rounded down: where round 0 starts
        std::int64_t rounds = 0;
    };
    std::vector<Partition> partitions;
    std::int64_t round_bytes = 0;

    [[nodiscard]] std::int64_t round_of(std::size_t partition, std::int64_t offset) const
    {
        return (offset - partitions[partition].origin) / round_bytes;
    }
    [[nodiscard]] std::int64_t round_begin(std::size_t partition, std::int64_t round) const;
    [[nodiscard]] std::int64_t round_end(std::size_t partition, std::int64_t round) const;
};
Schedule schedule(Route const& route, std::int64_t block_bytes, std::int64_t base);

/// The strategy that the options ask for, or the default.
Strategy const& strategy_of(Job const& job);
Model model_of(Job const& job);

/// A table of every aggregator's place, its cost and the other candidates. Empty if there was no choice.
std::string explain_places(Plan const& plan);
/// A place on the way of a write's data to the file system. Levels drain into the next one at the same time, so the
/// slowest one binds.
struct RouteLevel {
    std::string name;
    std::string where;
    double seconds;  ///< for the data of one step
};
/// From the ranks' side to the file system. Without the last one if data stays on a tier.
std::vector<RouteLevel> levels(Plan const& plan);
/// A table of them.
std::string explain_levels(Plan const& plan);
/// The plan in words. `settings` are lines such as "buffersize = 4194304 (environment)".
std::string explain(Plan const& plan, std::vector<std::string> const& settings);

}  // namespace tapioca::plan
