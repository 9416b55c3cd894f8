// Pool: what the files of a communicator share: the exchange, the buffers and the drain thread.
#pragma once

#include <memory>

#include "comm/segment.hpp"
#include "comm/team.hpp"
#include "engine/run.hpp"

namespace tapioca::engine {

class Pool {
public:
    /// The pool of `comm`, made at the first call. Collective.
    static core::Result<std::shared_ptr<Pool>> of(MPI_Comm comm);
    Pool(Pool const&) = delete;
    Pool& operator=(Pool const&) = delete;

    [[nodiscard]] comm::Team const& team() const { return team_; }
    [[nodiscard]] int cores() const { return CPU_COUNT(&cores_); }

    /// Whether there is memory for `route`. The same on all ranks.
    [[nodiscard]] bool holds(plan::Route const& route) const;
    /// Makes sure that the memory for `route` is there and, for a step in the background, the worker of the ranks
    /// that need it. Collective; waits for nobody the second time.
    core::Status prepare(plan::Route const& route, bool background, bool needs_worker);

    [[nodiscard]] Place place();
    /// Ends all waiting, for good: a step was destroyed before wait(), and the counters no longer match.
    void abandon() { exchange_.abandon(); }
    [[nodiscard]] bool abandoned() const { return exchange_.abandoned(); }
    core::Status agree(core::Status const& local) { return exchange_.agree(local, patience_); }
    /// The sum over all ranks, or the failure of the lowest rank that has one. Collective.
    [[nodiscard]] core::Result<pattern::Summary> sum(pattern::Summary const& mine, core::Status const& local);
    /// `text` of rank 0 on every rank. Collective.
    [[nodiscard]] core::Result<std::string> broadcast(std::string text);
    [[nodiscard]] Patience& patience() { return patience_; }

    Tickets tickets;
    bool in_flight = false;  ///< a step was started and not waited for

private:
    Pool(std::shared_ptr<comm::Team> team, cpu_set_t const& cores, comm::Segment control);
    core::Status grow(comm::Segment& segment, std::uint64_t bytes);

    std::shared_ptr<comm::Team> team_holder_;
    comm::Team const& team_;
    cpu_set_t cores_;
    comm::Segment control_;
    comm::Segment buffers_;
    comm::Segment maps_;
    Exchange exchange_;
    Patience patience_;
    target::Worker worker_;
};

}  // namespace tapioca::engine
