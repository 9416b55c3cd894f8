// Peers: reads and writes subfiles that lie on other nodes, for a process that does so alone, without the ranks there:
// the services of these nodes do the work (PeerService). Several threads may use it. All calls are local and wait for
// one node at most.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/forks.hpp"
#include "subfile/peer_address.hpp"

namespace tapioca::subfile {

/// Contiguous bytes of a subfile, and where they are in memory.
struct PeerPiece {
    std::int64_t at;
    std::span<std::byte> memory;
};

/// Which node has which subfile.
struct SubfilePlaces {
    std::map<std::uint32_t, int> node_of;
    std::uint32_t first = 0;    ///< the least number of those that are being written
    std::uint32_t numbers = 0;  ///< the next one on the same node has a number this much higher; 0: none is added
};

class Peers {
public:
    Peers() = default;
    Peers(Peers const&) = delete;
    Peers& operator=(Peers const&) = delete;

    /// Where the services are, by node, and how long to wait for one that does nothing; 0: for ever. Once, before
    /// anything is read or written.
    void meet(std::vector<PeerAddress> services, int own_node, double seconds);
    /// Which node has which subfile, from now on.
    void place(SubfilePlaces places);
    /// Whether another node is known to have this subfile.
    [[nodiscard]] bool have(std::uint32_t subfile) const { return node_having(subfile) >= 0; }
    /// This process has found the subfile elsewhere: it is not on another node any more.
    void forget(std::uint32_t subfile);

    /// Fail with unsupported if no node is known to have it, or if its service cannot be reached, and with
    /// not_found if the node does not have it.
    core::Status read(std::uint32_t subfile, std::span<PeerPiece const> pieces);
    core::Status write(std::uint32_t subfile, std::span<PeerPiece const> pieces);
    /// Makes durable what this process has written.
    core::Status sync();

private:
    /// The connection with one node.
    struct Peer {
        PeerAddress service;
        std::mutex mutex;
        core::Descriptor socket;
        bool changed = false;  ///< something was written since the last sync()
        core::Status failed;   ///< why connecting has failed, which is not tried again before `again`
        PeerDeadline again;
    };
    [[nodiscard]] int node_having(std::uint32_t subfile) const;
    core::Status move(PeerOp op, std::uint32_t subfile, std::span<PeerPiece const> pieces);
    core::Status ask(Peer& peer, PeerOp op, std::uint32_t subfile, std::span<PeerPiece const> pieces);
    core::Status open(Peer& peer);
    core::Status talk(Peer const& peer, std::span<std::byte const> request, PeerOp op,
                      std::span<PeerPiece const> pieces, core::Status& result) const;
    [[nodiscard]] std::chrono::milliseconds patience() const { return patience_; }

    std::vector<std::unique_ptr<Peer>> known_;
    int own_node_ = 0;
    std::chrono::milliseconds patience_{0};
    mutable std::mutex mutex_;
    SubfilePlaces places_;
    std::set<std::uint32_t> elsewhere_;  ///< for which no other node is asked
    unsigned const forks_ = core::forks();
};

}  // namespace tapioca::subfile
