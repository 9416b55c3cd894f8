// Predictions for several nodes: the times that the busiest rank, node and gateway and the file system need. Pure
// functions.
#pragma once

#include <vector>

#include "machine/platform/gateways.hpp"
#include "plan/plan.hpp"
#include "plan/weight.hpp"

namespace tapioca::plan {

/// False if the links' figures are assumed.
bool links_known(Job const& job);

/// How much data moves where while a step runs.
struct Flow {
    std::vector<double> node_bytes;  ///< by the job's nodes: bytes that each exchanges with the file
    int accessing = 1;               ///< processes that read or write the file
    double links_s = 0;              ///< time of the busiest node's links for data that crosses nodes
    [[nodiscard]] double most_bytes() const;
    [[nodiscard]] int nodes_used() const;
};

/// The flow for this number of aggregators on evenly spread nodes, which is all that is known before they have places.
/// `scattered`: all nodes have data in every partition; otherwise neighbouring data is on one node.
Flow even_flow(Job const& job, int aggregators, bool reading, bool scattered);
/// The flow with the route's aggregators at their places.
Flow placed_flow(Job const& job, Route const& route, std::vector<Weight> const& weights);
/// The flow if every rank accesses the file itself. Without weights: as if as few nodes as possible had the data.
Flow direct_flow(Job const& job, std::vector<Weight> const& weights);

/// Times in seconds. The parts overlap, except for what ranks do by themselves.
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

/// Bytes that direct access moves in addition to the step's own: the rest of blocks and stripes that several ranks
/// share.
double partial_bytes(Job const& job, bool reading);

/// The number of writers or readers of one file beyond which nothing is gained, considering the job's share of the file
/// system.
double streams_of(Job const& job, bool reading);

}  // namespace tapioca::plan
