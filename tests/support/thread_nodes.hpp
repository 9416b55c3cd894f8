// Nodes as groups of threads, with queues in place of MPI's messages: communication between nodes without MPI, all of
// which ThreadSanitizer sees.
#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <mutex>

#include "support/thread_ranks.hpp"

namespace tapioca::test {

/// What all ranks of all nodes share.
class World {
public:
    explicit World(int ranks) : boxes(static_cast<std::size_t>(ranks)), ranks_(ranks) {}

    /// A message that has not been received yet.
    struct Parcel {
        std::span<std::byte const> bytes;
        int from;
        int tag;
        std::shared_ptr<std::atomic<bool>> taken;
    };
    std::mutex mutex;
    std::vector<std::list<Parcel>> boxes;  ///< one per rank

    /// A rank begins step number `step`.
    void begin(std::uint64_t step, bool spoiled)
    {
        if (spoiled) spoiled_ = step;
        ++begun_;
    }
    [[nodiscard]] bool all_began(std::uint64_t step) const { return begun_ >= step * static_cast<unsigned>(ranks_); }
    [[nodiscard]] bool spoiled(std::uint64_t step) const { return spoiled_ == step; }

    /// The same Status on every rank: ok, or the failure of the lowest failing rank. Collective.
    core::Status agree(std::uint64_t step, int rank, core::Status const& local, engine::WaitPolicy const& wait_policy)
    {
        auto& failures = failures_[step % 2];  // no rank is two steps ahead
        {
            std::lock_guard const lock(mutex);
            failures.resize(static_cast<std::size_t>(ranks_));
            failures[static_cast<std::size_t>(rank)] = local;
            if (!local) failures[static_cast<std::size_t>(rank)].error().rank = rank;
        }
        ++arrived_;
        engine::wait_until(wait_policy, "all", [&] { return arrived_ >= step * static_cast<unsigned>(ranks_); });
        std::lock_guard const lock(mutex);
        core::Status verdict;
        for (auto const& failure : failures) core::keep_first(verdict, failure);
        return verdict;
    }

private:
    int ranks_;
    std::atomic<std::uint64_t> begun_ = 0;
    std::atomic<std::uint64_t> arrived_ = 0;
    std::atomic<std::uint64_t> spoiled_ = UINT64_MAX;
    std::vector<core::Status> failures_[2];
};

/// One rank's messages.
class Post final : public comm::Messages {
public:
    Post(World& world, int rank) : world_(world), rank_(static_cast<std::size_t>(rank)) {}

    void send(std::span<std::byte const> bytes, int to, int tag, Done done) override
    {
        auto const taken = std::make_shared<std::atomic<bool>>(false);
        sends_.push_back({taken, std::move(done)});
        std::lock_guard const lock(world_.mutex);
        world_.boxes[static_cast<std::size_t>(to)].push_back({bytes, static_cast<int>(rank_), tag, taken});
    }
    int receive(std::span<std::byte> bytes, int from, int tag, Done done) override
    {
        receives_.push_back({next_number_, bytes, from, tag, std::move(done)});
        return next_number_++;
    }
    void cancel(int number) override
    {
        receives_.remove_if([&](Receive const& receive) { return receive.number == number; });
    }
    std::optional<std::vector<std::byte>> take(int tag) override
    {
        std::lock_guard const lock(world_.mutex);
        auto& box = world_.boxes[rank_];
        auto const found = std::find_if(box.begin(), box.end(), [&](auto const& parcel) { return parcel.tag == tag; });
        if (found == box.end()) return std::nullopt;
        std::vector<std::byte> bytes(found->bytes.begin(), found->bytes.end());
        *found->taken = true;
        box.erase(found);
        return bytes;
    }
    bool poll() override
    {
        std::vector<Done> done;
        {
            std::lock_guard const lock(world_.mutex);  // of all: a new message goes to the earliest matching receive
            for (auto at = receives_.begin(); at != receives_.end();) {
                bool const came = match(*at);
                if (came) done.push_back(std::move(at->done));
                at = came ? receives_.erase(at) : std::next(at);
            }
        }
        for (auto at = sends_.begin(); at != sends_.end();) {
            bool const left = *at->taken;
            if (left) done.push_back(std::move(at->done));
            at = left ? sends_.erase(at) : std::next(at);
        }
        for (auto const& call : done) call();
        moved_ += done.size();
        return !done.empty();
    }
    [[nodiscard]] bool idle() const override { return sends_.empty() && receives_.empty(); }
    void drop() override { ADD_FAILURE() << "something was under way at the end of a step"; }
    [[nodiscard]] std::uint64_t moved() const { return moved_; }

private:
    struct Send {
        std::shared_ptr<std::atomic<bool>> taken;
        Done done;
    };
    struct Receive {
        int number;
        std::span<std::byte> bytes;
        int from;
        int tag;
        Done done;
    };
    /// Takes the first matching message, if there is one.
    bool match(Receive const& receive)
    {
        auto& box = world_.boxes[rank_];
        auto const found = std::find_if(box.begin(), box.end(), [&](auto const& parcel) {
            return parcel.tag == receive.tag && parcel.from == receive.from;
        });
        if (found == box.end()) return false;
        EXPECT_LE(found->bytes.size(), receive.bytes.size());
        std::copy(found->bytes.begin(), found->bytes.end(), receive.bytes.begin());
        *found->taken = true;
        box.erase(found);
        return true;
    }

    World& world_;
    std::size_t rank_;
    std::list<Send> sends_;
    std::list<Receive> receives_;
    int next_number_ = 0;
    std::uint64_t moved_ = 0;
};

/// Runs `body(thread_rank, rank)` on a thread for each rank of `nodes`.
inline void on_nodes(plan::Nodes const& nodes, std::vector<Scene> const& scenes,
                     std::function<void(ThreadRank&, int)> const& body)
{
    int ranks = 0;
    for (auto const& node : nodes) ranks += static_cast<int>(node.size());
    World world(ranks);
    std::deque<NodeMemory> memory;
    std::vector<std::thread> threads;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        auto const& here = memory.emplace_back(static_cast<int>(nodes[node].size()), ranks, scenes);
        for (std::size_t i = 0; i < nodes[node].size(); ++i)
            threads.emplace_back([&, node, i] {
                auto const rank = nodes[node][i];
                Post post(world, rank);
                ThreadRank thread_rank(here, static_cast<int>(i), rank, static_cast<int>(node));
                std::uint64_t step = 0;
                engine::NetworkContext const net{&post, nullptr, static_cast<int>(node),
                                                 [&] { return world.all_began(step); },
                                                 [&] { return world.spoiled(step); }};
                thread_rank.node.net = &net;
                thread_rank.wait_policy.poll = [&] { return post.moved(); };
                thread_rank.begin = [&](bool spoiled) { world.begin(++step, spoiled); };
                thread_rank.agree = [&](core::Status const& local) {
                    return world.agree(step, rank, local, thread_rank.wait_policy);
                };
                body(thread_rank, rank);
            });
    }
    for (auto& thread : threads) thread.join();
}

}  // namespace tapioca::test
