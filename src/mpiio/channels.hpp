// Channels: the communicators on which the files of one of the program's communicators run collectively.
//
// Until the first collective access the ranks are known only, and the program may free its communicator. In a program
// without MPI_THREAD_MULTIPLE all collective calls come in the same order on all ranks, so that one communicator of
// ours serves all files, a *channel*. With it, different threads may use different files at the same time, and every
// open file has a channel of its own; when it is closed, the next one can have it. There a channel of one rank has no
// communicator of ours: Open MPI may hang when threads make some of those at the same time.
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/own_communicators.hpp"
#include "comm/watchdog.hpp"
#include "declared/step_state.hpp"
#include "mpiio/first_accesses.hpp"
#include "pattern/typemap.hpp"

namespace tapioca::mpiio {

/// A declared step, and what this rank's part in it was declared for.
struct KnownStep {
    pattern::Shape shape;  ///< of no bytes, if this rank has none
    std::int64_t origin = 0;
    std::string conditions;  ///< file system and settings that the plan was made for; the same on all ranks
    std::unique_ptr<declared::StepState> step;
};

/// How long an access takes on this rank, from when all ranks have decided about it.
class Timed {
public:
    /// By the plan in this place, in this direction.
    Timed(std::size_t place, engine::Op op) : place_(place), op_(op) {}
    void end() { seconds_ = seconds_.value_or(std::chrono::duration<double>(Clock::now() - start_).count()); }
    [[nodiscard]] std::optional<double> seconds() const { return seconds_; }
    [[nodiscard]] std::size_t place() const { return place_; }
    [[nodiscard]] engine::Op op() const { return op_; }

private:
    using Clock = std::chrono::steady_clock;
    std::size_t place_;
    engine::Op op_;
    Clock::time_point start_ = Clock::now();
    std::optional<double> seconds_;
};

/// A communicator of ours and the plans that were made on it.
struct Channel {
    static constexpr std::size_t most_known = 8;

    comm::Own comm;
    std::shared_ptr<engine::Session> session;  ///< if that is MPI_COMM_SELF; else it is kept with the communicator
    std::vector<KnownStep> known;              ///< given back before the communicator
    std::size_t oldest = 0;
    std::optional<Timed> last;  ///< the access before, of which all ranks learn in the next one
    FirstAccesses first;
};

class Channels {
public:
    /// The channels of `comm`, which are kept with it. Collective: one small reduction for each new communicator.
    static std::shared_ptr<Channels> of(MPI_Comm comm);
    Channels(Channels const&) = delete;
    Channels& operator=(Channels const&) = delete;

    /// A channel for a file that is being opened on `comm`, the communicator that these are of. With
    /// MPI_THREAD_MULTIPLE collective over it: one small reduction. Else local.
    [[nodiscard]] std::shared_ptr<Channel> take(MPI_Comm comm);
    /// One for the accesses of such a file that the engine does beside the program, if no rank refuses: with a
    /// communicator, a session and the machine known. Null if the program has no use for it, if the ranks are on
    /// several nodes, there is one only, or too many are taken. Collective over `comm`: one small reduction, where it
    /// can be had at all.
    [[nodiscard]] std::shared_ptr<Channel> take_aside(MPI_Comm comm, bool refused);
    /// Gives the channel its communicator. Collective over the ranks.
    void connect(Channel& channel) const;

    /// Kept with the communicator, so that files that come and go do not start one each.
    void keep(std::shared_ptr<comm::Watchdog> watchdog) { watchdog_ = std::move(watchdog); }

private:
    Channels(MPI_Comm comm, bool one_each, bool no_asides);

    static constexpr std::size_t most = 16;

    std::shared_ptr<comm::Watchdog> watchdog_;
    bool one_each_;  ///< every open file has its own
    std::mutex mutex_;
    std::optional<comm::Ranks> ranks_;  ///< if the channel gets its communicator later
    std::array<std::shared_ptr<Channel>, most> channels_;
    static constexpr std::size_t most_asides = 8;
    bool no_asides_;
    std::array<std::shared_ptr<Channel>, most_asides> asides_;
};

}  // namespace tapioca::mpiio
