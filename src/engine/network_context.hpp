// NetworkContext: what a run needs to cross nodes. There is none on one node.
#pragma once

#include <functional>

#include "comm/messages.hpp"
#include "comm/window.hpp"

namespace tapioca::engine {

struct NetworkContext {
    comm::Messages* messages = nullptr;
    comm::Window* window = nullptr;  ///< over the node's buffers; open for one-sided transport only
    int node = 0;
    std::function<bool()> all_began;  ///< every rank has begun the step; lets MPI get on
    std::function<bool()> spoiled;    ///< and some rank's input is bad; known once all have begun
};

/// Tags: one for each kind of message, which arrive in the order of their rounds.
enum Tag : int {
    tag_gathered = 1,   ///< a node's part of a round, or its requests
    tag_apart = 2,      ///< large data straight from the rank that has it
    tag_stray = 3,      ///< an entry that did not fit into its node's slot
    tag_reply = 4,      ///< what was asked for
    tag_abandoned = 5,  ///< a step was destroyed before its end: the agreements its rank has been through
    tag_agreed = 32,    ///< and those that follow: what ranks agree on
};

}  // namespace tapioca::engine
