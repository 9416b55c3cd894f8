// The service by which processes of other nodes reach the subfiles of this one: what it does for them, and what it does
// not do for anybody else.
#include <cstring>
#include <future>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subfile/peer_service.hpp"
#include "subfile/peers.hpp"
#include "subfile/tier_place.hpp"
#include "unit/subfile_jobs.hpp"

namespace tapioca::subfile {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::Scratch;
using test::some_bytes;

cpu_set_t all_cores()
{
    cpu_set_t cores;
    EXPECT_EQ(::sched_getaffinity(0, sizeof cores, &cores), 0);
    return cores;
}

/// A node with one subfile, and its service.
class OtherNode {
public:
    explicit OtherNode(std::size_t bytes = 100'000, target::OpenMode access = target::OpenMode::update)
        : content(some_bytes(bytes, 7)),
          service(std::in_place, scratch_.path("shared"), SetId{}, access, scratch_.path("set"))
    {
        EXPECT_EQ(::mkdir(scratch_.path("shared").c_str(), 0700), 0);
        EXPECT_EQ(::mkdir(scratch_.path("set").c_str(), 0700), 0);
        auto const file = open_on_tier(scratch_.path("set"), 3, O_RDWR | O_CREAT);
        EXPECT_TRUE(file && core::write_all(file->get(), 0, content, "test"));
        EXPECT_TRUE(service->launch(all_cores()));
    }
    /// What the subfile has now.
    [[nodiscard]] Bytes now() const { return test::content(scratch_.path("set/subfile.3")); }

private:
    Scratch scratch_;

public:
    Bytes content;
    std::optional<PeerService> service;
};

/// A process of node 0, where node 1 has subfiles 3 and 4.
std::unique_ptr<Peers> process_of(PeerAddress const& other, double seconds = 20)
{
    auto peers = std::make_unique<Peers>();
    peers->meet({PeerAddress(), PeerAddress::of(other.text())}, 0, seconds);
    peers->place({{{2, 0}, {3, 1}, {4, 1}}, 3, 2});
    return peers;
}

core::Status read_all_of(Peers& peers, std::uint32_t subfile, std::int64_t at, std::span<std::byte> to)
{
    std::vector<PeerPiece> const pieces{{at, to}};
    return peers.read(subfile, pieces);
}

/// Whether a process gets what the node has.
bool is_served(OtherNode& node)
{
    Bytes bytes(1000);
    return read_all_of(*process_of(node.service->address()), 3, 50, bytes) &&
           std::equal(bytes.begin(), bytes.end(), node.content.begin() + 50);
}

/// A connection of somebody who does not know what Peers knows.
core::Descriptor stranger(std::uint16_t port)
{
    core::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return socket;
}

void say(core::Descriptor const& socket, std::span<std::byte const> bytes)
{
    EXPECT_TRUE(send_all(socket.get(), bytes, 5s));
}

/// Whether the other end closes the connection without a word.
bool is_closed(core::Descriptor const& socket)
{
    timeval const most{5, 0};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    std::byte one;
    auto const got = ::recv(socket.get(), &one, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

/// A connection that has greeted as Peers does.
core::Descriptor greeted(PeerAddress const& to)
{
    auto socket = stranger(to.port);
    PeerGreeting const greeting{peer_magic, to.question};
    say(socket, std::as_bytes(std::span(&greeting, 1)));
    PeerSecret answer = {};
    EXPECT_TRUE(receive_all(socket.get(), answer, 5s));
    EXPECT_EQ(answer, to.answer);
    return socket;
}

/// Somebody listens there, and does this with each connection.
class OtherProgram {
public:
    explicit OtherProgram(std::function<void(int)> const& with)
    {
        address = PeerAddress::here();
        auto made = listen(address);
        EXPECT_TRUE(made);
        listener_ = std::move(*made);
        thread_ = std::thread([this, with] {
            while (!stop_) {
                core::Descriptor const socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
                if (socket)
                    with(socket.get());
                else
                    std::this_thread::sleep_for(1ms);
            }
        });
    }
    ~OtherProgram()
    {
        stop_ = true;
        thread_.join();
    }
    PeerAddress address;

private:
    core::Descriptor listener_;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

TEST(Peers, KnowWhatOtherNodesHave)
{
    OtherNode node;
    auto const peers = process_of(node.service->address());
    EXPECT_TRUE(peers->have(3));
    EXPECT_TRUE(peers->have(4));
    EXPECT_FALSE(peers->have(2));  // on this node
    EXPECT_TRUE(peers->have(5));   // follows 3
    EXPECT_FALSE(peers->have(1));
    EXPECT_FALSE(peers->have(in_rest));
    EXPECT_FALSE(Peers().have(3));
    peers->forget(3);
    EXPECT_FALSE(peers->have(3));
    EXPECT_TRUE(peers->have(5));
}

TEST(Peers, ReadAndWriteOnAnotherNode)
{
    OtherNode node;
    auto const peers = process_of(node.service->address());
    Bytes a(7), b(60'000);
    std::vector<PeerPiece> const pieces{{90'000, a}, {10, b}};
    ASSERT_TRUE(peers->read(3, pieces));
    EXPECT_TRUE(std::equal(a.begin(), a.end(), node.content.begin() + 90'000));
    EXPECT_TRUE(std::equal(b.begin(), b.end(), node.content.begin() + 10));
    auto fresh = some_bytes(5000, 1);
    std::vector<PeerPiece> const written{{99'000, std::span(fresh).first(3000)}, {5, std::span(fresh).subspan(3000)}};
    ASSERT_TRUE(peers->write(3, written));
    ASSERT_TRUE(peers->sync());
    std::copy_n(fresh.begin() + 3000, 2000, node.content.begin() + 5);
    node.content.resize(102'000);
    std::copy_n(fresh.begin(), 3000, node.content.begin() + 99'000);
    EXPECT_EQ(node.now(), node.content);
}

TEST(Peers, MoveMoreThanOneRequestMayHave)
{
    OtherNode node(3 * most_peer_bytes + 17);
    auto const peers = process_of(node.service->address());
    Bytes all(node.content.size());
    ASSERT_TRUE(read_all_of(*peers, 3, 0, all));
    EXPECT_EQ(all, node.content);
    auto fresh = some_bytes(2 * most_peer_extents + 5, 2);
    std::vector<PeerPiece> pieces;
    for (std::size_t i = 0; i < fresh.size(); ++i) {
        pieces.push_back({static_cast<std::int64_t>(2 * i), std::span(fresh).subspan(i, 1)});
        node.content[2 * i] = fresh[i];
    }
    ASSERT_TRUE(peers->write(3, pieces));
    EXPECT_EQ(node.now(), node.content);
}

TEST(Peers, HearWhatGoesWrongOnTheOtherNode)
{
    OtherNode node(100'000, target::OpenMode::read);
    auto const peers = process_of(node.service->address());
    Bytes bytes(100);
    EXPECT_FALSE(read_all_of(*peers, 3, 99'950, bytes));  // the subfile ends there
    auto const missing = read_all_of(*peers, 4, 0, bytes);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Errc::not_found);
    std::vector<PeerPiece> const pieces{{0, bytes}};
    auto const refused = peers->write(3, pieces);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::permission);
    EXPECT_NE(refused.error().text.find(node.service->address().host), std::string::npos);
    EXPECT_TRUE(read_all_of(*peers, 3, 0, bytes));
}

TEST(Peers, OfManyProcessesAndThreadsAreServedAtOnce)
{
    OtherNode node(400'000);
    auto const shared = process_of(node.service->address());
    std::vector<std::future<bool>> all;
    for (std::size_t thread = 0; thread < 16; ++thread)
        all.push_back(std::async(std::launch::async, [&, thread] {
            auto const own = process_of(node.service->address());
            auto& peers = thread % 2 == 0 ? *own : *shared;
            bool right = true;
            for (std::size_t i = 0; i < 50; ++i) {
                auto const at = (thread * 50 + i) * 500;
                auto mine = some_bytes(500, thread);
                std::vector<PeerPiece> const pieces{{static_cast<std::int64_t>(at), mine}};
                Bytes bytes(500);
                right =
                    right && read_all_of(peers, 3, static_cast<std::int64_t>(at), bytes) &&
                    std::equal(bytes.begin(), bytes.end(), node.content.begin() + static_cast<std::ptrdiff_t>(at)) &&
                    peers.write(3, pieces) && read_all_of(peers, 3, static_cast<std::int64_t>(at), bytes) &&
                    bytes == mine;
            }
            return right;
        }));
    for (auto& one : all) EXPECT_TRUE(one.get());
}

TEST(Peers, TakeTurnsWhenThereAreMoreThanTheServiceHasDescriptorsFor)
{
    rlimit before = {};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    auto few = before;
    few.rlim_cur = 120;  // 30 connections, of this process with both ends
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    {
        OtherNode node;
        std::vector<std::unique_ptr<Peers>> all;
        for (int i = 0; i < 50; ++i) all.push_back(process_of(node.service->address()));
        for (int round = 0; round < 3; ++round)
            for (auto const& peers : all) {
                Bytes bytes(10);
                auto const status = read_all_of(*peers, 3, 0, bytes);
                EXPECT_TRUE(status) << status.error().text;
            }
    }
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(Peers, FailSoonWhenTheServiceHasEnded)
{
    OtherNode node;
    auto const peers = process_of(node.service->address());
    Bytes bytes(10);
    ASSERT_TRUE(read_all_of(*peers, 3, 0, bytes));
    node.service.reset();
    auto const began = std::chrono::steady_clock::now();
    for (int i = 0; i < 3; ++i) {
        auto const status = read_all_of(*peers, 3, 0, bytes);
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code, Errc::unsupported) << status.error().text;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST(Peers, FailWhenThereIsNoService)
{
    PeerAddress none;
    none.host = "there";
    none.why_not = "no network";
    Bytes bytes(10);
    auto const status = read_all_of(*process_of(none), 3, 0, bytes);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().text, "there serves nobody: no network");
}

TEST(Peers, DoNotWaitForSomebodyWhoNeverAnswers)
{
    OtherProgram const silent([](int) { std::this_thread::sleep_for(600ms); });
    Bytes bytes(10);
    auto const began = std::chrono::steady_clock::now();
    auto const peers = process_of(silent.address, 0.2);
    EXPECT_FALSE(read_all_of(*peers, 3, 0, bytes));
    EXPECT_FALSE(read_all_of(*peers, 3, 0, bytes));
    EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST(Peers, DoNotWaitForAServiceThatHasStopped)
{
    OtherProgram const stopped([](int socket) {
        PeerGreeting greeting;
        (void)receive_all(socket, std::as_writable_bytes(std::span(&greeting, 1)), 5s);
        std::this_thread::sleep_for(50ms);
    });
    auto forged = stopped.address;
    Bytes bytes(10);
    EXPECT_FALSE(read_all_of(*process_of(forged, 0.2), 3, 0, bytes));
}

TEST(Peers, BelieveNobodyElseWhoAnswers)
{
    OtherProgram const echo([](int socket) {
        PeerGreeting greeting;
        auto const bytes = std::as_writable_bytes(std::span(&greeting, 1));
        (void)receive_all(socket, bytes, 5s);
        (void)send_all(socket, bytes, 5s);
    });
    Bytes bytes(10);
    auto const status = read_all_of(*process_of(echo.address), 3, 0, bytes);
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().text.find("another program"), std::string::npos) << status.error().text;
}

TEST(Peers, TakeNoAnswerOfAnotherSize)
{
    PeerAddress const* known = nullptr;
    OtherProgram const liar([&](int socket) {
        PeerGreeting greeting;
        (void)receive_all(socket, std::as_writable_bytes(std::span(&greeting, 1)), 5s);
        (void)send_all(socket, known->answer, 5s);
        for (std::uint32_t const failed : {0U, 1U}) {
            PeerReply const reply{failed, 4};
            (void)send_all(socket, std::as_bytes(std::span(&reply, 1)), 5s);
        }
    });
    known = &liar.address;
    Bytes bytes(10);
    auto const status = read_all_of(*process_of(liar.address), 3, 0, bytes);
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().text.find("no sense"), std::string::npos) << status.error().text;
}

TEST(Peers, OfAForkedProcessAreOfNoUse)
{
    OtherNode node;
    auto const peers = process_of(node.service->address());
    Bytes bytes(10);
    ASSERT_TRUE(read_all_of(*peers, 3, 0, bytes));
    auto const child = ::fork();
    if (child == 0) ::_exit(read_all_of(*peers, 3, 0, bytes) ? 1 : 0);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(read_all_of(*peers, 3, 0, bytes));
}

TEST(PeerService, ClosesConnectionsWithoutTheSecret)
{
    OtherNode node;
    auto const& address = node.service->address();
    PeerGreeting wrong{peer_magic, address.question};
    wrong.question[15] ^= std::byte{1};
    auto const knows_other_half = stranger(address.port);
    say(knows_other_half, std::as_bytes(std::span(&wrong, 1)));
    EXPECT_TRUE(is_closed(knows_other_half));
    auto const web = stranger(address.port);
    std::string const garbage = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
    say(web, std::as_bytes(std::span(garbage)));
    EXPECT_TRUE(is_closed(web));
    EXPECT_TRUE(is_served(node));
}

TEST(PeerService, IsNotHeldUpByWhoSaysHalfOfSomething)
{
    OtherNode node;
    auto const& address = node.service->address();
    auto const silent = stranger(address.port);
    auto const half_greeting = stranger(address.port);
    say(half_greeting, std::as_bytes(std::span(peer_magic)));
    auto const half_request = greeted(address);
    PeerRequest const request{PeerOp::write, 3, 1, 5000};
    say(half_request, std::as_bytes(std::span(&request, 1)));
    EXPECT_TRUE(is_served(node));
    auto const takes_nothing = greeted(address);  // asks for much, and never reads it
    PeerRequest const large{PeerOp::read, 3, 1, 100'000};
    PeerExtent const extent{0, 100'000};
    for (int i = 0; i < 200; ++i) {
        Bytes both(sizeof large + sizeof extent);
        std::memcpy(both.data(), &large, sizeof large);
        std::memcpy(both.data() + sizeof large, &extent, sizeof extent);
        if (::send(takes_nothing.get(), both.data(), both.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    }
    EXPECT_TRUE(is_served(node));
    EXPECT_EQ(node.now(), node.content);
}

TEST(PeerService, ClosesConnectionsThatAskForNonsense)
{
    OtherNode node;
    struct Nonsense {
        PeerRequest request;
        PeerExtent extent;
    };
    for (auto const& [request, extent] : std::vector<Nonsense>{
             {{PeerOp{0}, 3, 1, 10}, {0, 10}},
             {{PeerOp{4}, 3, 1, 10}, {0, 10}},
             {{PeerOp::read, 3, most_peer_extents + 1, 10}, {0, 10}},
             {{PeerOp::read, 3, 1, most_peer_bytes + 1}, {0, most_peer_bytes + 1}},
             {{PeerOp::read, 3, 1, 10}, {0, 11}},
             {{PeerOp::read, 3, 1, 10}, {-1, 10}},
             {{PeerOp::read, 3, 1, 10}, {INT64_MAX - 5, 10}},
             {{PeerOp::read, 3, 1, 0}, {0, INT64_MIN}},
         }) {
        auto const socket = greeted(node.service->address());
        say(socket, std::as_bytes(std::span(&request, 1)));
        (void)::send(socket.get(), &extent, sizeof extent, MSG_NOSIGNAL);  // it may be closed already
        EXPECT_TRUE(is_closed(socket));
    }
    EXPECT_TRUE(is_served(node));
    EXPECT_EQ(node.now(), node.content);
}

TEST(PeerService, LeavesSubfilesThatAreNotThereAlone)
{
    OtherNode node;
    Bytes bytes(10);
    std::vector<PeerPiece> const pieces{{0, bytes}};
    EXPECT_FALSE(process_of(node.service->address())->write(4, pieces));
    Peers other;
    other.meet({PeerAddress(), node.service->address()}, 0, 5);
    other.place({{{in_rest, 1}}});
    EXPECT_FALSE(other.write(in_rest, pieces));
    EXPECT_TRUE(is_served(node));
}

TEST(PeerAddress, IsTheSameAfterItWasSent)
{
    OtherNode node;
    auto const& address = node.service->address();
    auto const back = PeerAddress::of(address.text());
    EXPECT_EQ(back.text(), address.text());
    EXPECT_EQ(back.port, address.port);
    EXPECT_EQ(back.numbers, address.numbers);
    EXPECT_NE(address.question, address.answer);
    for (auto const* const text : {"", "\n\n\n", "host\nnetwork\n99999\nx\ny", "host\nnet\n80\n12\n34\n127.0.0.1"})
        EXPECT_EQ(PeerAddress::of(text).port, 0) << text;
}

}  // namespace
}  // namespace tapioca::subfile
