#include "mpiio/channels.hpp"

#include <bit>

#include "comm/team.hpp"
#include "mpiio/environment.hpp"
#include "mpiio/linked_functions.hpp"

namespace tapioca::mpiio {

namespace {

constexpr char const* opening = "the other ranks to open a file";

comm::AttachmentKey const& key()
{
    static comm::AttachmentKey const made;
    return made;
}

std::shared_ptr<Channels> kept_with(MPI_Comm comm)
{
    return std::static_pointer_cast<Channels>(comm::attached(comm, key()));
}

/// Returns null if the channel would be of no use. Collective over `comm`.
std::shared_ptr<Channel> make_for_nonblocking(MPI_Comm comm)
{
    auto const settings = environment();
    if (!settings) return nullptr;
    auto const& options = settings->options;
    auto channel = std::make_shared<Channel>();
    channel->comm = comm::Own::duplicate(comm, opening);
    auto session = engine::Session::of(channel->comm.get(), options.ranks_per_node.value_or(0), &channel->session);
    if (!session || (*session)->several_nodes()) return nullptr;
    engine::DiscoverySettings const wish{options.platform.value_or(""), options.aggrtier.value_or("")};
    return (*session)->discovery().look_around(wish) ? channel : nullptr;
}

}  // namespace

std::shared_ptr<Channels> Channels::of(MPI_Comm comm)
{
    // Threads may open files on MPI_COMM_SELF at the same time.
    static auto& mutex = *new std::mutex;
    std::unique_lock lock(mutex, std::defer_lock);
    if (comm::size_of(comm) == 1) lock.lock();
    if (auto channels = kept_with(comm)) return channels;

    // With one thread, communicators of the same ranks may share their channels, and communicators that are never freed
    // keep theirs.
    enum : unsigned { threads = 1, no_nonblocking = 2 };
    auto const mine = (comm::threads_may_call() ? threads : 0U) | (may_begin_accesses() ? 0U : no_nonblocking);
    auto const all = comm::unite(comm, mine, opening);
    bool const one_each = (all & threads) != 0;
    auto const permanent = one_each ? MPI_COMM_NULL : comm::permanent(comm);
    auto channels = permanent == MPI_COMM_NULL ? nullptr : kept_with(permanent);
    if (!channels) {
        channels.reset(new Channels(comm, one_each, (all & no_nonblocking) != 0));
        if (permanent != MPI_COMM_NULL && permanent != comm) comm::attach(permanent, key(), channels);
    }
    comm::attach(comm, key(), channels);
    return channels;
}

Channels::Channels(MPI_Comm comm, bool one_each, bool no_nonblocking)
    : one_each_(one_each), no_nonblocking_(no_nonblocking)
{
    if (!one_each_) ranks_.emplace(comm, opening);
}

std::shared_ptr<Channel> Channels::take(MPI_Comm comm)
{
    bool const alone = comm::size_of(comm) == 1;
    std::unique_lock lock(mutex_, std::defer_lock);
    if (alone) lock.lock();  // otherwise calls come one after the other
    if (!one_each_) {
        if (!channels_[0]) channels_[0] = std::make_shared<Channel>();
        return channels_[0];
    }
    // A channel is free when no rank has a file on it any more.
    unsigned taken = 0;
    for (std::size_t i = 0; i < most; ++i)
        if (channels_[i].use_count() > 1) taken |= 1U << i;
    taken = comm::unite(comm, taken, opening);
    auto const free = static_cast<std::size_t>(std::countr_one(taken));
    if (free < most && channels_[free]) return channels_[free];
    auto channel = std::make_shared<Channel>();
    // Connect it now, because another thread may be using `comm` later.
    channel->comm = alone ? comm::Own::self() : comm::Own::duplicate(comm, opening);
    if (free < most) channels_[free] = channel;
    return channel;
}

std::shared_ptr<Channel> Channels::take_for_nonblocking(MPI_Comm comm, bool refused)
{
    if (no_nonblocking_ || comm::size_of(comm) == 1) return nullptr;
    // A channel is free when no rank has a file on it any more, nor requests of such a file.
    constexpr unsigned nobody = 1U << most_for_nonblocking;
    unsigned taken = refused ? nobody : 0;
    for (std::size_t i = 0; i < most_for_nonblocking; ++i)
        if (for_nonblocking_[i] &&
            (for_nonblocking_[i].use_count() > 1 || for_nonblocking_[i]->session->agreement().abandoned()))
            taken |= 1U << i;
    taken = comm::unite(comm, taken, opening);
    auto const free = static_cast<std::size_t>(std::countr_one(taken));
    if ((taken & nobody) != 0 || free >= most_for_nonblocking) return nullptr;
    if (!for_nonblocking_[free]) for_nonblocking_[free] = make_for_nonblocking(comm);
    no_nonblocking_ = !for_nonblocking_[free];
    return for_nonblocking_[free];
}

void Channels::connect(Channel& channel) const
{
    if (!channel.comm) channel.comm = ranks_->communicator("the other ranks' first access");
}

}  // namespace tapioca::mpiio
