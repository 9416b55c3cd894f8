#include "engine/pool.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>

#include "machine/cores.hpp"

namespace tapioca::engine {

namespace {

/// Places in the tally: what the ranks say of a step as it begins.
enum Tally : std::size_t { says_write, says_read, says_spoiled };

}  // namespace

core::Result<std::shared_ptr<Pool>> Pool::of(MPI_Comm comm, int ranks_per_node, std::shared_ptr<Pool>* elsewhere)
{
    static comm::Key const kept;
    if (auto existing = elsewhere ? *elsewhere : std::static_pointer_cast<Pool>(comm::attached(comm, kept))) {
        if (existing->forks_ != core::forks())
            return core::fail(Errc::invalid_state, "this process was forked from the one that uses the communicator");
        if (!existing->abandoned()) return existing;
        if (!elsewhere) comm::detach(comm, kept);  // those who have not heard of it yet come here, too
    }

    auto team = std::make_shared<comm::Team>(comm, ranks_per_node);
    cpu_set_t cores = machine::allowed_cores();
    team->unite({reinterpret_cast<unsigned char*>(&cores), sizeof cores});
    auto memory = std::move(*machine::make_tier(machine::ordinary_memory()));
    auto control = share(team->node(), *memory, Exchange::bytes(team->node_size()));
    auto const status = comm::agree(team->all(), control ? core::Status() : tl::unexpected(control.error()));
    if (!status) return tl::unexpected(status.error());
    std::shared_ptr<Pool> pool(new Pool(std::move(team), cores, std::move(memory), std::move(*control)));
    if (elsewhere)
        *elsewhere = pool;
    else
        comm::attach(comm, kept, pool);
    return pool;
}

Pool::Pool(std::shared_ptr<comm::Team> team, cpu_set_t const& cores, std::unique_ptr<machine::Tier> memory,
           machine::Mapping control)
    : team_holder_(std::move(team)),
      team_(*team_holder_),
      cores_(cores),
      memory_(std::move(memory)),
      control_(std::move(control)),
      exchange_(control_.data(), team_.node_size(), team_.node_rank()),
      worker_(cores,
              [this] {
                  exchange_.abandon(0, {Errc::memory, team_.rank()});
              }),
      least_cores_(team_.least(CPU_COUNT(&cores))),
      spare_core_(team_.least(CPU_COUNT(&cores) - team_.machine_size()) > 0),
      messages_(team_.all()),
      net_{&messages_, nullptr, team_.my_node(), [this] { return tally_->done(); },
           [this] { return tally_->values()[says_spoiled] != 0; }}
{
    patience_.crowded = team_.machine_size() > CPU_COUNT(&cores_);
    if (several_nodes())
        patience_.poll = [this] { return poll(); };
    else
        patience_.nudge = [this] { comm::nudge(team_.all()); };
    patience_.activity = [this] { return exchange_.activity(); };
}

Pool::~Pool()
{
    if (!several_nodes() || (!abandoned() && !window_.open())) return;
    // MPI may still read and write what is left of an abandoned step, or of a window that was not given back.
    if (abandoned()) window_.tear();
    team_holder_->keep();
    buffers_.leave();
    (void)tally_.release();
    (void)agreement_.release();
}

std::uint64_t Pool::fixed_bytes() const
{
    auto fewest = team_.nodes()[0].size();
    auto most = fewest;
    for (auto const& ranks : team_.nodes()) {
        fewest = std::min(fewest, ranks.size());
        most = std::max(most, ranks.size());
    }
    // The same on all ranks: that of the largest node, shared by the ranks of the smallest.
    auto const exchange = Exchange::bytes(static_cast<int>(most));
    return exchange / fewest + 16 * static_cast<std::uint64_t>(team_.size());
}

std::shared_ptr<Surroundings> Pool::surroundings(Wish const& wish) const
{
    for (auto const& [known, around] : surroundings_)
        if (known == wish) return around;
    return nullptr;
}

core::Result<std::shared_ptr<Surroundings>> Pool::look_around(Wish const& wish)
{
    meet();
    auto found = engine::look_around(team_, wish);
    if (!found) return tl::unexpected(found.error());
    surroundings_.emplace_back(wish, std::make_shared<Surroundings>(std::move(*found)));
    return surroundings_.back().second;
}

bool Pool::holds(Site const& site, Surroundings const& around, bool one_sided) const
{
    for (std::size_t tier = 0; tier < site.tiers().size(); ++tier)
        if (!around.tiers[tier].holds(site.tiers()[tier])) return false;
    return site.bytes() <= buffers_.bytes() && site.map_bytes() <= maps_.bytes() &&
           exchange_.lanes().hold(site.lanes()) && (!one_sided || window_.open());
}

core::Status Pool::prepare(Site const& site, Surroundings& around, bool threaded, bool needs_worker)
{
    auto status = grow(buffers_, site.bytes());
    if (status) status = grow(maps_, site.map_bytes());
    if (status) status = grow(site.lanes());
    for (std::size_t tier = 0; tier < site.tiers().size() && status; ++tier)
        status = grow(around.tiers[tier], site.tiers()[tier]);
    if (!status || !threaded) return status;
    return agree(needs_worker ? worker_.launch() : core::Status());
}

core::Status Pool::prepare_window()
{
    if (window_.open()) return {};
    if (no_windows_.empty()) {
        meet();
        auto window = comm::Window::create(team_.all(), buffers_.data(), buffers_.bytes());
        if (window) {
            window_ = std::move(*window);
            net_.window = &window_;
            return {};
        }
        no_windows_ = window.error().text;
        if (team_.rank() == 0)
            std::fprintf(stderr,
                         "tapioca: this MPI refuses the window for transport=rma, p2p is used instead (%s; with Open "
                         "MPI, --mca osc ^ucx may help)\n",
                         no_windows_.c_str());
    }
    return core::fail(Errc::unsupported, no_windows_);
}

core::Status Pool::grow(machine::Mapping& mapping, std::uint64_t bytes)
{
    if (bytes <= mapping.bytes()) return {};
    meet();
    if (&mapping == &buffers_) window_.free();
    mapping = machine::Mapping();         // nobody uses it between steps; given back first, so that both need not fit
    (void)comm::agree(team_.node(), {});  // by every rank
    auto larger = share(team_.node(), *memory_, bytes);
    auto status = larger ? core::Status() : tl::unexpected(larger.error());
    if (several_nodes()) status = agree(status);  // else all ranks have the answer already
    if (status) mapping = std::move(*larger);
    return status;
}

core::Status Pool::grow(Exchange::Lanes needed)
{
    if (exchange_.lanes().hold(needed)) return {};
    needed.count = std::max(needed.count, exchange_.lanes().count);
    needed.buffers = std::max(needed.buffers, exchange_.lanes().buffers);
    exchange_.use_lanes(nullptr, {});
    counters_ = machine::Mapping();
    auto const status = grow(counters_, Exchange::lane_bytes(team_.node_size(), needed));
    if (!status) return status;
    exchange_.use_lanes(counters_.data(), needed);
    tickets.lanes.assign(needed.count, 0);
    return {};
}

/// Only nodes with buffers on the tier take part in making them.
core::Status Pool::grow(Surroundings::Tier& tier, Site::OnTier const& bytes)
{
    if (tier.holds(bytes)) return {};
    meet();
    core::Status status;
    auto const here = bytes[static_cast<std::size_t>(team_.my_node())];
    if (here > tier.mapping.bytes()) {
        tier.mapping = machine::Mapping();
        (void)comm::agree(team_.node(), {});  // as above
        auto made = share(team_.node(), machine::make_tier(*tier.traits), here);
        if (made)
            tier.mapping = std::move(*made);
        else
            status = tl::unexpected(made.error());
    }
    if (several_nodes()) status = agree(status);
    if (!status) {
        tier.mapping = machine::Mapping();
        tier.bytes.clear();
        return status;
    }
    tier.bytes.resize(bytes.size(), 0);
    for (std::size_t node = 0; node < bytes.size(); ++node) tier.bytes[node] = std::max(tier.bytes[node], bytes[node]);
    return {};
}

void Pool::closed()
{
    if (--open_files_ > 0) return;
    window_.free();                                        // no epoch is open: one-sided data moves within wait() only
    if (abandoned() && several_nodes()) buffers_.leave();  // nobody will use them again, but for MPI
}

void Pool::watch(double seconds, char const* call, std::string const& file)
{
    watchdog_ = comm::watch({seconds, team_.rank(), team_.size(), call, &file});
}

void Pool::meet()
{
    if (!several_nodes()) (void)agree({});
}

core::Status Pool::agree(core::Status const& local)
{
    if (!several_nodes()) return exchange_.agree(local, patience_);
    if (abandoned()) return exchange_.lost();
    agreement_->start(team_.all(), {local ? 0 : team_.size() - team_.rank()});
    if (!come_to_agree()) return exchange_.lost();
    auto const failed = agreement_->values()[0];
    return failed == 0 ? core::Status() : comm::spread(team_.all(), team_.size() - static_cast<int>(failed), local);
}

bool Pool::come_to_agree()
{
    // One that all have come to comes about, even if a rank that already knows so has abandoned a step since.
    wait_until(patience_, "the other ranks to arrive",
               [&] { return agreement_->done() || exchange_.abandoned_after(agreements_); });
    if (!agreement_->done()) return false;
    ++agreements_;
    return true;
}

core::Status Pool::least(std::span<std::int64_t> values)
{
    if (!several_nodes())
        return exchange_.share(std::as_bytes(values), patience_, [&](int /*rank*/, std::span<std::byte const> theirs) {
            for (std::size_t i = 0; i < values.size(); ++i) {
                std::int64_t value = 0;
                std::memcpy(&value, theirs.data() + i * sizeof value, sizeof value);
                values[i] = std::min(values[i], value);
            }
        });
    if (abandoned()) return exchange_.lost();
    std::vector<std::int64_t> mirrored;  // the greatest of these belongs to the least of those
    for (auto const value : values) mirrored.push_back(~value);
    agreement_->start(team_.all(), std::move(mirrored));
    if (!come_to_agree()) return exchange_.lost();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = ~agreement_->values()[i];
    return {};
}

void Pool::announce(Direction mine, bool spoiled)
{
    if (!several_nodes()) return exchange_.announce(tickets.step, mine);
    tally_->start(team_.all(), {mine == Direction::write, mine == Direction::read, spoiled});
}

Pool::Direction Pool::announced()
{
    if (!several_nodes()) return exchange_.announced(tickets.step);
    if (!tally_->done()) return Direction::unknown;
    return tally_->values()[says_read]    ? Direction::read
           : tally_->values()[says_write] ? Direction::write
                                          : Direction::none;
}

void Pool::all_began()
{
    if (several_nodes())
        wait_until(patience_, "the other ranks to start the step", [&] { return tally_->done() || abandoned(); });
}

namespace {

/// What one node tells the others when a step was abandoned, in one number.
std::uint64_t to_number(std::uint64_t agreements, Exchange::Reason const& reason)
{
    return (agreements & UINT32_MAX) | static_cast<std::uint64_t>(reason.code) << 32 |
           static_cast<std::uint64_t>(reason.rank + 1) << 40;
}

}  // namespace

void Pool::abandon(Exchange::Reason const& reason)
{
    exchange_.abandon(agreements_, reason);
    if (!several_nodes() || !comm::mpi_is_active()) return;
    window_.tear();
    auto const& nodes = team_.nodes();
    for (std::size_t node = 0; node < nodes.size(); ++node)
        if (static_cast<int>(node) != team_.my_node())
            messages_.tell(nodes[node], tag_abandoned, to_number(agreements_, exchange_.reason()));
}

void Pool::lose()
{
    bool const others_look = in_flight && !window_.open();
    if (!others_look)
        comm::end_job(fmt::format("rank {} of {} is out of memory while the others wait for it inside MPI",
                                  team_.rank(), team_.size()));
    in_flight = false;
    abandon({Errc::memory, team_.rank(), opening_});
}

std::uint64_t Pool::poll()
{
    if (auto const told = messages_.told(tag_abandoned))
        exchange_.abandon(*told & UINT32_MAX,
                          {static_cast<Errc>(*told >> 32 & 0xff), static_cast<int>(*told >> 40) - 1, 0});
    return messages_.moved();
}

namespace {

void add_summaries(void* in, void* in_out, int* count, MPI_Datatype* /*type*/)
{
    for (int i = 0; i < *count; ++i) {
        pattern::Summary one;
        pattern::Summary total;
        std::memcpy(&one, static_cast<std::byte*>(in) + static_cast<std::size_t>(i) * sizeof one, sizeof one);
        auto* const at = static_cast<std::byte*>(in_out) + static_cast<std::size_t>(i) * sizeof total;
        std::memcpy(&total, at, sizeof total);
        total.add(one);
        std::memcpy(at, &total, sizeof total);
    }
}

}  // namespace

core::Result<pattern::Summary> Pool::sum(pattern::Summary const& mine, core::Status const& local)
{
    if (several_nodes()) {
        auto const agreed = agree(local);
        if (!agreed) return tl::unexpected(agreed.error());
        auto total = mine;
        team_.reduce(&total, sizeof total, 1, add_summaries);
        return total;
    }
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
    if (several_nodes()) {
        if (auto const here = agree({}); !here) return tl::unexpected(here.error());
        return comm::broadcast(team_.all(), std::move(text));
    }
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

Context Pool::context(Surroundings const& around)
{
    Context context;
    context.exchange = &exchange_;
    context.buffers = buffers_.data();
    context.maps = maps_.data();
    for (auto const& tier : around.tiers) context.tiers.push_back(tier.mapping.data());
    context.worker = &worker_;
    context.patience = &patience_;
    context.rank = team_.rank();
    context.net = several_nodes() ? &net_ : nullptr;
    return context;
}

}  // namespace tapioca::engine
