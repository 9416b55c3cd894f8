#include "subfile/peer_service.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/thread.hpp"
#include "machine/cores.hpp"

namespace tapioca::subfile {

namespace {

using namespace std::chrono_literals;

/// A connection that has not greeted after this time is closed.
constexpr auto time_to_greet = 10s;
constexpr auto time_to_greet_if_full = 1s;
/// How long nobody is accepted if there is no room for another connection.
constexpr auto pause_when_full = 50ms;

/// Most of the descriptors that a process may have are the program's.
std::size_t most_connections()
{
    rlimit limit = {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
    return static_cast<std::size_t>(std::clamp<rlim_t>(limit.rlim_cur / 4, 8, 16384));
}

}  // namespace

PeerService::PeerService(std::string directory, SetId const& identity, target::OpenMode access, std::string on_tier)
    : access_(access), files_(std::move(directory), identity, access, std::move(on_tier)), address_(PeerAddress::here())
{
}

PeerService::~PeerService()
{
    if (!thread_.joinable()) return;
    (void)::shutdown(wake_.get(), SHUT_RDWR);  // which cannot fail, and is noticed even if a forked process has it open
    thread_.join();
    // A process that was forked from this one may have the sockets open, too.
    (void)::shutdown(listener_.get(), SHUT_RDWR);
    for (auto const& connection : connections_) (void)::shutdown(connection->socket(), SHUT_RDWR);
}

core::Status PeerService::launch(cpu_set_t const& cores)
{
    auto const explained = [&](core::Status status) {
        address_.port = 0;
        address_.why_not = status.error().text;
        return status;
    };
    std::array<int, 2> ends = {};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return explained(core::fail_errno(errno, "socketpair"));
    stop_ = core::Descriptor(ends[0]);
    wake_ = core::Descriptor(ends[1]);
    auto listener = listen(address_);
    if (!listener) return explained(tl::unexpected(listener.error()));
    listener_ = std::move(*listener);
    most_connections_ = most_connections();
    try {
        thread_ = core::start_thread("tapioca-peers", [this, cores] {
            machine::run_on(cores);
            run();
        });
    } catch (std::system_error const& failure) {
        return explained(core::fail_errno(failure.code().value(), "starting the thread that serves other nodes"));
    }
    return {};
}

void PeerService::run()
{
    for (bool go_on = true; go_on;) {
        try {
            go_on = turn();
        } catch (std::bad_alloc const&) {
            connections_.clear();  // the other ends hear of it, and try again
        }
    }
}

bool PeerService::turn()
{
    std::vector<pollfd> polled{{stop_.get(), POLLIN, 0}, {full_ ? -1 : listener_.get(), POLLIN, 0}};
    for (auto const& connection : connections_) polled.push_back({connection->socket(), connection->wants(), 0});
    if (::poll(polled.data(), polled.size(), patience()) < 0 && errno != EINTR && errno != ENOMEM) return false;
    if (polled[0].revents != 0) return false;
    full_ = false;
    PeerConnection::Serve const how = [this](auto const& request, auto extents, auto data, auto& reply) {
        return serve(request, extents, data, reply);
    };
    for (std::size_t i = connections_.size(); i-- > 0;)
        if (polled[i + 2].revents != 0 && !connections_[i]->go_on(how))
            connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
    drop_late();
    if (polled[1].revents != 0) accept_some();
    return true;
}

/// How long poll() may wait, in ms; -1: for ever.
int PeerService::patience() const
{
    if (full_) return static_cast<int>(std::chrono::milliseconds(pause_when_full).count());
    bool const any_stranger = std::any_of(connections_.begin(), connections_.end(),
                                          [](auto const& connection) { return !connection->greeted(); });
    return any_stranger ? 1000 : -1;
}

void PeerService::drop_late()
{
    auto const latest = Clock::now() - time_to_greet;
    std::erase_if(connections_,
                  [&](auto const& connection) { return !connection->greeted() && connection->last_used() < latest; });
}

void PeerService::accept_some()
{
    for (int i = 0; i < 16; ++i) {
        if (connections_.size() >= most_connections_ && !make_room()) {
            full_ = true;
            return;
        }
        core::Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (socket) {
            set_peer_options(socket.get());
            connections_.push_back(std::make_unique<PeerConnection>(std::move(socket), address_));
            continue;
        }
        full_ = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED && !make_room();
        return;
    }
}

/// Closes a connection that has said nothing at all for a while or, if there is none, the one that was not used for the
/// longest time. Its process makes another when it needs one. False if all are in use.
bool PeerService::make_room()
{
    auto const soon = Clock::now() - time_to_greet_if_full;
    auto oldest = connections_.end();
    auto const key = [](auto const& connection) { return std::pair(connection->greeted(), connection->last_used()); };
    for (auto at = connections_.begin(); at != connections_.end(); ++at) {
        bool const in_use = (*at)->greeted() ? !(*at)->idle() : (*at)->last_used() > soon;
        if (!in_use && (oldest == connections_.end() || key(*at) < key(*oldest))) oldest = at;
    }
    if (oldest == connections_.end()) return false;
    connections_.erase(oldest);
    return true;
}

core::Status PeerService::serve(PeerRequest const& request, std::span<PeerExtent const> extents,
                                std::span<std::byte const> data, std::vector<std::byte>& reply)
{
    if (request.op == PeerOp::sync) return sync();
    if (request.op == PeerOp::write && access_ == target::OpenMode::read)
        return core::fail(Errc::permission, "the set is not open for writing");
    auto const fd = files_.subfile(request.subfile);
    if (!fd && fd.error().code == Errc::not_found)
        return core::fail(Errc::not_found, "this node does not have " + subfile_name(request.subfile));
    if (!fd) return tl::unexpected(fd.error());
    auto const before = reply.size();
    if (request.op == PeerOp::read)
        reply.resize(before + request.bytes);
    else
        changed_ = true;
    std::size_t done = 0;
    core::Status status;
    for (auto const& [at, length] : extents) {
        auto const bytes = static_cast<std::size_t>(length);
        auto const place = static_cast<std::uint64_t>(at);
        status = request.op == PeerOp::write
                     ? files_.write(request.subfile, place, data.subspan(done, bytes))
                     : core::read_all(*fd, place, std::span(reply).subspan(before + done, bytes), "a subfile");
        if (!status) break;
        done += bytes;
    }
    return status;
}

core::Status PeerService::sync()
{
    if (!changed_) return {};
    auto status = files_.sync();
    changed_ = !status;
    return status;
}

}  // namespace tapioca::subfile
