// Agreement: how all ranks of a communicator come to the same answer, in shared memory on one node and with MPI on
// several nodes, and how they learn that a step was abandoned and no rank must wait any longer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/messages.hpp"
#include "comm/team.hpp"
#include "core/result.hpp"
#include "engine/exchange.hpp"
#include "pattern/summary.hpp"

namespace tapioca::engine {

class Agreement {
public:
    /// The arguments must outlive this object. `crowded` as in WaitPolicy.
    Agreement(comm::Team const& team, Exchange& exchange, comm::MpiMessages& messages, bool crowded);
    Agreement(Agreement const&) = delete;
    Agreement& operator=(Agreement const&) = delete;

    /// How to wait for the other ranks.
    [[nodiscard]] WaitPolicy const& wait_policy() const { return wait_policy_; }

    /// The same Status on every rank: ok, or the failure of the lowest failing rank. Collective.
    core::Status agree(core::Status const& local);
    /// Replaces each value by the least of all ranks' values. Collective; fails only if a step was abandoned.
    core::Status least(std::span<std::int64_t> values);
    /// The sum over all ranks, or the failure of the lowest rank that failed. Collective.
    [[nodiscard]] core::Result<pattern::Summary> sum(pattern::Summary const& mine, core::Status const& local);
    /// Replaces each value by its sum over all ranks. Collective; fails only if a step was abandoned.
    core::Status sum(std::span<std::uint64_t> values);
    /// Returns rank 0's `text` on every rank. Collective.
    [[nodiscard]] core::Result<std::string> broadcast(std::string text);
    /// Waits for all ranks, but only on one node, where this takes less CPU time than waiting inside MPI. Collective.
    void meet();

    // The beginning of a step: what this rank announces, and what all ranks have announced.
    using Announcement = Exchange::Announcement;
    /// Collective, but waits for nobody.
    void announce(std::uint64_t step, Announcement mine, bool spoiled);
    /// Records an announcement that all ranks are known to make, without bad input on any of them. Local.
    void take_as_announced(std::uint64_t step, Announcement all);
    /// The direction that some rank announced, once it is known; none if no rank moves any data.
    [[nodiscard]] Announcement announced(std::uint64_t step);
    /// Waits until all ranks have begun the step. Every rank must begin it eventually.
    void all_began();
    /// On several nodes: true when all ranks have begun the step. From then on, spoiled() says whether some rank's
    /// input is bad.
    [[nodiscard]] bool have_begun() { return tally_->done(); }
    [[nodiscard]] bool spoiled() const;

    /// Ends all waiting permanently. Local: other nodes find a message when they next look.
    void abandon(Exchange::AbandonReason const& reason);
    [[nodiscard]] bool abandoned() const { return exchange_.abandoned(); }
    /// The reason, as an error that is the same on all ranks.
    [[nodiscard]] core::Status lost() const { return exchange_.lost(); }
    [[nodiscard]] Exchange::AbandonReason reason() const { return exchange_.reason(); }
    /// Keeps the memory of operations that are under way for ever, because MPI may still write to it.
    void leave();

private:
    [[nodiscard]] bool several_nodes() const { return team_.nodes().size() > 1; }
    std::uint64_t poll();
    bool come_to_agree();

    comm::Team const& team_;
    Exchange& exchange_;
    comm::MpiMessages& messages_;
    WaitPolicy wait_policy_;

    // on several nodes
    std::unique_ptr<comm::Reduction> tally_ = std::make_unique<comm::Reduction>();
    std::unique_ptr<comm::Reduction> agreement_ = std::make_unique<comm::Reduction>();
    std::uint64_t agreements_ = 0;  ///< number of agreements that this rank has completed
};

}  // namespace tapioca::engine
