// Seat: the communicators on which the files of one of the program's communicators run collectively.
//
// Until the first collective access a seat knows the ranks only, and the program may free its communicator. In a
// program without MPI_THREAD_MULTIPLE all collective calls come in the same order on all ranks, so that one
// communicator of ours serves all files, a *bench*. With it, different threads may use different files at the same
// time, and every open file has a bench of its own; when it is closed, the next one can have it. There a bench of one
// rank has no communicator of ours: Open MPI may hang when threads make some of those at the same time.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/watchdog.hpp"
#include "declared/step_state.hpp"
#include "pattern/typemap.hpp"

namespace tapioca::mpiio {

/// A declared step, and what this rank's part in it was declared for.
struct Known {
    pattern::Shape shape;  ///< of no bytes, if this rank has none
    std::int64_t origin = 0;
    std::string conditions;  ///< file system and settings that the plan was made for; the same on all ranks
    std::unique_ptr<declared::StepState> step;
};

/// A communicator of ours and the plans that were made on it.
struct Bench {
    static constexpr std::size_t most_known = 8;

    MPI_Comm comm = MPI_COMM_NULL;       ///< ours, and its errors are returned; or MPI_COMM_SELF
    std::shared_ptr<engine::Pool> pool;  ///< in the latter case; else it is kept with the communicator
    std::vector<Known> known;
    std::size_t oldest = 0;

    ~Bench();
};

class Seat {
public:
    /// The seat of `comm`, which is kept with it. Collective: one small reduction for each new communicator.
    static std::shared_ptr<Seat> of(MPI_Comm comm);
    ~Seat();
    Seat(Seat const&) = delete;
    Seat& operator=(Seat const&) = delete;

    /// A bench for a file that is being opened on `comm`, the communicator of the seat. With MPI_THREAD_MULTIPLE
    /// collective over it: one small reduction. Else local.
    [[nodiscard]] std::shared_ptr<Bench> take(MPI_Comm comm);
    /// Gives the bench its communicator. Collective over the seat's ranks.
    void settle(Bench& bench) const;

    /// Kept with the communicator, so that files that come and go do not start one each.
    void keep(std::shared_ptr<comm::Watchdog> watchdog) { watchdog_ = std::move(watchdog); }

private:
    Seat(MPI_Comm comm, MPI_Comm lasting, bool many_threads);

    static constexpr std::size_t benches = 16;

    std::shared_ptr<comm::Watchdog> watchdog_;
    bool many_threads_;
    std::mutex mutex_;
    MPI_Group group_ = MPI_GROUP_NULL;
    MPI_Comm lasting_ = MPI_COMM_NULL;  ///< one that the program cannot free
    bool owned_ = false;                ///< since it is our duplicate
    std::array<std::shared_ptr<Bench>, benches> benches_;
};

}  // namespace tapioca::mpiio
