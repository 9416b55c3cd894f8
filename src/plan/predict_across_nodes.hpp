// Predictions for several nodes: what the busiest rank, node and gateway and the file system need. Pure functions.
#pragma once

#include <vector>

#include "machine/platform/gateways.hpp"
#include "plan/plan.hpp"
#include "plan/weight.hpp"

namespace tapioca::plan {

/// False where the links' figures are assumed.
bool links_known(Job const& job);

/// What passes where while a step runs.
struct Flow {
    std::vector<double> node_bytes;  ///< by the job's nodes: what each exchanges with the file
    int accessing = 1;               ///< processes that read or write the file
    double links_s = 0;              ///< that the links of the busiest node need for what crosses nodes
    [[nodiscard]] double most_bytes() const;
    [[nodiscard]] int nodes_used() const;
};

/// As many aggregators on evenly spread nodes: all that can be said before they have places. `scattered`: all nodes
/// have data in every partition; else neighbouring data is on one node.
Flow even_flow(Job const& job, int aggregators, bool reading, bool scattered);
/// The route's aggregators are where its places say.
Flow placed_flow(Job const& job, Route const& route, std::vector<Weight> const& weights);
/// Every rank accesses the file itself. Without weights: as if few nodes had as much of the data as they can have.
Flow direct_flow(Job const& job, std::vector<Weight> const& weights);

/// Seconds. The parts overlap, but for what ranks do by themselves.
struct Prediction {
    double ranks_s = 0;  ///< starting; calls and, when reading, copies of the busiest rank
    double copies_s = 0;
    double links_s = 0;
    double gateways_s = 0;
    double storage_s = 0;
    machine::Passage passage;
    [[nodiscard]] double total() const;
    [[nodiscard]] std::vector<Candidate> parts() const;
};
Prediction predict_aggregated(Job const& job, Flow const& flow, bool reading);
Prediction predict_direct(Job const& job, Flow const& flow, bool reading);

/// Bytes that direct access moves beyond the step's own: parts of blocks and stripes that several ranks have a part of.
double partial_bytes(Job const& job, bool reading);

/// Writers or readers of one file beyond which nothing is gained, with the job's share of the file system.
double streams_of(Job const& job, bool reading);

}  // namespace tapioca::plan
