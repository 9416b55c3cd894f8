#include "subfile/peers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "subfile/holding_pieces.hpp"

namespace tapioca::subfile {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// How long connecting may take; and how long it is not tried again after it has failed.
constexpr milliseconds time_to_connect = 10s;
constexpr milliseconds time_to_rest = 30s;

/// Bytes of a packed failure without a text.
constexpr std::uint32_t least_failure = 2 * sizeof(int);

std::vector<std::byte> encode(PeerOp op, std::uint32_t subfile, std::span<PeerPiece const> pieces)
{
    PeerRequest request{op, subfile, static_cast<std::uint32_t>(pieces.size()), 0};
    for (auto const& piece : pieces) request.bytes += static_cast<std::uint32_t>(piece.memory.size());
    std::vector<std::byte> message;
    message.reserve(sizeof request + pieces.size() * sizeof(PeerExtent) + (op == PeerOp::write ? request.bytes : 0));
    auto const add = [&](std::span<std::byte const> bytes) {
        message.insert(message.end(), bytes.begin(), bytes.end());
    };
    add(std::as_bytes(std::span(&request, 1)));
    for (auto const& piece : pieces) {
        PeerExtent const extent{piece.at, static_cast<std::int64_t>(piece.memory.size())};
        add(std::as_bytes(std::span(&extent, 1)));
    }
    if (op == PeerOp::write)
        for (auto const& piece : pieces) add(piece.memory);
    return message;
}

/// Calls visit(pieces) for parts of the pieces that one request may have.
template <class Visit>
core::Status each_request(std::span<PeerPiece const> pieces, Visit const& visit)
{
    std::vector<PeerPiece> part;
    std::size_t bytes = 0;
    core::Status status;
    auto const send = [&] {
        if (!part.empty()) status = visit(part);
        part.clear();
        bytes = 0;
    };
    for (auto piece : pieces)
        while (status && !piece.memory.empty()) {
            auto const now = std::min(piece.memory.size(), most_peer_bytes - bytes);
            part.push_back({piece.at, piece.memory.first(now)});
            piece = {piece.at + static_cast<std::int64_t>(now), piece.memory.subspan(now)};
            bytes += now;
            if (bytes == most_peer_bytes || part.size() == most_peer_extents) send();
        }
    if (status) send();
    return status;
}

}  // namespace

void Peers::meet(std::vector<PeerAddress> services, int own_node, double seconds)
{
    std::lock_guard const lock(mutex_);
    own_node_ = own_node;
    patience_ = milliseconds(static_cast<std::int64_t>(std::ceil(std::min(seconds, 1e6) * 1000)));
    known_.clear();
    for (auto& service : services) {
        known_.push_back(std::make_unique<Peer>());
        known_.back()->service = std::move(service);
    }
}

void Peers::place(SubfilePlaces places)
{
    std::lock_guard const lock(mutex_);
    places_ = std::move(places);
}

void Peers::forget(std::uint32_t subfile)
{
    std::lock_guard const lock(mutex_);
    elsewhere_.insert(subfile);
}

/// -1: no other node is known to have the subfile.
int Peers::node_having(std::uint32_t subfile) const
{
    std::lock_guard const lock(mutex_);
    auto const& [node_of, first, numbers] = places_;
    auto node = node_of.find(subfile);
    bool const added = node == node_of.end() && numbers > 0 && subfile >= first && subfile != in_rest;
    if (added) node = node_of.find(first + (subfile - first) % numbers);
    if (node == node_of.end() || node->second == own_node_ || elsewhere_.contains(subfile)) return -1;
    return static_cast<std::size_t>(node->second) < known_.size() ? node->second : -1;
}

core::Status Peers::read(std::uint32_t subfile, std::span<PeerPiece const> pieces)
{
    return move(PeerOp::read, subfile, pieces);
}

core::Status Peers::write(std::uint32_t subfile, std::span<PeerPiece const> pieces)
{
    return move(PeerOp::write, subfile, pieces);
}

core::Status Peers::move(PeerOp op, std::uint32_t subfile, std::span<PeerPiece const> pieces)
{
    auto const node = node_having(subfile);
    if (node < 0) return core::fail(Errc::unsupported, "no other node is known to have it");
    auto& peer = *known_[static_cast<std::size_t>(node)];
    return each_request(pieces, [&](std::span<PeerPiece const> part) { return ask(peer, op, subfile, part); });
}

core::Status Peers::sync()
{
    core::Status status;
    for (auto const& peer : known_) core::keep_first(status, ask(*peer, PeerOp::sync, 0, {}));
    return status;
}

/// Sends one request and takes the reply. A connection that was not used for a while may have been closed at the other
/// end; then it is made again, once.
core::Status Peers::ask(Peer& peer, PeerOp op, std::uint32_t subfile, std::span<PeerPiece const> pieces)
{
    if (core::forks() != forks_)  // it shares the connections with its parent, whose messages these would disturb
        return core::fail(Errc::invalid_state, "this process was forked from the one that opened the file");
    std::lock_guard const lock(peer.mutex);
    if (op == PeerOp::sync && !peer.changed) return {};
    auto const message = encode(op, subfile, pieces);
    for (bool again = true;; again = false) {
        bool const used = static_cast<bool>(peer.socket);
        if (auto status = open(peer); !status) return status;
        if (op == PeerOp::write) peer.changed = true;
        core::Status result;
        auto sent = talk(peer, message, op, pieces, result);
        if (sent) {
            if (op == PeerOp::sync && result) peer.changed = false;
            if (!result) result.error().text = fmt::format("{}: {}", peer.service.host, result.error().text);
            return result;
        }
        peer.socket = {};
        if (again && used && sent.error().sys_errno != ETIMEDOUT) continue;
        sent.error().text = fmt::format("{}: {}", peer.service.host, sent.error().text);
        return sent;
    }
}

/// Connects with the node, unless this is done.
core::Status Peers::open(Peer& peer)
{
    if (peer.socket) return {};
    auto const now = std::chrono::steady_clock::now();
    if (!peer.failed && now < peer.again) return peer.failed;
    auto const most = patience().count() > 0 ? std::min(patience(), time_to_connect) : time_to_connect;
    auto made = connect(peer.service, now + most);
    peer.failed = made ? core::Status() : core::fail(Errc::unsupported, made.error().text);
    peer.again = std::chrono::steady_clock::now() + time_to_rest;
    if (made) peer.socket = std::move(*made);
    return peer.failed;
}

/// Fails if the connection is of no more use; otherwise `result` says what the service has answered.
core::Status Peers::talk(Peer const& peer, std::span<std::byte const> request, PeerOp op,
                         std::span<PeerPiece const> pieces, core::Status& result) const
{
    auto const socket = peer.socket.get();
    PeerReply reply;
    if (auto status = send_all(socket, request, patience()); !status) return status;
    auto const to = std::as_writable_bytes(std::span(&reply, 1));
    if (auto status = receive_all(socket, to, patience()); !status) return status;
    std::size_t expected = 0;
    for (auto const& piece : pieces) expected += op == PeerOp::read ? piece.memory.size() : 0;
    bool const sound =
        reply.failed != 0 ? reply.bytes >= least_failure && reply.bytes <= most_peer_bytes : reply.bytes == expected;
    if (!sound) return core::fail(Errc::io, "an answer that makes no sense");
    if (reply.failed == 0 && pieces.size() == 1)
        return receive_all(socket, pieces[0].memory.first(expected), patience());
    std::vector<std::byte> bytes(reply.bytes);
    if (auto status = receive_all(socket, bytes, patience()); !status) return status;
    if (reply.failed != 0) {
        result = tl::unexpected(core::unpack(bytes));
        return {};
    }
    auto const* from = bytes.data();
    for (auto const& piece : pieces) {
        if (op != PeerOp::read) break;
        std::memcpy(piece.memory.data(), from, piece.memory.size());
        from += piece.memory.size();
    }
    return {};
}

}  // namespace tapioca::subfile
