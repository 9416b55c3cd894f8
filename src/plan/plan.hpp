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

/// What a plan is made from; the same on every rank.
struct Job {
    pattern::Summary pattern;
    machine::Storage storage;
    Options options;
    int ranks = 1;
    int cores = 1;  ///< that the ranks of a node may use together
    int nodes = 1;
    std::shared_ptr<machine::Machine const> machine;     ///< none: one node, with memory only
    std::vector<int> where;                              ///< the machine's node of each node; empty: in order
    std::vector<std::vector<std::uint64_t>> free_bytes;  ///< per node, or one for all: per tier of the machine
    std::uint64_t fixed_bytes = 0;                       ///< that a process of the communicator takes in any case
    std::vector<std::string> variables;                  ///< what this rank calls them; empty if none has a name
};

enum class Way {
    aggregated,  ///< through buffers in shared memory
    direct,      ///< every rank accesses the file itself
};

enum class Reason {
    fastest,       ///< by the predicted times
    asked,         ///< by TAPIOCA_DIRECT
    small_pieces,  ///< direct access would move whole blocks for parts of them
};

enum class Transport { p2p, rma };

/// How a route crosses nodes. Empty on one node.
struct NetworkRoute {
    /// A node that may have data in the partitions from `begin` to `end`, its own among them.
    struct Feed {
        int node;
        std::size_t begin, end;
    };
    Transport transport = Transport::p2p;
    std::vector<int> homes;                    ///< per partition: the node of its aggregator
    std::vector<Feed> feeds;                   ///< ascending by node, then by partition: lists would be long
    std::vector<std::vector<int>> senders;     ///< per node: its ranks that take turns to send what it has gathered
    std::vector<std::uint64_t> slot_bytes;     ///< per node: room for what it sends to one aggregator in one round
    std::vector<std::uint64_t> request_bytes;  ///< per node: of a slot for reading, what is for requests
    std::uint64_t stray_bytes = 0;             ///< a rank with more under way that fitted into no slot waits
    std::uint64_t crossing_bytes = 0;          ///< of a step's data, at base 0
    std::uint64_t most_in_bytes = 0;           ///< into one node
    std::uint64_t most_out_bytes = 0;          ///< out of one node

    /// The other nodes that may have data in `partition`, ascending.
    [[nodiscard]] std::vector<int> feeders(std::size_t partition) const;
    /// Calls use(partition, node, rank) for all feeders of the partitions in order, with the rank that sends for the
    /// node.
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
    int aggregators = 0;             ///< writers with a partition each, or readers that share one
    std::vector<int> ranks;          ///< of the aggregators, partition by partition
    std::vector<std::int64_t> cuts;  ///< partition i is [cuts[i], cuts[i+1]), relative to the step's base
    std::int64_t unit = 1;           ///< of the cuts: the file's stripe, or its block
    std::uint64_t round_bytes = 0;   ///< size of a buffer
    int buffers = 0;                 ///< per aggregator
    std::uint64_t granule = 1;       ///< bytes per bit of a round's map of valid bytes
    bool dense = false;              ///< no holes: no map is needed
    machine::Reserve reserve = machine::Reserve::nothing;
    bool patch = false;  ///< small pieces with holes between them may be stored through a mapping of the file
    Reason reason = Reason::fastest;
    int considered = 0;       ///< aggregators of the aggregated candidate
    double aggregated_s = 0;  ///< its predicted time; after connect() with the network's and the tier's part
    double direct_s = 0;
    bool direct_allowed = true;    ///< on one node: pieces are not smaller than blocks or stripes
    std::vector<Candidate> parts;  ///< on several nodes: what the predicted time of the way taken is made of
    machine::Passage passage;      ///< likewise: what passes the gateways
    NetworkRoute network;
    std::vector<AggregatorPlace> aggregator_places;  ///< per partition: place and tier; empty: memory of the only node
    std::vector<std::size_t> areas;  ///< per partition: 0 for ordinary memory, else the tier, counted from 1; empty: 0
    std::vector<std::string> notes;  ///< where an option was adapted
    core::Status feasible;           ///< or why this direction cannot be carried out

    /// Without aggregators after all.
    void go_direct();
    /// Predicted times, the chosen way first; and why it was chosen.
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
    /// Names of the tiers that hold the buffers, those with most first.
    [[nodiscard]] std::vector<std::string> tiers(Job const& job) const;
    /// True if the data crosses nodes on its way to the aggregators.
    [[nodiscard]] bool networked() const { return !network.homes.empty(); }
};

struct Plan {
    Job job;
    Route write;
    Route read;
};

/// True if balancing the write's partitions takes a histogram of the bytes: there are several, and not every
/// byte between the first and the last is written once.
bool wants_histogram(Job const& job);
inline constexpr std::size_t histogram_bins = 512;
inline constexpr int most_partitions = 4096;

/// Fails only if the memory cap cannot be kept. Without a histogram, partitions are cut evenly.
core::Result<Plan> make(Job job, std::vector<std::uint64_t> const& histogram);

/// The ranks of each node.
using Nodes = std::vector<std::vector<int>>;

/// True if the route's aggregators have a choice: several nodes, or several tiers.
bool wants_election(Job const& job, Route const& route);
/// What is to be decided about a route's places. `weights` are by partition of its cuts.
core::Result<Election> election_of(Job const& job, Route const& route, Nodes const& nodes,
                                   std::vector<Weight> const& weights);
/// Who is asked when places are chosen: the ranks of a job, or a description of them.
struct Census {
    std::function<std::vector<Weight>(std::vector<std::int64_t> const& cuts)> weigh;
    std::function<Bids(Election const&)> poll;  ///< the best bids of all nodes
};
/// Chooses the aggregators' places and ranks and who sends to whom, for every route that wants_election().
/// A route whose buffers fit nowhere, or which cannot keep the memory cap, is not feasible.
void connect(Plan& plan, Nodes const& nodes, Census const& census);

/// Without windows, the other transport does; `why` is what the MPI said.
void refuse_rma(Plan& plan, std::string const& why);

/// The rounds of a route's partitions when the step begins at `base`. Boundaries between partitions are multiples of
/// the route's unit in the file, whatever the base, and of the block of the file that the step was retargeted to if
/// that is larger; rounds end on such boundaries, or on those of blocks if a round is not made of whole units.
struct Schedule {
    struct Partition {
        std::int64_t begin = 0, end = 0;  ///< in the file
        std::int64_t origin = 0;          ///< begin, aligned down: where round 0 starts
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

/// What the options ask for, or the default.
Strategy const& strategy_of(Job const& job);
Model model_of(Job const& job);

/// Every aggregator's place, its cost and who else was considered, as a table. Empty if there was no choice.
std::string explain_places(Plan const& plan);
/// The plan for people. `settings` are lines such as "buffersize = 4194304 (environment)".
std::string explain(Plan const& plan, std::vector<std::string> const& settings);

}  // namespace tapioca::plan
