// Session: the state that all files of a communicator share: the ranks' team and agreement, their memory, the I/O
// thread, and the tickets of their steps.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "comm/messages.hpp"
#include "comm/team.hpp"
#include "comm/watchdog.hpp"
#include "core/forks.hpp"
#include "core/host.hpp"
#include "engine/agreement.hpp"
#include "engine/buffers.hpp"
#include "engine/context.hpp"
#include "engine/discovered_machine.hpp"

namespace tapioca::engine {

class Session {
public:
    /// The session of `comm`. It is made at the first call, and again after a step was abandoned; rank 0's
    /// `ranks_per_node` is used then. Collective. The session is kept with `comm` or, if given, in `elsewhere`: threads
    /// that use MPI_COMM_SELF at the same time need separate sessions.
    static core::Result<std::shared_ptr<Session>> of(MPI_Comm comm, int ranks_per_node,
                                                     std::shared_ptr<Session>* elsewhere = nullptr);
    Session(Session const&) = delete;
    Session& operator=(Session const&) = delete;
    ~Session();

    [[nodiscard]] comm::Team const& team() const { return team_; }
    [[nodiscard]] Agreement& agreement() { return agreement_; }
    [[nodiscard]] Agreement const& agreement() const { return agreement_; }
    [[nodiscard]] Buffers& buffers() { return buffers_; }
    /// What has been found out about the machine so far.
    [[nodiscard]] Discovery& discovery() { return discovery_; }

    /// Memory that the session takes in each process, whatever is moved: its share of the exchange, and the table of
    /// ranks and nodes.
    [[nodiscard]] std::uint64_t fixed_bytes() const;
    /// Cores of a node; those of the node with the fewest.
    [[nodiscard]] int cores() const { return fewest_.cores; }
    /// All cores that this process may use, wherever its main thread is bound.
    [[nodiscard]] cpu_set_t const& core_set() const { return cores_; }
    /// True if every node has more cores than ranks.
    [[nodiscard]] bool spare_core() const { return fewest_.spare_cores > 0; }
    [[nodiscard]] bool several_nodes() const { return team_.nodes().size() > 1; }

    /// Makes sure that there is memory for a route and, for a step that uses I/O threads, that the ranks that need one
    /// have one. Collective, but waits for nobody when called again for the same route.
    core::Status prepare(BufferLayout const& buffer_layout, DiscoveredMachine& around, bool threaded,
                         bool needs_worker);
    /// The part of a step's context that is the same for all steps.
    [[nodiscard]] Context context(DiscoveredMachine const& around);

    /// Ends all waiting permanently, after a step was destroyed before wait() and the counters no longer match. Local.
    void abandon(Exchange::AbandonReason const& reason = {});
    /// This rank has no memory to continue with a collective call, and the others must not wait for it. If they wait
    /// inside MPI, the job ends here.
    void lose();
    /// Sets the time-out of this thread's waits, 0: for ever, and what the message says if a wait lasts longer.
    void watch(double seconds, char const* call, std::string const& file);

    /// Whether no rank of this node has lately said `what`. Asked by ranks that fail for the same reason, each by
    /// itself, so that not all of them say so. Local.
    [[nodiscard]] bool first_to_say(std::string_view what) { return exchange_.first_to_say(core::digest(what)); }

    /// A file is about to be opened.
    void opening() { ++opening_; }
    /// True if the session was abandoned before that file.
    [[nodiscard]] bool was_abandoned() const
    {
        return agreement_.abandoned() && agreement_.reason().opening != opening_;
    }
    /// A file was opened.
    void opened() { ++open_files_; }
    /// A file that was opened is closed; with the last one, the window is released. Collective.
    void closed();

    Tickets tickets;
    bool in_flight = false;  ///< a step was started, and wait() has not been called yet

private:
    /// The fewest of any node.
    struct Fewest {
        int cores, spare_cores;
    };
    Session(std::shared_ptr<comm::Team> team, cpu_set_t const& cores, Fewest fewest,
            std::unique_ptr<machine::Tier> memory, machine::TierMapping control);

    std::shared_ptr<comm::Watchdog> watchdog_;  ///< destroyed last: releasing the others may wait for ranks
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
    std::uint16_t opening_ = 0;  ///< number of files that have been opened so far, or are being opened
};

}  // namespace tapioca::engine
