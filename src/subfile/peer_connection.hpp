// PeerConnection: one connection of a node's PeerService, whose other end may be anybody until it has greeted. It never
// waits: it goes on with what has arrived, and keeps what cannot be sent yet.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include "core/descriptor.hpp"
#include "subfile/peer_address.hpp"

namespace tapioca::subfile {

class PeerConnection {
public:
    /// Does what a request says, and appends what was read to `reply`.
    using Serve = std::function<core::Status(PeerRequest const& request, std::span<PeerExtent const> extents,
                                             std::span<std::byte const> data, std::vector<std::byte>& reply)>;
    using Clock = std::chrono::steady_clock;

    PeerConnection(core::Descriptor socket, PeerAddress const& own);

    [[nodiscard]] int socket() const { return socket_.get(); }
    /// What poll() shall wait for.
    [[nodiscard]] short wants() const;
    /// Goes on as far as possible without waiting, up to one request. False: the connection is to be closed.
    bool go_on(Serve const& serve);
    /// Whether the other end is known to be a process of this opening.
    [[nodiscard]] bool greeted() const { return awaited_ != Awaited::greeting; }
    /// Whether no request is under way.
    [[nodiscard]] bool idle() const { return awaited_ == Awaited::request && in_.empty() && out_.empty(); }
    [[nodiscard]] Clock::time_point last_used() const { return last_used_; }

private:
    enum class Awaited { greeting, request, body };
    bool flush();
    bool receive();
    bool take_greeting();
    bool take_request();
    bool take_body(Serve const& serve);
    void expect(Awaited what, std::size_t bytes);

    core::Descriptor socket_;
    PeerSecret question_, answer_;
    Awaited awaited_ = Awaited::greeting;
    std::size_t expected_ = sizeof(PeerGreeting);  ///< bytes of what is being received
    std::vector<std::byte> in_;
    PeerRequest request_ = {};
    std::vector<std::byte> out_;
    std::size_t sent_ = 0;  ///< of these
    Clock::time_point last_used_ = Clock::now();
};

}  // namespace tapioca::subfile
