// Session: what the files of a communicator share: who the ranks are, how they agree, their memory, the I/O thread,
// and where the counters of their steps stand.
#pragma once

#include <memory>
#include <string>

#include "comm/messages.hpp"
#include "comm/team.hpp"
#include "comm/watchdog.hpp"
#include "core/forks.hpp"
#include "engine/agreement.hpp"
#include "engine/buffers.hpp"
#include "engine/context.hpp"
#include "engine/discovered_machine.hpp"

namespace tapioca::engine {

class Session {
public:
    /// The session of `comm`, made at the first call, and anew once it was abandoned. Collective. Rank 0's
    /// `ranks_per_node` counts, then. It is kept with `comm` or, if given, `elsewhere`: threads that use
    /// MPI_COMM_SELF at the same time need a session each.
    static core::Result<std::shared_ptr<Session>> of(MPI_Comm comm, int ranks_per_node,
                                                     std::shared_ptr<Session>* elsewhere = nullptr);
    Session(Session const&) = delete;
    Session& operator=(Session const&) = delete;
    ~Session();

    [[nodiscard]] comm::Team const& team() const { return team_; }
    [[nodiscard]] Agreement& agreement() { return agreement_; }
    [[nodiscard]] Agreement const& agreement() const { return agreement_; }
    [[nodiscard]] Buffers& buffers() { return buffers_; }
    /// What was found out about the machine so far.
    [[nodiscard]] Discovery& discovery() { return discovery_; }

    /// What it takes of a process whatever is moved: its share of the exchange, and who is where.
    [[nodiscard]] std::uint64_t fixed_bytes() const;
    /// Of a node; of the one with the fewest.
    [[nodiscard]] int cores() const { return fewest_.cores; }
    /// All that this process may use, wherever its main thread is bound.
    [[nodiscard]] cpu_set_t const& core_set() const { return cores_; }
    /// True if every node has more cores than ranks.
    [[nodiscard]] bool spare_core() const { return fewest_.spare_cores > 0; }
    [[nodiscard]] bool several_nodes() const { return team_.nodes().size() > 1; }

    /// Makes sure that the memory for a route is there and, for a step with workers, that of the ranks that need one.
    /// Collective; waits for nobody the second time.
    core::Status prepare(BufferLayout const& buffer_layout, DiscoveredMachine& around, bool threaded,
                         bool needs_worker);
    /// The part of a step's context that is the same for all steps.
    [[nodiscard]] Context context(DiscoveredMachine const& around);

    /// Ends all waiting, for good: a step was destroyed before wait(), and the counters no longer match. Local.
    void abandon(Exchange::AbandonReason const& reason = {});
    /// This rank has no memory to go on with a collective call: the others must not wait for it. Where they do so
    /// inside MPI, the job ends here.
    void lose();
    /// The time-out of this thread's waits from now on, 0: for ever; and what is told of them if they last longer.
    void watch(double seconds, char const* call, std::string const& file);

    /// A file is about to be opened.
    void opening() { ++opening_; }
    /// True if the communicator was abandoned before that.
    [[nodiscard]] bool was_abandoned() const
    {
        return agreement_.abandoned() && agreement_.reason().opening != opening_;
    }
    /// A file was opened.
    void opened() { ++open_files_; }
    /// One that was opened is closed: with the last one the window is given back. Collective.
    void closed();

    Tickets tickets;
    bool in_flight = false;  ///< a step was started and not waited for

private:
    /// Of all nodes.
    struct Fewest {
        int cores, spare_cores;
    };
    Session(std::shared_ptr<comm::Team> team, cpu_set_t const& cores, Fewest fewest,
            std::unique_ptr<machine::Tier> memory, machine::TierMapping control);

    std::shared_ptr<comm::Watchdog> watchdog_;  ///< first: giving back what follows may take the others
    std::shared_ptr<comm::Team> team_holder_;
    comm::Team const& team_;
    cpu_set_t cores_;
    machine::TierMapping control_;
    Exchange exchange_;
    comm::MpiMessages messages_;
    Agreement agreement_;
    Buffers buffers_;
    Discovery discovery_;
    target::Worker worker_;
    NetworkContext net_;  ///< for several nodes
    Fewest fewest_;
    int open_files_ = 0;
    unsigned const forks_ = core::forks();
    std::uint16_t opening_ = 0;  ///< files that were opened so far, or begun to be
};

}  // namespace tapioca::engine
