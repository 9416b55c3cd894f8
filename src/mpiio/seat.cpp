#include "mpiio/seat.hpp"

#include <algorithm>

#include "comm/team.hpp"
#include "comm/watchdog.hpp"

namespace tapioca::mpiio {

namespace {

int size_of(MPI_Comm comm)
{
    int size = 0;
    PMPI_Comm_size(comm, &size);
    return size;
}

/// Whether a rank of `comm` may use several files at the same time. Collective; levels may differ between ranks.
bool many_threads(MPI_Comm comm)
{
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    int many = level == MPI_THREAD_MULTIPLE ? 1 : 0;
    comm::Waiting const waiting("the other ranks to open a file");
    if (size_of(comm) > 1) PMPI_Allreduce(MPI_IN_PLACE, &many, 1, MPI_INT, MPI_MAX, comm);
    return many != 0;
}

bool is_world(MPI_Comm comm)
{
    int outcome = MPI_UNEQUAL;
    PMPI_Comm_compare(comm, MPI_COMM_WORLD, &outcome);
    return outcome == MPI_IDENT || outcome == MPI_CONGRUENT;
}

/// True if all of the group's ranks are in MPI_COMM_WORLD, which is never freed.
bool within_world(MPI_Group group)
{
    int size = 0;
    PMPI_Group_size(group, &size);
    MPI_Group world = MPI_GROUP_NULL;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    std::vector<int> ranks(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) ranks[static_cast<std::size_t>(i)] = i;
    std::vector<int> there(ranks.size());
    PMPI_Group_translate_ranks(group, size, ranks.data(), world, there.data());
    PMPI_Group_free(&world);
    return std::find(there.begin(), there.end(), MPI_UNDEFINED) == there.end();
}

MPI_Comm duplicate(MPI_Comm comm)
{
    comm::Waiting const waiting("the other ranks to open a file");
    MPI_Comm copy = MPI_COMM_NULL;
    PMPI_Comm_dup(comm, &copy);
    PMPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
    return copy;
}

}  // namespace

Bench::~Bench()
{
    known.clear();
    if (comm != MPI_COMM_NULL && comm != MPI_COMM_SELF && comm::mpi_is_active()) PMPI_Comm_free(&comm);
}

std::shared_ptr<Seat> Seat::of(MPI_Comm comm)
{
    // Threads may open files of their own at the same time, on MPI_COMM_SELF.
    static auto& mutex = *new std::mutex;
    std::unique_lock lock(mutex, std::defer_lock);
    if (size_of(comm) == 1) lock.lock();
    auto const kept = [](MPI_Comm on) { return std::static_pointer_cast<Seat>(comm::attached(on, comm::Kept::seat)); };
    if (auto seat = kept(comm)) return seat;

    // With one thread, communicators of the same ranks may share; and the ones that never go away keep what they have.
    auto const many = many_threads(comm);
    auto const lasting = many                 ? MPI_COMM_NULL
                         : size_of(comm) == 1 ? MPI_COMM_SELF
                         : is_world(comm)     ? MPI_COMM_WORLD
                                              : MPI_COMM_NULL;
    auto seat = lasting == MPI_COMM_NULL ? nullptr : kept(lasting);
    if (!seat) {
        seat.reset(new Seat(comm, lasting, many));
        if (lasting != MPI_COMM_NULL && lasting != comm) comm::attach(lasting, comm::Kept::seat, seat);
    }
    comm::attach(comm, comm::Kept::seat, seat);
    return seat;
}

Seat::Seat(MPI_Comm comm, MPI_Comm lasting, bool many_threads) : many_threads_(many_threads), lasting_(lasting)
{
    if (many_threads_ || lasting_ != MPI_COMM_NULL) return;
    PMPI_Comm_group(comm, &group_);
    if (within_world(group_)) return;
    lasting_ = duplicate(comm);  // no communicator is left to make one from later
    owned_ = true;
}

Seat::~Seat()
{
    if (!comm::mpi_is_active()) return;
    if (group_ != MPI_GROUP_NULL) PMPI_Group_free(&group_);
    if (owned_) PMPI_Comm_free(&lasting_);
}

std::shared_ptr<Bench> Seat::take(MPI_Comm comm)
{
    std::unique_lock lock(mutex_, std::defer_lock);
    if (size_of(comm) == 1) lock.lock();  // else calls come one after the other
    if (!many_threads_) {
        if (!benches_[0]) benches_[0] = std::make_shared<Bench>();
        return benches_[0];
    }
    comm::Waiting const waiting("the other ranks to open a file");
    // A bench is free when no rank has a file on it any more.
    std::array<char, benches> taken = {};
    for (std::size_t i = 0; i < benches; ++i) taken[i] = benches_[i].use_count() > 1 ? 1 : 0;
    if (size_of(comm) > 1)
        PMPI_Allreduce(MPI_IN_PLACE, taken.data(), static_cast<int>(benches), MPI_SIGNED_CHAR, MPI_MAX, comm);
    auto const free = static_cast<std::size_t>(std::find(taken.begin(), taken.end(), 0) - taken.begin());
    if (free < benches && benches_[free]) return benches_[free];
    auto bench = std::make_shared<Bench>();
    // Now: later, another thread may be using `comm`.
    bench->comm = size_of(comm) == 1 ? MPI_COMM_SELF : duplicate(comm);
    if (free < benches) benches_[free] = bench;
    return bench;
}

void Seat::settle(Bench& bench) const
{
    if (bench.comm != MPI_COMM_NULL) return;
    comm::Waiting const waiting("the other ranks' first access");
    if (lasting_ != MPI_COMM_NULL)
        PMPI_Comm_dup(lasting_, &bench.comm);
    else
        PMPI_Comm_create_group(MPI_COMM_WORLD, group_, 0, &bench.comm);
    PMPI_Comm_set_errhandler(bench.comm, MPI_ERRORS_RETURN);
}

}  // namespace tapioca::mpiio
