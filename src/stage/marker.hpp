// Marker: a small file beside the target that says where the logs of a staged file are, and how far they were flushed.
// It is there from open to close, and stays after a crash.
#pragma once

#include <string>
#include <vector>

#include "stage/files.hpp"

namespace tapioca::stage {

struct Marker {
    /// A node and its logs.
    struct Node {
        std::string host;
        std::string directory;
        std::vector<std::uint32_t> ranks;
    };
    Identity identity = {};
    std::uint32_t ranks = 0;
    Mapping mapping = Mapping::process;
    std::string tier;
    std::string target;
    std::vector<Node> nodes;
    std::uint64_t flushed = 0;  ///< all requests of this epoch and before are in the target

    /// The pairs of files of a node; with those beside the target that are there.
    [[nodiscard]] std::vector<Place> logs_of(Node const& node) const;
};

/// The target's path without links or dots, by which its marker is found.
std::string resolved(std::string const& target);
/// Where the marker of a target is.
std::string marker_path(std::string const& target);
/// True if there is something of that name: then nobody may touch the target before it was recovered.
bool has_marker(std::string const& target);
/// What to tell people who find one.
std::string what_to_do(std::string const& target);
/// Whether a program that is running has the file open with a stage, as far as locks tell.
bool is_staged_now(std::string const& target);

core::Result<Marker> read_marker(std::string const& target);
/// Makes the marker. Fails if there is one. `durable`: even if the machine stops.
core::Result<Descriptor> create_marker(Marker const& marker, bool durable);
/// Notes how far the log was flushed, in turns at one of two places. `durable`: even if the machine stops.
core::Status note_flushed(Descriptor const& file, std::uint64_t epoch, std::uint64_t turn, bool durable);
core::Status remove_marker(std::string const& target);

/// Where a rank's log goes on when its tier is full: beside the target.
Place overflow_place(std::string const& target, std::uint32_t rank);
/// Where that log is made, until it is whole.
Place unfinished_place(Place const& overflow);

/// The name of the pair of files of a rank or, where a node's ranks share one, of the node.
std::string log_name(Mapping mapping, std::uint32_t number);

}  // namespace tapioca::stage
