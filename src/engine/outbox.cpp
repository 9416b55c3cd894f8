#include "engine/outbox.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/units.hpp"
#include "engine/copy.hpp"

namespace tapioca::engine {

namespace {

/// From this size on, a separate message costs less than the copy into the slot.
constexpr std::size_t large_bytes = 256 * core::KiB;

std::size_t bytes_of(std::span<pattern::PieceRun const> runs)
{
    std::int64_t bytes = 0;
    for (auto const& run : runs) bytes += run.length * run.count;
    return static_cast<std::size_t>(bytes);
}

/// True if the runs are one contiguous stretch of memory, beginning with the first run's first byte.
bool contiguous(std::span<pattern::PieceRun const> runs)
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

std::byte* append(std::byte* to, std::span<pattern::PieceRun const> runs, std::byte const* data)
{
    for (auto const& run : runs) to = gather(to, run, data);
    return to;
}

}  // namespace

Outbox::Outbox(Context const& context, bool can_put) : context_(context), can_put_(can_put)
{
    for (std::size_t p = 0; p < context.partitions(); ++p) {
        if (context.buffer_layout->is_home(p) || context.buffer_layout->feeders(p).empty()) continue;
        auto const& self = context.buffer_layout->feeders(p)[0];
        if (self.rank == context.rank) lanes_.push_back({p, &self, context.route->ranks[p], context.rounds(p)});
    }
    std::stable_partition(lanes_.begin(), lanes_.end(),
                          [&](Lane const& lane) { return lane.partition >= first_partition(); });
}

std::size_t Outbox::first_partition() const
{
    auto const& network = context_.route->network;
    auto const nodes = network.slot_bytes.size();
    return (static_cast<std::size_t>(context_.net->node) + 1) % nodes * network.homes.size() / nodes;
}

bool Outbox::sends_for(std::size_t partition) const
{
    return std::any_of(lanes_.begin(), lanes_.end(), [&](Lane const& lane) { return lane.partition == partition; });
}

Exchange::LaneSlot& Outbox::counts(std::size_t partition, std::int64_t round) const
{
    return context_.exchange->slot(partition, context_.buffer_of(round));
}

std::span<std::byte> Outbox::message(std::size_t partition, std::int64_t round) const
{
    auto const bytes = context_.route->network.slot_bytes[static_cast<std::size_t>(context_.net->node)];
    return {context_.slot(partition, round), bytes};
}

std::span<std::byte> Outbox::claim(std::size_t partition, std::int64_t round, std::size_t bytes, std::size_t room)
{
    // After one entry did not fit, no later one fits; so the entries that fit are contiguous from the start.
    auto& slot = counts(partition, round);
    auto const at = slot.claimed.fetch_add(bytes, std::memory_order_acq_rel);
    if (at + bytes > room - sizeof(wire::Heading)) return {};
    slot.filled.fetch_add(bytes, std::memory_order_relaxed);
    return message(partition, round).subspan(sizeof(wire::Heading) + at, bytes);
}

void Outbox::add_data(std::size_t partition, std::int64_t round, std::span<pattern::PieceRun const> runs,
                      std::byte const* data, bool whole)
{
    if (runs.empty()) return;
    auto const bytes = bytes_of(runs);
    // The sender may put its own data straight into the aggregator's buffer; other ranks send messages.
    bool const may_put = can_put_ && sends_for(partition);
    // Data for another tier lands in memory first.
    bool const large =
        whole && bytes >= large_bytes && contiguous(runs) && context_.buffer_layout->area(partition) == 0;
    bool const one_piece = runs.size() == 1 && runs[0].count == 1;
    auto const origin = context_.origin(partition, round);
    wire::EntryHeading heading;
    heading.way = wire::DataPath::inside;
    if (large) heading.way = may_put && one_piece ? wire::DataPath::placed : wire::DataPath::apart;
    heading.rank = context_.rank;
    heading.data_bytes = static_cast<std::uint32_t>(bytes);
    encoded_.clear();
    wire::encode(runs, origin, encoded_);
    heading.run_bytes = static_cast<std::uint32_t>(encoded_.size());

    auto const size = sizeof heading + encoded_.size() + (heading.way == wire::DataPath::inside ? bytes : 0);
    auto const room = claim(partition, round, size, message(partition, round).size());
    if (room.empty()) {
        heading.way = wire::DataPath::inside;
        return send_stray(partition, round, heading, runs, data);
    }
    auto* to = append(room.data(), &heading, sizeof heading);
    to = append(to, encoded_.data(), encoded_.size());
    std::span const straight(data + runs[0].buffer, bytes);
    if (heading.way == wire::DataPath::inside)
        append(to, runs, data);
    else if (heading.way == wire::DataPath::apart)
        send(straight, context_.route->ranks[partition], tag_apart);
    else
        placed_.push_back({partition, runs[0].offset - origin, straight});
}

void Outbox::send(std::span<std::byte const> bytes, int to, Tag tag)
{
    ++leaving_;
    context_.net->messages->send(bytes, to, tag, [this] { --leaving_; });
}

void Outbox::send_stray(std::size_t partition, std::int64_t round, wire::EntryHeading heading,
                        std::span<pattern::PieceRun const> runs, std::byte const* data)
{
    wire::StrayHeading const stray{round, context_.net->node, 0};
    auto const bytes =
        std::make_shared<std::vector<std::byte>>(sizeof stray + sizeof heading + encoded_.size() + heading.data_bytes);
    auto* to = append(bytes->data(), &stray, sizeof stray);
    to = append(to, &heading, sizeof heading);
    to = append(to, encoded_.data(), encoded_.size());
    append(to, runs, data);
    counts(partition, round).strays.fetch_add(1, std::memory_order_relaxed);
    ++leaving_;
    strays_bytes_ += bytes->size();
    context_.net->messages->send(*bytes, context_.route->ranks[partition], tag_stray, [this, bytes] {
        --leaving_;
        strays_bytes_ -= bytes->size();
    });
}

std::optional<std::uint64_t> Outbox::add_request(std::size_t partition, std::int64_t round,
                                                 std::span<pattern::PieceRun const> runs)
{
    auto const bytes = bytes_of(runs);
    wire::EntryHeading heading;
    heading.way = wire::DataPath::none;
    heading.rank = context_.rank;
    encoded_.clear();
    wire::encode(runs, context_.origin(partition, round), encoded_);
    heading.run_bytes = static_cast<std::uint32_t>(encoded_.size());
    auto const room = claim(partition, round, sizeof heading + encoded_.size(),
                            message(partition, round).size() - reply(partition, round).size());
    if (room.empty()) return std::nullopt;
    auto const at = counts(partition, round).reply.fetch_add(bytes);
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
    return context_.route->network.request_bytes[static_cast<std::size_t>(context_.net->node)];
}

std::span<std::byte> Outbox::reply(std::size_t partition, std::int64_t round) const
{
    return message(partition, round).subspan(request_bytes());
}

std::int64_t Outbox::rounds_filled(Lane const& lane) const
{
    auto const filled = context_.exchange->least_filled(lane.partition) - context_.ticket(lane.partition, 0);
    return std::min(static_cast<std::int64_t>(filled), lane.rounds);
}

std::int64_t Outbox::rounds_taken(Lane const& lane) const
{
    auto const least = context_.exchange->least_taken(lane.partition);
    return static_cast<std::int64_t>(least - std::min(least, context_.ticket(lane.partition, 0)));
}

bool Outbox::holds(Lane const& lane, std::int64_t round) const
{
    // When asking, the slot may belong to a later round by now: the rank that claimed it saw that this round is over.
    return counts(lane.partition, round).claimed.load(std::memory_order_acquire) != 0 &&
           (context_.writing || round >= rounds_taken(lane));
}

std::span<std::byte const> Outbox::seal(Lane const& lane, std::int64_t round, std::int64_t following)
{
    auto const slot = message(lane.partition, round);
    auto const& gathered = counts(lane.partition, round);
    wire::Heading heading{round, following, 0, 0, 0};
    heading.bytes = static_cast<std::uint32_t>(gathered.filled.load(std::memory_order_acquire));
    heading.strays = static_cast<std::uint32_t>(gathered.strays.load(std::memory_order_relaxed));
    heading.reply = std::min(gathered.reply.load(std::memory_order_relaxed),
                             reply(lane.partition, round).size() - sizeof(std::uint64_t));
    std::memcpy(slot.data(), &heading, sizeof heading);
    return slot.first(sizeof heading + heading.bytes);
}

std::size_t Outbox::reply_bytes(Lane const& lane, std::int64_t round) const
{
    wire::Heading heading;
    std::memcpy(&heading, message(lane.partition, round).data(), sizeof heading);
    return sizeof(std::uint64_t) + heading.reply;
}

void Outbox::release(Lane const& lane, std::int64_t round)
{
    auto& slot = counts(lane.partition, round);
    slot.claimed.store(0, std::memory_order_relaxed);
    slot.filled.store(0, std::memory_order_relaxed);
    slot.strays.store(0, std::memory_order_relaxed);
    slot.reply.store(0, std::memory_order_relaxed);
    context_.exchange->beat();
}

}  // namespace tapioca::engine
