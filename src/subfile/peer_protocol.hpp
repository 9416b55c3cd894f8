// The messages between a node's PeerService and the processes of other nodes (Peers), over TCP. Both sides belong to
// one opening of one set by one job, so that numbers travel as they lie in memory.
//
//   a process connects   PeerGreeting, answered with the service's second secret
//   then, many times     PeerRequest, its PeerExtents, and the bytes to be written
//   each answered with   PeerReply, and the bytes that were read, or a packed core::Failure
#pragma once

#include <array>
#include <cstdint>

#include "stage/log_format.hpp"

namespace tapioca::subfile {

/// A random number, of which only the ranks of the opening know. Each service has two: whoever connects must know the
/// first, and finds out by the second that nobody else has taken the service's place.
using PeerSecret = stage::OpeningId;

inline constexpr std::array<char, 8> peer_magic = {'T', 'A', 'P', 'I', 'P', 'E', 'E', 'R'};

struct PeerGreeting {
    std::array<char, 8> magic;
    PeerSecret question;
};

enum class PeerOp : std::uint32_t {
    read = 1,
    write = 2,
    sync = 3,  ///< make durable what was written through this service
};

struct PeerRequest {
    PeerOp op;
    std::uint32_t subfile;
    std::uint32_t extents;  ///< up to most_peer_extents
    std::uint32_t bytes;    ///< of all extents, up to most_peer_bytes
};

struct PeerExtent {
    std::int64_t at;  ///< in the subfile
    std::int64_t length;
};

struct PeerReply {
    std::uint32_t failed;  ///< 1: a packed failure follows
    std::uint32_t bytes;   ///< that follow
};

inline constexpr std::uint32_t most_peer_extents = 4096;
inline constexpr std::uint32_t most_peer_bytes = 1U << 20;

}  // namespace tapioca::subfile
