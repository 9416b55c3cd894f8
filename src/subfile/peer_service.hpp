// PeerService: lets processes of other nodes read and write the subfiles that lie on this node, while a set is open on
// several. The first process of each node has one, with a thread of its own that makes no MPI call. Collective calls
// do without it; Peers is the other end.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>

#include "core/descriptor.hpp"
#include "subfile/peer_connection.hpp"
#include "subfile/set_files.hpp"
#include "target/target.hpp"

namespace tapioca::subfile {

class PeerService {
public:
    /// Serves what a SetFiles with the same arguments finds.
    PeerService(std::string directory, SetId const& identity, target::OpenMode access, std::string on_tier);
    PeerService(PeerService const&) = delete;
    PeerService& operator=(PeerService const&) = delete;
    /// Ends the thread, and with it all connections. Nobody may be asking any more.
    ~PeerService();

    /// Begins to listen, and starts the thread, which may run on `cores`.
    core::Status launch(cpu_set_t const& cores);
    /// Where the service is reached or, without launch(), why it is not.
    [[nodiscard]] PeerAddress const& address() const { return address_; }

private:
    using Clock = PeerConnection::Clock;
    void run();
    /// Waits, and does what has become possible. False: the service ends.
    bool turn();
    void accept_some();
    void drop_late();
    bool make_room();
    [[nodiscard]] int patience() const;
    core::Status serve(PeerRequest const& request, std::span<PeerExtent const> extents, std::span<std::byte const> data,
                       std::vector<std::byte>& reply);
    core::Status sync();

    target::OpenMode access_;
    SetFiles files_;
    PeerAddress address_;
    core::Descriptor listener_;
    core::Descriptor stop_;  ///< readable when the thread is to end,
    core::Descriptor wake_;  ///< because this other end of it was shut down
    std::thread thread_;
    // Of the thread:
    std::vector<std::unique_ptr<PeerConnection>> connections_;
    std::size_t most_connections_ = 0;
    bool full_ = false;     ///< nobody is accepted until a connection has ended, or for a moment
    bool changed_ = false;  ///< something was written since the last sync()
};

}  // namespace tapioca::subfile
