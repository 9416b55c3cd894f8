#include "comm/own_communicators.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "comm/team.hpp"
#include "comm/watchdog.hpp"

namespace tapioca::comm {

namespace {

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
    std::iota(ranks.begin(), ranks.end(), 0);
    std::vector<int> there(ranks.size());
    PMPI_Group_translate_ranks(group, size, ranks.data(), world, there.data());
    PMPI_Group_free(&world);
    return std::find(there.begin(), there.end(), MPI_UNDEFINED) == there.end();
}

}  // namespace

Own::Own(MPI_Comm comm) : comm_(comm)
{
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

Own::Own(Own&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}

Own& Own::operator=(Own&& other) noexcept
{
    std::swap(comm_, other.comm_);
    return *this;
}

Own::~Own()
{
    if (comm_ != MPI_COMM_NULL && comm_ != MPI_COMM_SELF && mpi_is_active()) PMPI_Comm_free(&comm_);
}

Own Own::duplicate(MPI_Comm comm, char const* awaited)
{
    Waiting const waiting(awaited);
    MPI_Comm copy = MPI_COMM_NULL;
    PMPI_Comm_dup(comm, &copy);
    return Own(copy);
}

Own Own::self()
{
    Own own;
    own.comm_ = MPI_COMM_SELF;
    return own;
}

MPI_Comm permanent(MPI_Comm comm)
{
    if (size_of(comm) == 1) return MPI_COMM_SELF;
    return is_world(comm) ? MPI_COMM_WORLD : MPI_COMM_NULL;
}

Ranks::Ranks(MPI_Comm comm, char const* awaited) : permanent_(permanent(comm))
{
    if (permanent_ != MPI_COMM_NULL) return;
    PMPI_Comm_group(comm, &group_);
    if (!within_world(group_)) kept_ = Own::duplicate(comm, awaited);
}

Ranks::~Ranks()
{
    if (group_ != MPI_GROUP_NULL && mpi_is_active()) PMPI_Group_free(&group_);
}

Own Ranks::communicator(char const* awaited) const
{
    if (permanent_ != MPI_COMM_NULL) return Own::duplicate(permanent_, awaited);
    if (kept_) return Own::duplicate(kept_.get(), awaited);
    Waiting const waiting(awaited);
    MPI_Comm made = MPI_COMM_NULL;
    PMPI_Comm_create_group(MPI_COMM_WORLD, group_, 0, &made);
    return Own(made);
}

bool threads_may_call()
{
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
}

unsigned unite(MPI_Comm comm, unsigned bits, char const* awaited)
{
    if (size_of(comm) == 1) return bits;
    Waiting const waiting(awaited);
    PMPI_Allreduce(MPI_IN_PLACE, &bits, 1, MPI_UNSIGNED, MPI_BOR, comm);
    return bits;
}

}  // namespace tapioca::comm
