#include "subfile/peer_address.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "core/host.hpp"
#include "core/interrupt.hpp"
#include "stage/log_files.hpp"
#include "subfile/stub.hpp"

namespace tapioca::subfile {

namespace {

using std::chrono::milliseconds;

/// More addresses of a host than these are not told to others.
constexpr std::size_t most_numbers = 16;

/// An address in the form in which the system takes it.
struct SocketAddress {
    sockaddr_storage storage = {};
    socklen_t bytes = 0;
    [[nodiscard]] sockaddr const* get() const { return reinterpret_cast<sockaddr const*>(&storage); }
    [[nodiscard]] int family() const { return storage.ss_family; }
};

std::optional<SocketAddress> parse_number(std::string const& number, std::uint16_t port)
{
    SocketAddress address;
    sockaddr_in four = {};
    sockaddr_in6 six = {};
    if (::inet_pton(AF_INET, number.c_str(), &four.sin_addr) == 1) {
        four.sin_family = AF_INET;
        four.sin_port = htons(port);
        std::memcpy(&address.storage, &four, address.bytes = sizeof four);
    } else if (::inet_pton(AF_INET6, number.c_str(), &six.sin6_addr) == 1) {
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(port);
        std::memcpy(&address.storage, &six, address.bytes = sizeof six);
    } else {
        return std::nullopt;
    }
    return address;
}

/// The number of an interface's address; empty if other hosts, or this one, cannot use it.
std::string number_of(ifaddrs const& interface)
{
    char text[INET6_ADDRSTRLEN] = {};
    bool const up = (interface.ifa_flags & IFF_UP) != 0 && (interface.ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || !interface.ifa_addr) return {};
    if (interface.ifa_addr->sa_family == AF_INET) {
        auto const& four = *reinterpret_cast<sockaddr_in const*>(interface.ifa_addr);
        return ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text) ? text : "";
    }
    if (interface.ifa_addr->sa_family != AF_INET6) return {};
    auto const& six = *reinterpret_cast<sockaddr_in6 const*>(interface.ifa_addr);
    if (IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr)) return {};  // means nothing without an interface of the other host
    return ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text) ? text : "";
}

std::vector<std::string> own_numbers()
{
    std::vector<std::string> numbers;
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return numbers;
    std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> const list(all, &::freeifaddrs);
    for (auto const* interface = all; interface; interface = interface->ifa_next)
        if (auto number = number_of(*interface); !number.empty() && numbers.size() < most_numbers)
            numbers.push_back(std::move(number));
    return numbers;
}

/// Tells networks with a loopback interface of their own apart; empty if it is not known which one this is.
std::string own_network()
{
    struct stat found = {};
    auto const boot = core::boot_id();
    if (boot.empty() || ::stat("/proc/self/ns/net", &found) != 0) return {};
    return fmt::format("{:016x}:{}", core::digest(boot), found.st_ino);
}

/// Where a service may be: by the loopback interface if that leads there, otherwise by every address of its host that
/// is not one of this host, too, as those of bridges for containers often are.
std::vector<SocketAddress> places_of(PeerAddress const& to)
{
    auto const network = own_network();
    bool const by_loopback = !network.empty() && to.network == network;
    auto const own = by_loopback || network.empty() ? std::vector<std::string>() : own_numbers();
    std::vector<SocketAddress> places;
    if (by_loopback)
        for (auto const* const number : {"127.0.0.1", "::1"}) places.push_back(*parse_number(number, to.port));
    for (auto const& number : to.numbers)
        if (auto const place = parse_number(number, to.port);
            place && std::find(own.begin(), own.end(), number) == own.end())
            places.push_back(*place);
    return places;
}

milliseconds left_until(PeerDeadline deadline)
{
    auto const left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(left, milliseconds(0));
}

core::Status greet(int socket, PeerAddress const& to, PeerDeadline deadline)
{
    PeerGreeting const greeting{peer_magic, to.question};
    PeerSecret answer = {};
    auto const patience = std::max(left_until(deadline), milliseconds(1));
    auto status = send_all(socket, std::as_bytes(std::span(&greeting, 1)), patience);
    if (status) status = receive_all(socket, answer, patience);
    if (status && answer != to.answer) status = core::fail(Errc::io, "another program answers there");
    return status;
}

/// Connections that are being made, by several addresses at once.
class Attempts {
public:
    explicit Attempts(std::vector<SocketAddress> const& places)
    {
        for (auto const& place : places) start(place);
    }
    /// The next that is made. Nothing when none is left, or at the deadline.
    std::optional<core::Descriptor> next(PeerDeadline deadline)
    {
        while (!waiting_.empty()) {
            std::vector<pollfd> polled;
            for (auto const& socket : waiting_) polled.push_back({socket.get(), POLLOUT, 0});
            auto const left = left_until(deadline);
            auto const ready = ::poll(polled.data(), polled.size(), static_cast<int>(left.count()));
            if (ready < 0 && errno == EINTR) continue;
            if (ready <= 0) {
                error_ = ETIMEDOUT;
                return std::nullopt;
            }
            auto const found = std::find_if(polled.begin(), polled.end(), [](auto const& one) { return one.revents; });
            auto const which = waiting_.begin() + (found - polled.begin());
            core::Descriptor socket = std::move(*which);
            waiting_.erase(which);
            socklen_t size = sizeof(int);
            int error = 0;
            if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) return socket;
            error_ = error;
        }
        return std::nullopt;
    }
    /// Why the last one that failed did.
    [[nodiscard]] int error() const { return error_; }

private:
    void start(SocketAddress const& place)
    {
        core::Descriptor socket(::socket(place.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (!socket ||
            (::connect(socket.get(), place.get(), place.bytes) != 0 && errno != EINPROGRESS && errno != EINTR))
            error_ = errno;
        else
            waiting_.push_back(std::move(socket));
    }

    std::vector<core::Descriptor> waiting_;
    int error_ = EHOSTUNREACH;
};

/// Waits until the socket can be used. 0: for ever.
core::Status wait_for(int socket, short event, milliseconds patience)
{
    pollfd polled{socket, event, 0};
    auto const end = std::chrono::steady_clock::now() + patience;  // whatever signals come meanwhile
    auto const left = [&] {
        auto const time = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
        return patience.count() > 0 ? static_cast<int>(std::max<std::int64_t>(time.count(), 0)) : -1;
    };
    auto const ready = core::uninterrupted([&] { return ::poll(&polled, 1, left()); });
    if (ready < 0) return core::fail_errno(errno, "waiting for the other node");
    if (ready == 0) return core::fail_errno(ETIMEDOUT, fmt::format("no answer within {} ms", patience.count()));
    return {};
}

}  // namespace

std::string PeerAddress::text() const
{
    if (port == 0) return fmt::format("{}\n{}\n0\n{}", host, network, why_not);
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", host, network, port, stage::to_hex(question), stage::to_hex(answer),
                       fmt::join(numbers, "\n"));
}

PeerAddress PeerAddress::of(std::string_view text)
{
    auto const line = [&] {
        auto const end = std::min(text.find('\n'), text.size());
        auto const first = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        return std::string(first);
    };
    PeerAddress address;
    address.host = line();
    address.network = line();
    auto const port = line();
    (void)std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (address.port == 0) {
        address.why_not = line();
        return address;
    }
    auto const question = parse_identity(line());
    auto const answer = parse_identity(line());
    if (!question || !answer) address.port = 0;
    address.question = question.value_or(PeerSecret{});
    address.answer = answer.value_or(PeerSecret{});
    while (!text.empty() && address.numbers.size() < most_numbers) address.numbers.push_back(line());
    return address;
}

PeerAddress PeerAddress::here()
{
    PeerAddress address;
    address.host = core::host_name();
    address.network = own_network();
    address.question = stage::new_identity();
    address.answer = stage::new_identity();
    address.numbers = own_numbers();
    return address;
}

core::Result<core::Descriptor> listen(PeerAddress& address)
{
    int error = EAFNOSUPPORT;
    for (auto const* const any : {"::", "0.0.0.0"}) {  // the first takes IPv4, too, where there is IPv6
        auto place = *parse_number(any, 0);
        core::Descriptor socket(::socket(place.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        int const off = 0;
        if (socket && place.family() == AF_INET6)
            (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (!socket || ::bind(socket.get(), place.get(), place.bytes) != 0 || ::listen(socket.get(), SOMAXCONN) != 0 ||
            ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&place.storage), &place.bytes) != 0) {
            error = errno;
            continue;
        }
        // The port is at the same place in both.
        address.port = ntohs(reinterpret_cast<sockaddr_in const*>(&place.storage)->sin_port);
        return socket;
    }
    return core::fail_errno(error, "listening for other nodes");
}

core::Result<core::Descriptor> connect(PeerAddress const& to, PeerDeadline deadline)
{
    if (to.port == 0) return core::fail(Errc::io, fmt::format("{} serves nobody: {}", to.host, to.why_not));
    Attempts attempts(places_of(to));
    core::Status last;
    while (auto socket = attempts.next(deadline)) {
        set_peer_options(socket->get());
        last = greet(socket->get(), to, deadline);
        if (last) return std::move(*socket);
    }
    auto const why = last ? std::strerror(attempts.error()) : last.error().text;
    return core::fail(Errc::io, fmt::format("{} cannot be reached on port {} of {}: {}", to.host, to.port,
                                            fmt::join(to.numbers, ", "), why));
}

void set_peer_options(int socket)
{
    auto const set = [&](int level, int option, int value) {
        (void)::setsockopt(socket, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
}

core::Status send_all(int socket, std::span<std::byte const> bytes, milliseconds patience)
{
    while (!bytes.empty()) {
        auto const sent = core::uninterrupted([&] { return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
        if (sent >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
            continue;
        }
        if (errno != EAGAIN && errno != EWOULDBLOCK) return core::fail_errno(errno, "sending to another node");
        if (auto status = wait_for(socket, POLLOUT, patience); !status) return status;
    }
    return {};
}

core::Status receive_all(int socket, std::span<std::byte> bytes, milliseconds patience)
{
    while (!bytes.empty()) {
        auto const got = core::uninterrupted([&] { return ::recv(socket, bytes.data(), bytes.size(), 0); });
        if (got == 0) return core::fail_errno(ECONNRESET, "the other node has closed the connection");
        if (got > 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(got));
            continue;
        }
        if (errno != EAGAIN && errno != EWOULDBLOCK) return core::fail_errno(errno, "receiving from another node");
        if (auto status = wait_for(socket, POLLIN, patience); !status) return status;
    }
    return {};
}

}  // namespace tapioca::subfile
