#include "engine/fetch.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "core/stopwatch.hpp"

namespace tapioca::engine {

namespace {

constexpr int most_requests = 16;   ///< of this rank, under way
constexpr int most_per_server = 8;  ///< of these, to one server
constexpr int most_replies = 8;     ///< of this rank, under way

/// Of arranged pieces, those that `server` can read.
std::span<FetchPiece const> pieces_of(std::span<FetchPiece const> pieces, int server)
{
    auto const [begin, end] =
        std::equal_range(pieces.begin(), pieces.end(), FetchPiece{server, 0, 0, 0, nullptr},
                         [](FetchPiece const& a, FetchPiece const& b) { return a.server < b.server; });
    return {begin, end};
}

/// A request is a message: this heading, then the runs of the pieces (wire.hpp). The reply is the bytes of the pieces,
/// or nothing if they could not be read: then the agreement at the end fails.
struct RequestHeading {
    std::uint64_t source = 0;
    std::int64_t bytes = 0;
    std::int64_t rank = 0;
};

/// Memory for the data of messages, used again and again. A message holds its window, so that it outlives a message
/// that was given up.
class Windows {
public:
    using FetchWindow = std::shared_ptr<std::byte[]>;
    FetchWindow take()
    {
        if (free_.empty()) return std::make_shared_for_overwrite<std::byte[]>(most_fetched);
        auto window = std::move(free_.back());
        free_.pop_back();
        return window;
    }
    void give(FetchWindow window) { free_.push_back(std::move(window)); }

private:
    std::vector<FetchWindow> free_;
};

/// Reads what other ranks ask for.
class Server {
public:
    Server(comm::Messages& messages, FetchReader& reader, FetchCounts& counts)
        : messages_(messages), reader_(reader), counts_(counts)
    {
    }

    /// Answers one request, if there is one. Returns true if there was one.
    bool serve(double& working)
    {
        if (replies_ == most_replies) return false;
        auto const message = messages_.take(tag_fetch);
        if (!message) return false;
        core::Stopwatch const watch(working);
        RequestHeading heading;
        std::memcpy(&heading, message->data(), sizeof heading);
        auto const window = windows_.take();
        auto data = std::span(window.get(), static_cast<std::size_t>(heading.bytes));
        if (status_) status_ = reader_.read(heading.source, std::span(*message).subspan(sizeof heading), data);
        if (!status_) data = {};
        counts_.served_bytes += data.size();
        ++replies_;
        messages_.send(data, static_cast<int>(heading.rank), tag_fetched, [this, window] {
            windows_.give(window);
            --replies_;
        });
        return true;
    }
    [[nodiscard]] core::Status const& status() const { return status_; }

private:
    comm::Messages& messages_;
    FetchReader& reader_;
    FetchCounts& counts_;
    Windows windows_;
    int replies_ = 0;
    core::Status status_;
};

/// Asks other ranks for this rank's pieces.
class Client {
public:
    /// Leaves out the pieces that this rank can read itself.
    Client(comm::Messages& messages, int rank, std::span<FetchPiece const> pieces, FetchCounts& counts)
        : messages_(messages), rank_(rank), counts_(counts)
    {
        while (!pieces.empty()) {
            auto const server = pieces.front().server;
            auto const theirs = pieces_of(pieces, server);
            if (server != rank) lines_.push_back({server, FetchCutter(theirs)});
            pieces = pieces.subspan(theirs.size());
        }
        // Not all ranks begin with the same server.
        auto const later = std::find_if(lines_.begin(), lines_.end(), [&](auto const& l) { return l.server > rank; });
        next_ = static_cast<std::size_t>(later - lines_.begin());
    }

    [[nodiscard]] bool needs_others() const { return !lines_.empty(); }
    [[nodiscard]] bool done() const
    {
        return under_way_ == 0 &&
               std::all_of(lines_.begin(), lines_.end(), [](auto const& l) { return l.cutter.done(); });
    }

    /// Sends requests, as many as there may be. Returns true if there was one to be sent.
    bool ask(double& working)
    {
        bool any = false;
        for (std::size_t passed = 0; passed < lines_.size() && under_way_ < most_requests;) {
            if (next_ >= lines_.size()) next_ = 0;
            auto& line = lines_[next_++];
            if (line.cutter.done() || line.under_way == most_per_server) {
                ++passed;
                continue;
            }
            send(line, working);
            passed = 0;
            any = true;
        }
        return any;
    }

private:
    /// A server, and what it has not been asked for yet.
    struct ServerLine {
        int server;
        FetchCutter cutter;
        int under_way = 0;
    };

    void send(ServerLine& line, double& working)
    {
        auto const request = line.cutter.next();
        auto const window = request.straight ? nullptr : windows_.take();
        RequestHeading const heading = {request.source, request.bytes, rank_};
        auto const* const head = reinterpret_cast<std::byte const*>(&heading);
        auto const message = std::make_shared<std::vector<std::byte>>(head, head + sizeof heading);
        request.encode(*message);
        ++under_way_;
        ++line.under_way;
        auto* const to = request.straight ? request.straight : window.get();
        messages_.receive(std::span(to, static_cast<std::size_t>(request.bytes)), line.server, tag_fetched,
                          [this, &line, request, window, &working] {
                              core::Stopwatch const watch(working);
                              if (window) request.scatter(window.get());
                              if (window) windows_.give(window);
                              counts_.bytes += static_cast<std::uint64_t>(request.bytes);
                              ++counts_.messages;
                              --line.under_way;
                              --under_way_;
                          });
        messages_.send(*message, line.server, tag_fetch, [message] {});
    }

    comm::Messages& messages_;
    std::int64_t rank_;
    FetchCounts& counts_;
    std::vector<ServerLine> lines_;  ///< not resized once messages are under way
    std::size_t next_ = 0;           ///< the line to look at next
    Windows windows_;
    int under_way_ = 0;
};

/// Reads the pieces that this rank can read itself.
class OwnPieces {
public:
    OwnPieces(std::span<FetchPiece const> pieces, FetchReader& reader, FetchCounts& counts)
        : cutter_(pieces), reader_(reader), counts_(counts)
    {
    }

    [[nodiscard]] bool done() const { return cutter_.done() || !status_; }
    /// Reads as much as one request asks for. Returns false if there is nothing to be read.
    bool read(double& working)
    {
        if (done()) return false;
        core::Stopwatch const watch(working);
        auto const request = cutter_.next();
        auto const bytes = static_cast<std::size_t>(request.bytes);
        runs_.clear();
        request.encode(runs_);
        if (!request.straight) window_.resize(most_fetched);
        auto* const to = request.straight ? request.straight : window_.data();
        status_ = reader_.read(request.source, runs_, std::span(to, bytes));
        if (!status_) return true;
        if (!request.straight) request.scatter(window_.data());
        counts_.own_bytes += bytes;
        return true;
    }
    [[nodiscard]] core::Status const& status() const { return status_; }

private:
    FetchCutter cutter_;
    FetchReader& reader_;
    FetchCounts& counts_;
    std::vector<std::byte> runs_;
    std::vector<std::byte> window_;
    core::Status status_;
};

/// One call of fetch() on one rank.
class Fetch {
public:
    /// `pieces` are arranged.
    Fetch(Session& session, std::span<FetchPiece const> pieces, ReadSource const& read, FetchCounts& counts)
        : session_(session),
          counts_(counts),
          messages_(session.team().all()),
          reader_(read),
          server_(messages_, reader_, counts),
          client_(messages_, session.team().rank(), pieces, counts),
          own_(pieces_of(pieces, session.team().rank()), reader_, counts)
    {
    }
    Fetch(Fetch const&) = delete;
    Fetch& operator=(Fetch const&) = delete;
    ~Fetch() { counts_.reads += reader_.reads(); }

    [[nodiscard]] bool needs_others() const { return client_.needs_others(); }
    /// Local.
    core::Status read_own()
    {
        while (own_.read(working_)) {}
        return own_.status();
    }

    /// Moves all data. Collective; the same Status on every rank.
    core::Status run()
    {
        auto policy = session_.agreement().wait_policy();
        policy.poll = [this, lost = std::move(policy.poll)] { return (lost ? lost() : 0) + messages_.moved(); };
        double inside = 0;
        {
            core::Stopwatch const watch(inside);
            wait_until(policy, "data of other ranks, or their requests", [this] {
                while (move()) {}
                return over() || session_.agreement().abandoned();
            });
        }
        counts_.waiting += std::max(0.0, inside - working_);
        if (!over()) {
            leave();
            return session_.agreement().lost();
        }
        auto status = server_.status();
        core::keep_first(status, own_.status());
        return session_.agreement().agree(status);
    }

    /// This rank goes on without the others: keeps what MPI may still access.
    void leave()
    {
        messages_.drop();
        (void)all_done_.release();
    }

private:
    /// Moves what can be moved now. Returns true if something was moved.
    bool move()
    {
        bool moved = messages_.poll();
        moved = client_.ask(working_) || moved;
        moved = server_.serve(working_) || moved;
        moved = own_.read(working_) || moved;
        return moved;
    }

    /// True when no rank needs anything more. From the time when this rank needs nothing more, tells the others so.
    bool over()
    {
        if (!told_ && client_.done() && own_.done()) {
            all_done_->start_attended(session_.team().all(), {0}, tag_all_fetched);
            told_ = true;
        }
        return told_ && all_done_->done() && messages_.idle();
    }

    Session& session_;
    FetchCounts& counts_;
    comm::MpiMessages messages_;
    FetchReader reader_;
    Server server_;
    Client client_;
    OwnPieces own_;
    std::unique_ptr<comm::Reduction> all_done_ = std::make_unique<comm::Reduction>();
    bool told_ = false;
    double working_ = 0;  ///< seconds of reading and copying
};

}  // namespace

core::Status fetch(Session& session, core::Status local, std::vector<FetchPiece> pieces, ReadSource const& read,
                   FetchCounts* counts)
{
    FetchCounts unused;
    std::optional<Fetch> fetch;
    try {
        arrange(pieces);
        fetch.emplace(session, pieces, read, counts ? *counts : unused);
        if (local && !fetch->needs_others()) local = fetch->read_own();
    } catch (std::bad_alloc const&) {
        local = core::fail(Errc::memory, "there is not enough memory to read what other ranks have logged");
    }
    bool const needs_others = local && fetch->needs_others();
    std::array<std::int64_t, 2> all = {local ? 0 : -1, needs_others ? -1 : 0};
    if (auto status = session.agreement().least(all); !status) return status;
    if (all[0] != 0) return session.agreement().agree(local);
    if (all[1] == 0) return {};
    session.in_flight = true;  // a rank without memory tells the others, which check for it
    try {
        auto status = fetch->run();
        session.in_flight = false;
        return status;
    } catch (std::bad_alloc const&) {
        fetch->leave();
        session.lose();
        return session.agreement().lost();
    }
}

}  // namespace tapioca::engine
