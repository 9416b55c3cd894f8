#include "engine/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

namespace tapioca::engine {

namespace {

constexpr std::size_t cache_line = 64;

constexpr std::size_t to_line(std::size_t bytes)
{
    return (bytes + cache_line - 1) / cache_line * cache_line;
}

/// Bytes of the counters of one rank, one per partition, on separate cache lines.
std::size_t row_of(std::size_t lanes)
{
    return to_line(lanes * sizeof(Counter)) / sizeof(Counter);
}

// A lane consists of its progress, on a cache line of its own, the number of bytes in each buffer, and the slots.
std::size_t buffer_bytes_at()
{
    return cache_line;
}

std::size_t slots_at(std::size_t buffers)
{
    return buffer_bytes_at() + to_line(buffers * sizeof(Counter));
}

std::size_t lane_step(std::size_t buffers)
{
    return slots_at(buffers) + to_line(buffers * sizeof(Exchange::LaneSlot));
}

void raise(Counter& counter, std::uint64_t ticket)
{
    auto now = counter.load(std::memory_order_relaxed);
    while (now < ticket && !counter.compare_exchange_weak(now, ticket, std::memory_order_relaxed)) {}
}

}  // namespace

struct alignas(cache_line) Exchange::Header {
    alignas(cache_line) Counter claimed;
    alignas(cache_line) Counter spoiled;  ///< number of the last spoiled step, plus one
    Counter abandoned;  ///< 0: not abandoned; otherwise one more than the fewest agreements of the ranks that abandoned
    Counter reason;     ///< 0: none; otherwise code, file, and rank plus one
    Counter said[4];    ///< digests of what some rank has said last; 0: nothing
};

struct alignas(cache_line) Exchange::RankCell {
    alignas(cache_line) Counter arrived;
    std::uint64_t mail_bytes[2];  ///< of two alternating posts: no rank can be two posts ahead of another
    Counter announced;            ///< step * 4 + direction
    alignas(cache_line) Counter consumed;
    Counter beats;
    alignas(cache_line) std::byte mail[2][most_mail];
};

bool Exchange::first_to_say(std::uint64_t digest)
{
    auto& said = header_->said[digest % std::size(header_->said)];
    return said.exchange(digest | 1, std::memory_order_relaxed) != (digest | 1);
}

std::size_t Exchange::bytes(int ranks)
{
    auto const n = static_cast<std::size_t>(ranks);
    return sizeof(Header) + n * sizeof(RankCell) + to_line(n * most_buffers * sizeof(RingBuffer));
}

std::size_t Exchange::lane_bytes(int ranks, Lanes const& lanes)
{
    return lanes.count * lane_step(lanes.buffers) +
           2 * static_cast<std::size_t>(ranks) * row_of(lanes.count) * sizeof(Counter);
}

Exchange::Exchange(std::byte* memory, int ranks, int rank) : ranks_(ranks), rank_(rank)
{
    // Zeroed memory is a valid state for all of these: they are lock-free atomics and plain integers.
    auto const n = static_cast<std::size_t>(ranks);
    auto const take = [&memory](std::size_t bytes) { return std::exchange(memory, memory + bytes); };
    header_ = reinterpret_cast<Header*>(take(sizeof(Header)));
    cells_ = reinterpret_cast<RankCell*>(take(n * sizeof(RankCell)));
    blocks_ = reinterpret_cast<RingBuffer*>(take(n * most_buffers * sizeof(RingBuffer)));
}

void Exchange::use_lanes(std::byte* memory, Lanes const& lanes)
{
    std::lock_guard const lock(*lanes_mutex_);
    lanes_ = lanes;
    row_ = row_of(lanes.count);
    lane_memory_ = memory;
    auto* const rows = memory + lanes.count * lane_step(lanes.buffers);
    filled_ = reinterpret_cast<Counter*>(rows);
    taken_ = filled_ + static_cast<std::size_t>(ranks_) * row_;
}

Exchange::RankCell& Exchange::cell(int rank) const
{
    return cells_[rank];
}

Counter& Exchange::filled(std::size_t partition, int rank) const
{
    return filled_[static_cast<std::size_t>(rank) * row_ + partition];
}

Counter& Exchange::taken(std::size_t partition, int rank) const
{
    return taken_[static_cast<std::size_t>(rank) * row_ + partition];
}

std::uint64_t Exchange::least(Counter* rows, std::size_t partition) const
{
    auto least = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t at = partition, rank = 0; rank < static_cast<std::size_t>(ranks_); ++rank, at += row_)
        least = std::min(least, rows[at].load(std::memory_order_acquire));
    return least;
}

void Exchange::set_filled(std::size_t partition, std::uint64_t ticket)
{
    filled(partition, rank_).store(ticket, std::memory_order_release);
}

std::uint64_t Exchange::least_filled(std::size_t partition) const
{
    return least(filled_, partition);
}

void Exchange::set_taken(std::size_t partition, std::uint64_t ticket)
{
    taken(partition, rank_).store(ticket, std::memory_order_release);
}

std::uint64_t Exchange::least_taken(std::size_t partition) const
{
    return least(taken_, partition);
}

Exchange::LaneSlot& Exchange::slot(std::size_t partition, std::size_t buffer) const
{
    auto* const lane = lane_memory_ + partition * lane_step(lanes_.buffers);
    return reinterpret_cast<LaneSlot*>(lane + slots_at(lanes_.buffers))[buffer];
}

Counter& Exchange::progress(std::size_t partition) const
{
    return *reinterpret_cast<Counter*>(lane_memory_ + partition * lane_step(lanes_.buffers));
}

Counter& Exchange::buffer_bytes(std::size_t partition, std::size_t buffer) const
{
    auto* const lane = lane_memory_ + partition * lane_step(lanes_.buffers);
    return reinterpret_cast<Counter*>(lane + buffer_bytes_at())[buffer];
}

Counter& Exchange::claimed() const
{
    return header_->claimed;
}

void Exchange::raise_claimed(std::uint64_t ticket)
{
    raise(header_->claimed, ticket);
}

void Exchange::raise_progress(std::size_t partition, std::uint64_t ticket)
{
    raise(progress(partition), ticket);
}

Exchange::RingBuffer& Exchange::block(std::size_t slot) const
{
    return blocks_[slot];
}

void Exchange::set_consumed(std::uint64_t ticket)
{
    cell(rank_).consumed.store(ticket, std::memory_order_release);
}

std::uint64_t Exchange::least_consumed() const
{
    auto least = std::numeric_limits<std::uint64_t>::max();
    for (int rank = 0; rank < ranks_; ++rank)
        least = std::min(least, cell(rank).consumed.load(std::memory_order_acquire));
    return least;
}

void Exchange::announce(std::uint64_t step, Announcement direction)
{
    cell(rank_).announced.store(step * 4 + static_cast<std::uint64_t>(direction), std::memory_order_release);
}

Exchange::Announcement Exchange::announced(std::uint64_t step) const
{
    bool all = true;
    for (int rank = 0; rank < ranks_; ++rank) {
        auto const value = cell(rank).announced.load(std::memory_order_acquire);
        auto const direction = static_cast<Announcement>(value % 4);
        if (value / 4 != step || direction == Announcement::unknown)
            all = false;
        else if (direction != Announcement::none)
            return direction;
    }
    return all ? Announcement::none : Announcement::unknown;
}

void Exchange::spoil(std::uint64_t step)
{
    header_->spoiled.store(step + 1, std::memory_order_release);
}

bool Exchange::spoiled(std::uint64_t step) const
{
    return header_->spoiled.load(std::memory_order_acquire) == step + 1;
}

void Exchange::abandon(std::uint64_t after, AbandonReason const& reason)
{
    std::uint64_t none = 0;
    auto const mine = static_cast<std::uint64_t>(reason.code) << 48 | static_cast<std::uint64_t>(reason.opening) << 32 |
                      static_cast<std::uint32_t>(reason.rank + 1);
    header_->reason.compare_exchange_strong(none, mine);
    auto now = header_->abandoned.load(std::memory_order_relaxed);
    while ((now == 0 || now > after + 1) && !header_->abandoned.compare_exchange_weak(now, after + 1)) {}
}

bool Exchange::abandoned() const
{
    return header_->abandoned.load(std::memory_order_acquire) != 0;
}

bool Exchange::abandoned_after(std::uint64_t agreements) const
{
    auto const fewest = header_->abandoned.load(std::memory_order_acquire);
    return fewest != 0 && fewest <= agreements + 1;
}

Exchange::AbandonReason Exchange::reason() const
{
    auto const value = header_->reason.load(std::memory_order_acquire);
    return {static_cast<Errc>(value >> 48), static_cast<int>(static_cast<std::uint32_t>(value)) - 1,
            static_cast<std::uint16_t>(value >> 32)};
}

core::Status Exchange::lost() const
{
    auto const [code, rank, opening] = reason();
    if (code != Errc::memory)
        return core::fail(Errc::invalid_state, "a step of this communicator was destroyed before wait()");
    return tl::unexpected(core::Failure{code, ENOMEM, rank,
                                        "out of memory in the middle of a collective call: files that are open on "
                                        "this communicator can only be closed, and then opened again"});
}

void Exchange::beat()
{
    cell(rank_).beats.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t Exchange::activity() const
{
    auto sum = header_->claimed.load(std::memory_order_relaxed);
    for (int rank = 0; rank < ranks_; ++rank) {
        auto const& c = cell(rank);
        sum += c.arrived.load(std::memory_order_relaxed) + c.consumed.load(std::memory_order_relaxed) +
               c.beats.load(std::memory_order_relaxed);
    }
    std::lock_guard const lock(*lanes_mutex_);
    for (std::size_t lane = 0; lane < lanes_.count; ++lane) sum += progress(lane).load(std::memory_order_relaxed);
    return sum;
}

void Exchange::post(std::span<std::byte const> mail)
{
    auto& mine = cell(rank_);
    auto const slot = posts_ % 2;
    mine.mail_bytes[slot] = std::min(mail.size(), most_mail);
    if (!mail.empty()) std::memcpy(mine.mail[slot], mail.data(), mine.mail_bytes[slot]);
    mine.arrived.store(++posts_, std::memory_order_release);
}

bool Exchange::all_arrived() const
{
    for (int rank = 0; rank < ranks_; ++rank)
        if (cell(rank).arrived.load(std::memory_order_acquire) < posts_) return false;
    return true;
}

std::span<std::byte const> Exchange::mail_of(int rank) const
{
    auto const slot = (posts_ - 1) % 2;
    return {cell(rank).mail[slot], cell(rank).mail_bytes[slot]};
}

core::Status Exchange::agree(core::Status const& local, WaitPolicy const& wait_policy)
{
    std::vector<std::byte> mail;  // empty: no failure
    if (!local) mail = core::pack(local.error());
    core::Status verdict;
    auto const shared = share(mail, wait_policy, [&](int rank, std::span<std::byte const> bytes) {
        if (bytes.empty() || !verdict) return;
        verdict = tl::unexpected(core::unpack(bytes));
        verdict.error().rank = rank;
    });
    return shared ? verdict : shared;
}

}  // namespace tapioca::engine
