// NetworkContext: what a run needs for communication between nodes. It does not exist on one node.
#pragma once

#include <functional>

#include "comm/messages.hpp"
#include "comm/window.hpp"

namespace tapioca::engine {

struct NetworkContext {
    comm::Messages* messages = nullptr;
    comm::Window* window = nullptr;  ///< over the node's buffers; open for one-sided transport only
    int node = 0;
    std::function<bool()> all_began;  ///< true when every rank has begun the step; lets MPI make progress
    std::function<bool()> spoiled;    ///< true if some rank's input is bad; known once all ranks have begun
};

/// One tag for each kind of message. Messages with the same tag arrive in the order of their rounds.
enum Tag : int {
    tag_gathered = 1,      ///< a node's part of a round, or its requests
    tag_apart = 2,         ///< large data, straight from the rank that has it
    tag_stray = 3,         ///< an entry that did not fit into its node's slot
    tag_reply = 4,         ///< the data that was asked for
    tag_abandoned = 5,     ///< a step was destroyed: the number of agreements that its rank has completed
    tag_fetch = 6,         ///< asks for bytes that the other rank can read (fetch.hpp)
    tag_fetched = 7,       ///< these bytes
    tag_agreed = 32,       ///< this tag and those after it: agreements
    tag_all_fetched = 64,  ///< this tag and those after it: all ranks have what they asked for
};

}  // namespace tapioca::engine
