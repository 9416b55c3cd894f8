// Agreement: how all ranks of a communicator come to the same answer, in shared memory on one node and with MPI on
// several; and how they learn that nobody must wait for anybody any more.
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
    /// What it is given must outlive this. `crowded` as in Patience.
    Agreement(comm::Team const& team, Exchange& exchange, comm::MpiMessages& messages, bool crowded);
    Agreement(Agreement const&) = delete;
    Agreement& operator=(Agreement const&) = delete;

    /// How to wait for the other ranks.
    [[nodiscard]] WaitPolicy const& wait_policy() const { return wait_policy_; }

    /// The same Status on every rank: ok, or the failure of the lowest failing rank. Collective.
    core::Status agree(core::Status const& local);
    /// The least of every rank's values, each by itself. Collective; fails only if a step was abandoned.
    core::Status least(std::span<std::int64_t> values);
    /// The sum over all ranks, or the failure of the lowest rank that has one. Collective.
    [[nodiscard]] core::Result<pattern::Summary> sum(pattern::Summary const& mine, core::Status const& local);
    /// The sums over all ranks, each by itself. Collective; fails only if a step was abandoned.
    core::Status sum(std::span<std::uint64_t> values);
    /// `text` of rank 0 on every rank. Collective.
    [[nodiscard]] core::Result<std::string> broadcast(std::string text);
    /// Waits for all ranks where that can be done more gently than inside MPI. Collective.
    void meet();

    // The beginning of a step: what every rank says of it, and what all said.
    using Announcement = Exchange::Announcement;
    /// Collective, but waits for nobody.
    void announce(std::uint64_t step, Announcement mine, bool spoiled);
    /// What all ranks know that all of them announce, none of which is spoiled. Local.
    void take_as_announced(std::uint64_t step, Announcement all);
    /// What somebody announced, once that is known; none if nobody moves anything.
    [[nodiscard]] Announcement announced(std::uint64_t step);
    /// Waits until all have begun the step; in the end every rank must.
    void all_began();
    /// On several nodes: true when all have; and, then, if some rank's input is bad.
    [[nodiscard]] bool have_begun() { return tally_->done(); }
    [[nodiscard]] bool spoiled() const;

    /// Ends all waiting, for good. Local: other nodes find a message when they next look.
    void abandon(Exchange::AbandonReason const& reason);
    [[nodiscard]] bool abandoned() const { return exchange_.abandoned(); }
    /// Why, as all ranks say it.
    [[nodiscard]] core::Status lost() const { return exchange_.lost(); }
    [[nodiscard]] Exchange::AbandonReason reason() const { return exchange_.reason(); }
    /// MPI may still write to what is under way: it is never given back.
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
    std::uint64_t agreements_ = 0;  ///< that this rank has been through
};

}  // namespace tapioca::engine
