// Pool: what the files of a communicator share: the exchange, the buffers and the drain thread.
#pragma once

#include <memory>

#include "comm/messages.hpp"
#include "comm/team.hpp"
#include "comm/watchdog.hpp"
#include "comm/window.hpp"
#include "core/forks.hpp"
#include "engine/run.hpp"
#include "engine/share.hpp"
#include "engine/surroundings.hpp"

namespace tapioca::engine {

class Pool {
public:
    /// The pool of `comm`, made at the first call, and anew once it was abandoned. Collective. Rank 0's
    /// `ranks_per_node` counts, then. It is kept with `comm` or, if given, `elsewhere`: threads that use
    /// MPI_COMM_SELF at the same time need a pool each.
    static core::Result<std::shared_ptr<Pool>> of(MPI_Comm comm, int ranks_per_node,
                                                  std::shared_ptr<Pool>* elsewhere = nullptr);
    Pool(Pool const&) = delete;
    Pool& operator=(Pool const&) = delete;
    ~Pool();

    [[nodiscard]] comm::Team const& team() const { return team_; }
    /// What it takes of a process whatever is moved: its share of the exchange, and who is where.
    [[nodiscard]] std::uint64_t fixed_bytes() const;
    /// Of a node; of the one with the fewest.
    [[nodiscard]] int cores() const { return least_cores_; }
    /// All that this process may use, wherever its main thread is bound.
    [[nodiscard]] cpu_set_t const& core_set() const { return cores_; }
    /// True if every node has more cores than ranks.
    [[nodiscard]] bool spare_core() const { return spare_core_; }
    [[nodiscard]] bool several_nodes() const { return team_.nodes().size() > 1; }

    /// What was found out about the machine for that wish, or null. The same on all ranks.
    [[nodiscard]] std::shared_ptr<Surroundings> surroundings(Wish const& wish) const;
    /// Finds out about the machine. Collective.
    core::Result<std::shared_ptr<Surroundings>> look_around(Wish const& wish);

    /// Whether there is memory for a route, and a window if it takes one. The same on all ranks.
    [[nodiscard]] bool holds(Site const& site, Surroundings const& around, bool one_sided) const;
    /// Makes sure that the memory for a route is there and, for a step with workers, that of the ranks that need one.
    /// Collective; waits for nobody the second time.
    core::Status prepare(Site const& site, Surroundings& around, bool threaded, bool needs_worker);
    /// Makes the window for one-sided transport. Collective. Fails if the MPI refuses it, then and ever after.
    core::Status prepare_window();

    /// The part of a step's context that does not depend on the step.
    [[nodiscard]] Context context(Surroundings const& around);

    // The beginning of a step: what every rank says of it, and what all said.
    using Direction = Exchange::Direction;
    /// Collective, but waits for nobody.
    void announce(Direction mine, bool spoiled);
    /// What somebody announced, once that is known; none if nobody moves anything.
    [[nodiscard]] Direction announced();
    /// Waits until all have begun the step; in the end every rank must.
    void all_began();

    /// Ends all waiting, for good: a step was destroyed before wait(), and the counters no longer match. Local: other
    /// nodes find a message when they next look.
    void abandon(Exchange::Reason const& reason = {});
    [[nodiscard]] bool abandoned() const { return exchange_.abandoned(); }
    /// Why, as all ranks say it.
    [[nodiscard]] core::Status lost() const { return exchange_.lost(); }
    /// This rank has no memory to go on with a collective call: the others must not wait for it. Where they do so
    /// inside MPI, the job ends here.
    void lose();
    /// The same Status on every rank: ok, or the failure of the lowest failing rank. Collective.
    core::Status agree(core::Status const& local);
    /// The least of every rank's values, each by itself. Collective; fails only if a step was abandoned.
    core::Status least(std::span<std::int64_t> values);
    /// The sum over all ranks, or the failure of the lowest rank that has one. Collective.
    [[nodiscard]] core::Result<pattern::Summary> sum(pattern::Summary const& mine, core::Status const& local);
    /// `text` of rank 0 on every rank. Collective.
    [[nodiscard]] core::Result<std::string> broadcast(std::string text);
    [[nodiscard]] Patience const& patience() const { return patience_; }
    /// The time-out of this thread's waits from now on, 0: for ever; and what is told of them if they last longer.
    void watch(double seconds, char const* call, std::string const& file);

    /// A file is about to be opened.
    void opening() { ++opening_; }
    /// True if the communicator was abandoned before that.
    [[nodiscard]] bool was_abandoned() const { return abandoned() && exchange_.reason().opening != opening_; }
    /// A file that was opened is closed: with the last one the window is given back. Collective.
    void opened() { ++open_files_; }
    void closed();

    Tickets tickets;
    bool in_flight = false;  ///< a step was started and not waited for

private:
    Pool(std::shared_ptr<comm::Team> team, cpu_set_t const& cores, std::unique_ptr<machine::Tier> memory,
         machine::Mapping control);
    core::Status grow(machine::Mapping& mapping, std::uint64_t bytes);
    core::Status grow(Exchange::Lanes needed);
    core::Status grow(Surroundings::Tier& tier, Site::OnTier const& bytes);
    /// Lets MPI get on, and looks whether another node has abandoned a step. How many messages have moved so far.
    std::uint64_t poll();
    /// Waits for the agreement that was started. False if it will never come about.
    bool come_to_agree();
    /// Waits for all ranks where that can be done more gently than inside MPI. Collective.
    void meet();

    std::shared_ptr<comm::Watchdog> watchdog_;  ///< first: giving back what follows may take the others
    std::shared_ptr<comm::Team> team_holder_;
    comm::Team const& team_;
    cpu_set_t cores_;
    std::unique_ptr<machine::Tier> memory_;
    machine::Mapping control_;
    machine::Mapping counters_;  ///< of the partitions
    machine::Mapping buffers_;
    machine::Mapping maps_;
    std::vector<std::pair<Wish, std::shared_ptr<Surroundings>>> surroundings_;  ///< a few at most
    Exchange exchange_;
    Patience patience_;
    target::Worker worker_;
    int least_cores_;
    bool spare_core_;
    int open_files_ = 0;
    unsigned const forks_ = core::forks();
    std::uint16_t opening_ = 0;  ///< files that were opened so far, or begun to be

    // on several nodes
    comm::MpiMessages messages_;
    comm::Window window_;
    std::unique_ptr<comm::Reduction> tally_ = std::make_unique<comm::Reduction>();
    std::unique_ptr<comm::Reduction> agreement_ = std::make_unique<comm::Reduction>();
    std::uint64_t agreements_ = 0;  ///< that this rank has been through
    std::string no_windows_;        ///< why the MPI refused one
    Net net_;
};

}  // namespace tapioca::engine
