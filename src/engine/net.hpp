// Net: what a run needs to cross nodes. There is none on one node.
#pragma once

#include "comm/messages.hpp"
#include "comm/window.hpp"

namespace tapioca::engine {

struct Net {
    comm::Messages* messages = nullptr;
    comm::Window* window = nullptr;    ///< over the node's buffers; only if windows were made
    comm::Reduction* tally = nullptr;  ///< what the ranks say of the step as it begins: Tally
    int node = 0;
};

/// Places in the tally.
enum Tally : std::size_t { says_write, says_read, says_spoiled, tally_size };

/// Tags: one for each kind of message, which arrive in the order of their rounds.
enum Tag : int {
    tag_gathered = 1,   ///< a node's part of a round, or its requests
    tag_apart = 2,      ///< large data straight from the rank that has it
    tag_stray = 3,      ///< an entry that did not fit into its node's slot
    tag_reply = 4,      ///< what was asked for
    tag_abandoned = 5,  ///< a step was destroyed before its end: the agreements its rank has been through
};

}  // namespace tapioca::engine
