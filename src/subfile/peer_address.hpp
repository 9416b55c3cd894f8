// PeerAddress: where, and by which secrets, the service of a node is reached; and the sockets of both sides. All calls
// are local.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.hpp"
#include "subfile/peer_protocol.hpp"

namespace tapioca::subfile {

struct PeerAddress {
    std::string host;                  ///< for messages
    std::string network;               ///< the same in processes that reach each other by the loopback interface
    std::uint16_t port = 0;            ///< 0: there is no service
    std::string why_not;               ///< then: the reason
    PeerSecret question = {};          ///< that the service expects
    PeerSecret answer = {};            ///< that it gives
    std::vector<std::string> numbers;  ///< the host's addresses, on any of its networks

    /// As a text, for other ranks, and back. A text that makes no sense is an address without a service.
    [[nodiscard]] std::string text() const;
    static PeerAddress of(std::string_view text);
    /// This host, with new secrets, without a service so far.
    static PeerAddress here();
};

/// A socket that does not block and listens on all of this host's networks. Sets the address's port.
core::Result<core::Descriptor> listen(PeerAddress& address);

using PeerDeadline = std::chrono::steady_clock::time_point;
/// Connects with the service there, by whichever of the host's addresses answers first, and greets it. Fails after the
/// deadline. The socket does not block.
core::Result<core::Descriptor> connect(PeerAddress const& to, PeerDeadline deadline);

/// Small messages go out at once, and a host that is gone is noticed, however long a request may take.
void set_peer_options(int socket);

/// Sends all bytes, or receives as many as there is room for. Fails if nothing moves for so long; 0: waits for ever.
core::Status send_all(int socket, std::span<std::byte const> bytes, std::chrono::milliseconds patience);
core::Status receive_all(int socket, std::span<std::byte> bytes, std::chrono::milliseconds patience);

}  // namespace tapioca::subfile
