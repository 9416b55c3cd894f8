#include "engine/pool.hpp"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include <fmt/core.h>

#include "machine/cores.hpp"

namespace tapioca::engine {

core::Result<std::shared_ptr<Pool>> Pool::of(MPI_Comm comm)
{
    if (auto const existing = comm::attached(comm)) return std::static_pointer_cast<Pool>(existing);

    auto team = std::make_shared<comm::Team>(comm);
    if (team->node_size() != team->size())
        return core::fail(Errc::unsupported, fmt::format("the communicator's {} ranks span several nodes: this version "
                                                         "serves ranks that share one",
                                                         team->size()));
    cpu_set_t cores = machine::allowed_cores();
    team->unite({reinterpret_cast<unsigned char*>(&cores), sizeof cores});
    auto control = comm::Segment::create(team->node(), Exchange::bytes(team->node_size()));
    if (!control) return tl::unexpected(control.error());
    std::shared_ptr<Pool> pool(new Pool(std::move(team), cores, std::move(*control)));
    comm::attach(comm, pool);
    return pool;
}

Pool::Pool(std::shared_ptr<comm::Team> team, cpu_set_t const& cores, comm::Segment control)
    : team_holder_(std::move(team)),
      team_(*team_holder_),
      cores_(cores),
      control_(std::move(control)),
      exchange_(control_.data(), team_.node_size(), team_.node_rank()),
      worker_(cores)
{
    tickets.write.resize(static_cast<std::size_t>(team_.node_size()), 0);
    patience_.crowded = team_.node_size() > CPU_COUNT(&cores_);
    patience_.activity = [this] { return exchange_.activity(); };
    patience_.give_up = [this](std::string const& what) {
        std::fprintf(stderr,
                     "tapioca: rank %d of %d waited more than TAPIOCA_TIMEOUT (%g s) for %s: aborting the job\n",
                     team_.rank(), team_.size(), patience_.timeout_s, what.c_str());
        std::this_thread::sleep_for(std::chrono::milliseconds(200));  // else MPICH's launcher may drop the message
        MPI_Abort(MPI_COMM_WORLD, 1);  // on another communicator MPICH waits for the very rank that is missing
    };
}

bool Pool::holds(plan::Route const& route) const
{
    return route.way == plan::Way::direct ||
           (buffer_bytes(route) <= buffers_.bytes() && map_bytes(route) <= maps_.bytes());
}

core::Status Pool::prepare(plan::Route const& route, bool background, bool needs_worker)
{
    if (route.way == plan::Way::aggregated) {
        auto status = grow(buffers_, buffer_bytes(route));
        if (status) status = grow(maps_, map_bytes(route));
        if (!status) return status;
    }
    if (!background) return {};
    return agree(needs_worker ? worker_.launch() : core::Status());
}

core::Status Pool::grow(comm::Segment& segment, std::uint64_t bytes)
{
    if (bytes <= segment.bytes()) return {};
    (void)agree({});            // all are here: MPI would wait for a rank that never comes without a time-out
    segment = comm::Segment();  // nobody uses it between steps; given back first, so that both need not fit
    auto larger = comm::Segment::create(team_.node(), bytes);
    if (!larger) return tl::unexpected(larger.error());
    segment = std::move(*larger);
    return {};
}

core::Result<pattern::Summary> Pool::sum(pattern::Summary const& mine, core::Status const& local)
{
    auto const* const bytes = reinterpret_cast<std::byte const*>(&mine);
    std::vector<std::byte> mail(bytes, bytes + sizeof mine);
    if (!local) {
        auto const failure = core::pack(local.error());
        mail.insert(mail.end(), failure.begin(), failure.end());
    }
    core::Result<pattern::Summary> total;
    auto const shared = exchange_.share(mail, patience_, [&](int rank, std::span<std::byte const> theirs) {
        if (!total) return;
        pattern::Summary summary;
        std::memcpy(&summary, theirs.data(), sizeof summary);
        total->add(summary);
        if (theirs.size() == sizeof summary) return;
        total = tl::unexpected(core::unpack(theirs.subspan(sizeof summary)));
        total.error().rank = rank;
    });
    if (!shared) return tl::unexpected(shared.error());
    return total;
}

core::Result<std::string> Pool::broadcast(std::string text)
{
    bool fits = true;
    auto const mine = team_.rank() == 0 ? std::as_bytes(std::span(text)) : std::span<std::byte const>();
    auto const shared = exchange_.share(mine, patience_, [&](int rank, std::span<std::byte const> bytes) {
        if (rank != 0) return;
        fits = bytes.size() < Exchange::most_mail;
        if (team_.rank() != 0 && fits) text.assign(reinterpret_cast<char const*>(bytes.data()), bytes.size());
    });
    if (!shared) return tl::unexpected(shared.error());
    return fits ? text : comm::broadcast(team_.all(), std::move(text));
}

Place Pool::place()
{
    return {&exchange_, buffers_.data(), maps_.data(), &worker_, &patience_};
}

}  // namespace tapioca::engine
