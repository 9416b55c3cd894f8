// Channels: the communicators on which the files of one of the program's communicators run collectively.
//
// Before the first collective access, only the ranks are recorded, and the program may free its communicator. In a
// program without MPI_THREAD_MULTIPLE, all collective calls come in the same order on all ranks, so that one
// communicator of the library, a *channel*, serves all files. With MPI_THREAD_MULTIPLE, different threads may use
// different files at the same time, so every open file has a channel of its own; when it is closed, the next file can
// reuse the channel. In this case, a channel of one rank has no communicator of the library, because Open MPI may hang
// when threads make several of them at the same time.
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

/// A declared step, and the access of this rank for which it was declared.
struct KnownStep {
    pattern::Shape shape;  ///< empty if this rank has no bytes
    std::int64_t origin = 0;
    std::string conditions;  ///< file system and settings for which the plan was made; the same on all ranks
    std::unique_ptr<declared::StepState> step;
};

/// Measures how long an access takes on this rank, from when all ranks have decided about it.
class Timed {
public:
    /// For an access with the plan at this place, in this direction.
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

/// A communicator of the library and the plans that were made on it.
struct Channel {
    static constexpr std::size_t most_known = 8;

    comm::Own comm;
    std::shared_ptr<engine::Session> session;  ///< only for MPI_COMM_SELF; others keep it with the communicator
    std::vector<KnownStep> known;              ///< destroyed before the communicator
    std::size_t oldest = 0;
    std::optional<Timed> last;  ///< the previous access, whose time all ranks learn in the next one
    FirstAccesses first;
};

class Channels {
public:
    /// The channels of `comm`, which are kept with it. Collective: one small reduction for each new communicator.
    static std::shared_ptr<Channels> of(MPI_Comm comm);
    Channels(Channels const&) = delete;
    Channels& operator=(Channels const&) = delete;

    /// A channel for a file that is being opened on `comm`, which must be the communicator of this object. With
    /// MPI_THREAD_MULTIPLE, collective over `comm`: one small reduction. Otherwise local.
    [[nodiscard]] std::shared_ptr<Channel> take(MPI_Comm comm);
    /// A channel for accesses of such a file that the engine does beside the program, unless a rank refuses. It has a
    /// communicator and a session, and the machine is known. Null if the program does not need it, if the ranks are on
    /// several nodes, if there is only one rank, or if too many channels are taken. Collective over `comm`: one small
    /// reduction, unless it is known that there is none.
    [[nodiscard]] std::shared_ptr<Channel> take_for_nonblocking(MPI_Comm comm, bool refused);
    /// Gives the channel its communicator. Collective over the ranks.
    void connect(Channel& channel) const;

    /// Keeps the watchdog with the communicator, so that not every file starts one.
    void keep(std::shared_ptr<comm::Watchdog> watchdog) { watchdog_ = std::move(watchdog); }

private:
    Channels(MPI_Comm comm, bool one_each, bool no_nonblocking);

    static constexpr std::size_t most = 16;

    std::shared_ptr<comm::Watchdog> watchdog_;
    bool one_each_;  ///< every open file has its own channel
    std::mutex mutex_;
    std::optional<comm::Ranks> ranks_;  ///< set if the channel gets its communicator later
    std::array<std::shared_ptr<Channel>, most> channels_;
    static constexpr std::size_t most_for_nonblocking = 8;
    bool no_nonblocking_;
    std::array<std::shared_ptr<Channel>, most_for_nonblocking> for_nonblocking_;
};

}  // namespace tapioca::mpiio
