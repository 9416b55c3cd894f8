#include "subfile/peer_connection.hpp"

#include <algorithm>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>

#include "core/interrupt.hpp"

namespace tapioca::subfile {

namespace {

/// How much of a message is made room for before any of it has arrived.
constexpr std::size_t first_room = std::size_t{64} << 10;

/// Whether the system says that a call would have to wait.
bool would_wait()
{
    return errno == EAGAIN || errno == EWOULDBLOCK;
}

}  // namespace

PeerConnection::PeerConnection(core::Descriptor socket, PeerAddress const& own)
    : socket_(std::move(socket)), question_(own.question), answer_(own.answer)
{
}

short PeerConnection::wants() const
{
    return out_.empty() ? POLLIN : POLLOUT;
}

bool PeerConnection::go_on(Serve const& serve)
{
    last_used_ = Clock::now();
    if (!flush()) return false;
    while (out_.empty()) {
        if (!receive()) return false;
        if (in_.size() < expected_) return true;
        bool const sound = awaited_ == Awaited::greeting  ? take_greeting()
                           : awaited_ == Awaited::request ? take_request()
                                                          : take_body(serve);
        if (!sound) return false;
    }
    return flush();
}

/// Sends as much as possible.
bool PeerConnection::flush()
{
    while (sent_ < out_.size()) {
        auto const sent = core::uninterrupted(
            [&] { return ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL); });
        if (sent < 0) return would_wait();
        sent_ += static_cast<std::size_t>(sent);
    }
    out_ = {};  // gives the memory back: most connections are idle most of the time
    sent_ = 0;
    return true;
}

/// Receives as much as possible of what is expected.
bool PeerConnection::receive()
{
    while (in_.size() < expected_) {
        auto const before = in_.size();
        in_.resize(std::min(expected_, std::max(first_room, 2 * before)));
        auto const got =
            core::uninterrupted([&] { return ::recv(socket_.get(), in_.data() + before, in_.size() - before, 0); });
        in_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got == 0) return false;
        if (got < 0) return would_wait();
    }
    return true;
}

void PeerConnection::expect(Awaited what, std::size_t bytes)
{
    awaited_ = what;
    expected_ = bytes;
    in_ = {};
}

bool PeerConnection::take_greeting()
{
    PeerGreeting greeting;
    std::memcpy(&greeting, in_.data(), sizeof greeting);
    if (greeting.magic != peer_magic || greeting.question != question_) return false;
    out_.assign(answer_.begin(), answer_.end());
    expect(Awaited::request, sizeof(PeerRequest));
    return true;
}

bool PeerConnection::take_request()
{
    std::memcpy(&request_, in_.data(), sizeof request_);
    bool const known = request_.op >= PeerOp::read && request_.op <= PeerOp::sync;
    if (!known || request_.extents > most_peer_extents || request_.bytes > most_peer_bytes) return false;
    auto const data = request_.op == PeerOp::write ? request_.bytes : 0;
    expect(Awaited::body, request_.extents * sizeof(PeerExtent) + data);
    return true;
}

bool PeerConnection::take_body(Serve const& serve)
{
    std::vector<PeerExtent> extents(request_.extents);
    auto const head = extents.size() * sizeof(PeerExtent);
    if (head > 0) std::memcpy(extents.data(), in_.data(), head);
    std::uint64_t bytes = 0;
    for (auto const& [at, length] : extents) {
        if (at < 0 || length < 0 || length > most_peer_bytes || at > INT64_MAX - length) return false;
        bytes += static_cast<std::uint64_t>(length);
    }
    if (bytes != request_.bytes) return false;
    out_.resize(sizeof(PeerReply));
    auto const status = serve(request_, extents, std::span(in_).subspan(head), out_);
    if (!status) {
        auto const failure = core::pack(status.error());
        out_.resize(sizeof(PeerReply));
        out_.insert(out_.end(), failure.begin(), failure.end());
    }
    PeerReply const reply{status ? 0U : 1U, static_cast<std::uint32_t>(out_.size() - sizeof(PeerReply))};
    std::memcpy(out_.data(), &reply, sizeof reply);
    expect(Awaited::request, sizeof(PeerRequest));
    return true;
}

}  // namespace tapioca::subfile
