#include "engine/session.hpp"

#include <algorithm>
#include <array>
#include <climits>

#include <fmt/core.h>

#include "engine/map_on_node.hpp"
#include "machine/cores.hpp"

namespace tapioca::engine {

core::Result<std::shared_ptr<Session>> Session::of(MPI_Comm comm, int ranks_per_node,
                                                   std::shared_ptr<Session>* elsewhere)
{
    static comm::AttachmentKey const kept;
    if (auto existing = elsewhere ? *elsewhere : std::static_pointer_cast<Session>(comm::attached(comm, kept))) {
        if (existing->forks_ != core::forks())
            return core::fail(Errc::invalid_state, "this process was forked from the one that uses the communicator");
        if (!existing->agreement_.abandoned()) return existing;
        if (!elsewhere) comm::detach(comm, kept);  // ranks that have not heard of it yet also come here
    }

    auto team = std::make_shared<comm::Team>(comm, ranks_per_node);
    cpu_set_t cores = machine::allowed_cores();
    team->unite({reinterpret_cast<unsigned char*>(&cores), sizeof cores});
    auto memory = std::move(*machine::make_tier(machine::ordinary_memory()));
    auto control = map_on_node(team->node(), *memory, Exchange::bytes(team->node_size()));
    // The lowest rank that failed, the fewest cores of a node, and the fewest cores of a node beyond its ranks.
    // Other parts of the team that this is a part of use their share of the cores.
    auto const own_share = CPU_COUNT(&cores) * std::max(team->node_size(), 1) / std::max(team->machine_size(), 1);
    auto const cores_of_node = comm::machine_size_around(comm) > 0 ? std::max(own_share, 1) : CPU_COUNT(&cores);
    std::array<int, 3> least = {control ? INT_MAX : team->rank(), cores_of_node,
                                CPU_COUNT(&cores) - team->machine_size()};
    team->least(least);
    if (least[0] != INT_MAX) {
        auto const local = control ? core::Status() : tl::unexpected(control.error());
        return tl::unexpected(comm::spread(team->all(), least[0], local).error());
    }
    std::shared_ptr<Session> session(
        new Session(std::move(team), cores, {least[1], least[2]}, std::move(memory), std::move(*control)));
    if (elsewhere)
        *elsewhere = session;
    else
        comm::attach(comm, kept, session);
    return session;
}

Session::Session(std::shared_ptr<comm::Team> team, cpu_set_t const& cores, Fewest fewest,
                 std::unique_ptr<machine::Tier> memory, machine::TierMapping control)
    : team_holder_(std::move(team)),
      team_(*team_holder_),
      cores_(cores),
      control_(std::move(control)),
      exchange_(control_.data(), team_.node_size(), team_.node_rank()),
      messages_(team_.all()),
      agreement_(team_, exchange_, messages_, team_.machine_size() > CPU_COUNT(&cores)),
      buffers_(team_, exchange_, agreement_, std::move(memory)),
      discovery_(team_, agreement_),
      worker_(cores,
              [this] {
                  exchange_.abandon(0, {Errc::memory, team_.rank()});
              }),
      net_{&messages_, &buffers_.window(), team_.my_node(), [this] { return agreement_.have_begun(); },
           [this] { return agreement_.spoiled(); }},
      fewest_(fewest)
{
}

Session::~Session()
{
    if (!several_nodes() || (!agreement_.abandoned() && !buffers_.window().open())) return;
    // MPI may still access the memory of an abandoned step, or of a window that was not released.
    if (agreement_.abandoned()) buffers_.window().tear();
    team_holder_->keep();
    buffers_.leave();
    agreement_.leave();
}

std::uint64_t Session::fixed_bytes() const
{
    auto fewest = team_.nodes()[0].size();
    auto most = fewest;
    for (auto const& ranks : team_.nodes()) {
        fewest = std::min(fewest, ranks.size());
        most = std::max(most, ranks.size());
    }
    // The same on all ranks: the size for the largest node, divided by the ranks of the smallest.
    auto const exchange = Exchange::bytes(static_cast<int>(most));
    return exchange / fewest + 16 * static_cast<std::uint64_t>(team_.size());
}

core::Status Session::prepare(BufferLayout const& buffer_layout, DiscoveredMachine& around, bool threaded,
                              bool needs_worker)
{
    auto const status = buffers_.make(buffer_layout, around, tickets);
    if (!status || !threaded) return status;
    return agreement_.agree(needs_worker ? worker_.launch() : core::Status());
}

Context Session::context(DiscoveredMachine const& around)
{
    Context context;
    context.exchange = &exchange_;
    context.buffers = buffers_.data();
    context.maps = buffers_.maps();
    for (auto const& tier : around.tiers) context.tiers.push_back(tier.mapping.data());
    context.worker = &worker_;
    context.wait_policy = &agreement_.wait_policy();
    context.rank = team_.rank();
    context.net = several_nodes() ? &net_ : nullptr;
    return context;
}

void Session::abandon(Exchange::AbandonReason const& reason)
{
    if (several_nodes() && comm::mpi_is_active()) buffers_.window().tear();
    agreement_.abandon(reason);
}

void Session::lose()
{
    bool const others_look = in_flight && !buffers_.window().open();
    if (!others_look)
        comm::end_job(fmt::format("rank {} of {} is out of memory while the others wait for it inside MPI",
                                  team_.rank(), team_.size()));
    in_flight = false;
    abandon({Errc::memory, team_.rank(), opening_});
}

void Session::watch(double seconds, char const* call, std::string const& file)
{
    watchdog_ = comm::watch({seconds, team_.rank(), team_.size(), call, &file});
}

void Session::closed()
{
    if (--open_files_ > 0) return;
    buffers_.window().free();  // no epoch is open: one-sided data moves within wait() only
    if (agreement_.abandoned() && several_nodes()) buffers_.leave();  // only MPI may still use them
}

}  // namespace tapioca::engine
