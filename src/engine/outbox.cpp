#include "engine/outbox.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/units.hpp"
#include "engine/copy.hpp"

namespace tapioca::engine {

namespace {

/// From here on a message of its own costs less than the copy that gathers.
constexpr std::size_t large_bytes = 256 * core::KiB;

std::size_t bytes_of(std::span<pattern::Run const> runs)
{
    std::int64_t bytes = 0;
    for (auto const& run : runs) bytes += run.length * run.count;
    return static_cast<std::size_t>(bytes);
}

/// One stretch of memory from the first run's first byte on.
bool contiguous(std::span<pattern::Run const> runs)
{
    auto next = runs[0].buffer;
    for (auto const& run : runs) {
        if (run.buffer != next || !run.packed()) return false;
        next += run.length * run.count;
    }
    return true;
}

std::byte* append(std::byte* to, void const* from, std::size_t bytes)
{
    if (bytes > 0) std::memcpy(to, from, bytes);
    return to + bytes;
}

std::byte* append(std::byte* to, std::span<pattern::Run const> runs, std::byte const* data)
{
    for (auto const& run : runs) to = gather(to, run, data);
    return to;
}

}  // namespace

Outbox::Outbox(Place const& place, Work const& work) : place_(place), work_(&work), asking_(!work.writing)
{
    auto const& network = work.route->network;
    for (std::size_t p = 0; p < network.homes.size(); ++p) {
        if (work.site->is_home(p) || work.site->feeders(p).empty()) continue;
        auto const& self = work.site->feeders(p)[0];
        if (self.rank != place.rank) continue;
        auto const rounds = work.schedule.partitions[p].rounds;
        lanes_.push_back({p, &self, work.route->ranks[p], rounds});
        lanes_.back().awaited.resize(static_cast<std::size_t>(work.route->buffers));
        lanes_.back().said_all = rounds == 0;
    }
    std::stable_partition(lanes_.begin(), lanes_.end(),
                          [&](Lane const& lane) { return lane.partition >= first_partition(); });
}

std::size_t Outbox::first_partition() const
{
    auto const& network = work_->route->network;
    auto const nodes = network.slot_bytes.size();
    return (static_cast<std::size_t>(place_.net->node) + 1) % nodes * network.homes.size() / nodes;
}

bool Outbox::sends_for(std::size_t partition) const
{
    return std::any_of(lanes_.begin(), lanes_.end(), [&](Lane const& lane) { return lane.partition == partition; });
}

std::size_t Outbox::buffer_of(std::int64_t round) const
{
    return static_cast<std::size_t>(round % work_->route->buffers);
}

std::uint64_t Outbox::ticket(std::size_t partition, std::int64_t round) const
{
    return work_->tickets.lanes[partition] + static_cast<std::uint64_t>(round);
}

std::int64_t Outbox::origin(std::size_t partition, std::int64_t round) const
{
    return work_->schedule.partitions[partition].origin + round * work_->schedule.round_bytes - work_->base;
}

std::span<std::byte> Outbox::message(std::size_t partition, std::int64_t round) const
{
    auto const bytes = work_->route->network.slot_bytes[static_cast<std::size_t>(place_.net->node)];
    return {place_.buffers + work_->site->slot(partition, buffer_of(round)), bytes};
}

std::span<std::byte> Outbox::claim(std::size_t partition, std::int64_t round, std::size_t bytes, std::size_t room)
{
    // Nobody fits after one that did not: those that did lie side by side from the start.
    auto& slot = place_.exchange->slot(partition, buffer_of(round));
    auto const at = slot.claimed.fetch_add(bytes, std::memory_order_acq_rel);
    if (at + bytes > room - sizeof(wire::Heading)) return {};
    slot.filled.fetch_add(bytes, std::memory_order_relaxed);
    return message(partition, round).subspan(sizeof(wire::Heading) + at, bytes);
}

void Outbox::add_data(std::size_t partition, std::int64_t round, std::span<pattern::Run const> runs,
                      std::byte const* data, bool whole)
{
    if (runs.empty()) return;
    auto const bytes = bytes_of(runs);
    // The sender may put its own data straight into the aggregator's buffer; other ranks have their messages.
    bool const may_put = work_->route->network.transport == plan::Transport::rma && sends_for(partition);
    // What is bound for another tier lands in memory first.
    bool const large = whole && bytes >= large_bytes && contiguous(runs) && work_->site->area(partition) == 0;
    bool const one_piece = runs.size() == 1 && runs[0].count == 1;
    wire::EntryHeading heading;
    heading.way = wire::Way::inside;
    if (large) heading.way = may_put && one_piece ? wire::Way::placed : wire::Way::apart;
    heading.rank = place_.rank;
    heading.data_bytes = static_cast<std::uint32_t>(bytes);
    encoded_.clear();
    wire::encode(runs, origin(partition, round), encoded_);
    heading.run_bytes = static_cast<std::uint32_t>(encoded_.size());

    auto const size = sizeof heading + encoded_.size() + (heading.way == wire::Way::inside ? bytes : 0);
    auto const room = claim(partition, round, size, message(partition, round).size());
    if (room.empty()) {
        heading.way = wire::Way::inside;
        return send_stray(partition, round, heading, runs, data);
    }
    auto* to = append(room.data(), &heading, sizeof heading);
    to = append(to, encoded_.data(), encoded_.size());
    std::span const straight(data + runs[0].buffer, bytes);
    if (heading.way == wire::Way::inside) {
        append(to, runs, data);
    } else if (heading.way == wire::Way::apart) {
        ++leaving_;
        place_.net->messages->send(straight, work_->route->ranks[partition], tag_apart, [this] { --leaving_; });
    } else {
        placed_.push_back({partition, runs[0].offset - origin(partition, round), straight});
    }
}

void Outbox::send_stray(std::size_t partition, std::int64_t round, wire::EntryHeading heading,
                        std::span<pattern::Run const> runs, std::byte const* data)
{
    wire::StrayHeading const stray{round, place_.net->node, 0};
    auto const bytes =
        std::make_shared<std::vector<std::byte>>(sizeof stray + sizeof heading + encoded_.size() + heading.data_bytes);
    auto* to = append(bytes->data(), &stray, sizeof stray);
    to = append(to, &heading, sizeof heading);
    to = append(to, encoded_.data(), encoded_.size());
    append(to, runs, data);
    place_.exchange->slot(partition, buffer_of(round)).strays.fetch_add(1, std::memory_order_relaxed);
    ++leaving_;
    strays_bytes_ += bytes->size();
    place_.net->messages->send(*bytes, work_->route->ranks[partition], tag_stray, [this, bytes] {
        --leaving_;
        strays_bytes_ -= bytes->size();
    });
}

std::optional<std::uint64_t> Outbox::add_request(std::size_t partition, std::int64_t round,
                                                 std::span<pattern::Run const> runs)
{
    auto const bytes = bytes_of(runs);
    wire::EntryHeading heading;
    heading.way = wire::Way::none;
    heading.rank = place_.rank;
    encoded_.clear();
    wire::encode(runs, origin(partition, round), encoded_);
    heading.run_bytes = static_cast<std::uint32_t>(encoded_.size());
    auto const room = claim(partition, round, sizeof heading + encoded_.size(),
                            message(partition, round).size() - reply(partition, round).size());
    if (room.empty()) return std::nullopt;
    auto const at = place_.exchange->slot(partition, buffer_of(round)).reply.fetch_add(bytes);
    bool const fits = at + bytes <= reply(partition, round).size() - sizeof(std::uint64_t);
    if (fits) {
        heading.data_at = at;
        heading.data_bytes = static_cast<std::uint32_t>(bytes);
    }
    auto* const to = append(room.data(), &heading, sizeof heading);
    append(to, encoded_.data(), encoded_.size());
    return fits ? std::optional(at) : std::nullopt;
}

std::size_t Outbox::request_bytes() const
{
    return work_->route->network.request_bytes[static_cast<std::size_t>(place_.net->node)];
}

std::span<std::byte> Outbox::reply(std::size_t partition, std::int64_t round) const
{
    return message(partition, round).subspan(request_bytes());
}

bool Outbox::touched(Lane const& lane, std::int64_t round) const
{
    // When asking, the slot may have gone to a later round by now: whoever claimed it saw that this one is past.
    return place_.exchange->slot(lane.partition, buffer_of(round)).claimed.load(std::memory_order_acquire) != 0 &&
           (!asking_ || round >= taken(lane));
}

std::int64_t Outbox::taken(Lane const& lane) const
{
    auto const least = place_.exchange->least_taken(lane.partition);
    return static_cast<std::int64_t>(least - std::min(least, ticket(lane.partition, 0)));
}

bool Outbox::pump()
{
    bool any = false;
    for (auto& lane : lanes_) any = pump(lane) || any;
    return any;
}

bool Outbox::pump(Lane& lane)
{
    auto const start = ticket(lane.partition, 0);
    auto const buffers = work_->route->buffers;
    bool any = false;
    // What has left frees its slot, in order.
    while (!lane.under_way.empty() && lane.awaited[buffer_of(lane.under_way.front())] == 0) {
        auto const round = lane.under_way.front();
        lane.under_way.pop_front();
        release(lane, round);
        auto const free = lane.under_way.empty() ? lane.next : lane.under_way.front();
        place_.exchange->drained(lane.partition)
            .store(start + static_cast<std::uint64_t>(asking_ ? round + 1 : free), std::memory_order_release);
        any = true;
    }
    auto const ready =
        std::min(static_cast<std::int64_t>(place_.exchange->least_filled(lane.partition) - start), lane.rounds);
    while (lane.next < ready && lane.under_way.size() < static_cast<std::size_t>(buffers)) {
        // A slot belongs to a round only within the window of buffers: from the first that is not free when
        // sending, from the first that is not taken when asking.
        auto const first = asking_ ? taken(lane) : lane.under_way.empty() ? lane.next : lane.under_way.front();
        auto const limit = std::min(ready, first + buffers);
        auto const next_touched = [&](std::int64_t round) {
            round = std::max(round, std::min(first, limit));
            while (round < limit && !touched(lane, round)) ++round;
            return round < limit ? round : std::max(round, ready);
        };
        auto const round = next_touched(lane.next);
        any = true;
        if (!lane.begun && round > 0) send_notice(lane, round);
        lane.begun = true;
        lane.next = std::min(round + 1, ready);
        if (round < ready)
            send(lane, round, next_touched(round + 1));
        else if (!asking_ && lane.under_way.empty())
            place_.exchange->drained(lane.partition)
                .store(start + static_cast<std::uint64_t>(round), std::memory_order_release);
    }
    return any;
}

/// An aggregator cannot write a round before it knows that no node has data in it, which may be long before a node
/// can fill its first.
void Outbox::send_notice(Lane& lane, std::int64_t first)
{
    lane.said_all = first >= lane.rounds;
    lane.notice = {-1, first, 0, 0, 0};
    ++leaving_;
    place_.net->messages->send(std::as_bytes(std::span(&lane.notice, 1)), lane.to, tag_gathered,
                               [this] { --leaving_; });
}

std::span<std::byte const> Outbox::seal(Lane const& lane, std::int64_t round, std::int64_t following)
{
    auto const slot = message(lane.partition, round);
    auto& counts = place_.exchange->slot(lane.partition, buffer_of(round));
    wire::Heading heading{round, following, 0, 0, 0};
    heading.bytes = static_cast<std::uint32_t>(counts.filled.load(std::memory_order_acquire));
    heading.strays = static_cast<std::uint32_t>(counts.strays.load(std::memory_order_relaxed));
    heading.reply = std::min(counts.reply.load(std::memory_order_relaxed),
                             reply(lane.partition, round).size() - sizeof(std::uint64_t));
    std::memcpy(slot.data(), &heading, sizeof heading);
    return slot.first(sizeof heading + heading.bytes);
}

void Outbox::send(Lane& lane, std::int64_t round, std::int64_t following)
{
    lane.said_all = following >= lane.rounds;
    auto const bytes = seal(lane, round, following);
    lane.under_way.push_back(round);
    auto& awaited = lane.awaited[buffer_of(round)];
    awaited = asking_ ? 2 : 1;
    if (asking_)
        place_.net->messages->receive(reply(lane.partition, round), lane.to, tag_reply, [&awaited] { --awaited; });
    place_.net->messages->send(bytes, lane.to, tag_gathered, [&awaited] { --awaited; });
}

void Outbox::release(Lane const& lane, std::int64_t round)
{
    auto& slot = place_.exchange->slot(lane.partition, buffer_of(round));
    slot.claimed.store(0, std::memory_order_relaxed);
    slot.filled.store(0, std::memory_order_relaxed);
    slot.strays.store(0, std::memory_order_relaxed);
    slot.reply.store(0, std::memory_order_relaxed);
    place_.exchange->beat();
}

void Outbox::put_round(std::int64_t round, std::function<void()> const& meanwhile)
{
    std::vector<Lane const*> due;
    for (auto const& lane : lanes_)
        if (round < lane.rounds) due.push_back(&lane);
    // One target after the other, which keeps aggregators from waiting for each other, where the MPI can do it.
    std::size_t const at_once = place_.net->window->tells_posts_apart() ? 1 : due.size();
    for (std::size_t i = 0; i < due.size(); i += at_once)
        put_lanes(round, std::span(due).subspan(i, at_once), meanwhile);
    placed_.clear();
}

/// In one epoch.
void Outbox::put_lanes(std::int64_t round, std::span<Lane const* const> lanes, std::function<void()> const& meanwhile)
{
    auto& window = *place_.net->window;
    std::vector<int> targets;
    for (auto const* const lane : lanes) {
        auto const p = lane->partition;
        wait_until(*place_.patience, "the other ranks of the node",
                   [&] { return place_.exchange->least_filled(p) > ticket(p, round) || (meanwhile(), false); });
        targets.push_back(lane->to);
    }
    window.start(targets);
    for (auto const* const lane : lanes) {
        auto const p = lane->partition;
        if (touched(*lane, round)) window.put(seal(*lane, round, round + 1), lane->to, lane->self->landing[round % 2]);
        for (auto const& placed : placed_)
            if (placed.partition == p)
                window.put(placed.bytes, lane->to,
                           work_->site->buffer(p, buffer_of(round)) + static_cast<std::uint64_t>(placed.offset));
    }
    window.complete();
    for (auto const* const lane : lanes) {
        if (touched(*lane, round)) release(*lane, round);
        place_.exchange->drained(lane->partition).store(ticket(lane->partition, round + 1), std::memory_order_release);
    }
}

void Outbox::put_requests(std::int64_t round)
{
    for (auto const& lane : lanes_) {
        if (round >= lane.rounds) continue;
        wait_until(*place_.patience, "the other ranks of the node",
                   [&] { return place_.exchange->least_filled(lane.partition) > ticket(lane.partition, round); });
        if (touched(lane, round)) place_.net->window->put(seal(lane, round, round + 1), lane.to, lane.self->landing[0]);
    }
}

void Outbox::get_replies(std::int64_t round)
{
    for (auto const& lane : lanes_) {
        if (round >= lane.rounds || !touched(lane, round)) continue;
        wire::Heading heading;
        std::memcpy(&heading, message(lane.partition, round).data(), sizeof heading);
        place_.net->window->get(reply(lane.partition, round).first(sizeof(std::uint64_t) + heading.reply), lane.to,
                                lane.self->landing[0] + request_bytes());
    }
}

void Outbox::free_round(std::int64_t round)
{
    for (auto const& lane : lanes_) {
        if (round >= lane.rounds) continue;
        if (touched(lane, round)) release(lane, round);
        place_.exchange->drained(lane.partition).store(ticket(lane.partition, round + 1), std::memory_order_release);
    }
}

bool Outbox::done() const
{
    return leaving_ == 0 && std::all_of(lanes_.begin(), lanes_.end(),
                                        [](Lane const& lane) { return lane.said_all && lane.under_way.empty(); });
}

}  // namespace tapioca::engine
