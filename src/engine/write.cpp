// Writing through aggregators: ranks copy into the shared buffers of the aggregators on their node, and gather what
// other nodes' aggregators get. Each partition's aggregator drains its buffers: its worker between start() and wait()
// and, where there is a core for it, between nodes; else its main thread whenever that has nothing to copy, so that a
// blocking step on one node has no more threads than ranks.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "core/units.hpp"
#include "engine/copy.hpp"
#include "engine/inbox.hpp"
#include "engine/outbox.hpp"
#include "engine/run.hpp"
#include "engine/valid_map.hpp"

namespace tapioca::engine {

namespace {

class WriteRun final : public Run {
public:
    WriteRun(Place const& place, Work work) : place_(place), work_(std::move(work)), status_(work_.target_status)
    {
        if (work_.spoiled) place_.exchange->spoil(work_.tickets.step);
        auto const partitions = work_.schedule.partitions.size();
        next_.resize(partitions);
        cursors_.reserve(partitions * work_.tracks.size());
        for (std::size_t p = 0; p < partitions; ++p) {
            for (auto const& track : work_.tracks) {
                cursors_.emplace_back(*track.layout);
                cursors_.back().seek(work_.schedule.partitions[p].begin - work_.base);
            }
            publish(p);
        }
        auto const& aggregators = work_.route->ranks;
        auto const mine = std::find(aggregators.begin(), aggregators.end(), place_.rank);
        bool const aggregates = mine != aggregators.end();
        if (aggregates) {
            own_ = static_cast<std::size_t>(mine - aggregators.begin());
            done_ = ticket(own_, 0);
            end_ = ticket(own_, work_.schedule.partitions[own_].rounds);
        }
        if (work_.route->networked()) {
            for (std::size_t p = 0; p < partitions; ++p) place_.exchange->raise_drained(p, ticket(p, 0));
            outbox_.emplace(place_, work_);
            if (aggregates)
                inbox_.emplace(place_, work_, own_, [this](std::int64_t round, wire::Runs runs, std::byte const* data) {
                    take_in(round, runs, data);
                });
            arrived_.store(0, std::memory_order_relaxed);
            first_ = outbox_->first_partition();
        }
        if (work_.threaded && end_ > done_) place_.worker->start([this] { drain_all(); });
    }
    WriteRun(WriteRun const&) = delete;
    WriteRun& operator=(WriteRun const&) = delete;
    ~WriteRun() override
    {
        abandoned_.store(true, std::memory_order_relaxed);
        place_.worker->wait();
        if (outbox_ && !place_.net->messages->idle()) place_.net->messages->drop();
    }

    bool advance(bool helping) override
    {
        if (one_sided()) {
            if (helping && !put_all_) put_all();
            return true;  // without the others, who wait for it inside MPI, nothing moves
        }
        for (;;) {
            bool const moved = outbox_ && pump();
            auto const partition = soonest();
            bool const all_filled = partition == next_.size() || next_[partition] == none;
            if (all_filled && (!outbox_ || outbox_->done())) return true;
            if (!all_filled && is_free(partition, next_[partition]) && !(outbox_ && outbox_->choked()))
                fill(partition, next_[partition]);
            else if (!moved && (!helping || !help()))
                return false;
        }
    }

    core::Status settle() override
    {
        wait_until(*place_.patience, "the aggregator's own writes", [&] {
            if (outbox_ && !one_sided()) pump();
            return over() || (help(), over());
        });
        place_.worker->wait();
        return status_;
    }

    [[nodiscard]] std::vector<std::uint64_t> const& received() const override { return received_; }
    [[nodiscard]] std::uint64_t drained_bytes() const override
    {
        return drained_bytes_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] double copying() const override { return copying_; }
    [[nodiscard]] Times times() const override
    {
        Times times = drain_times_;
        times.copying = copying_;
        times.bytes = drained_bytes();
        return times;
    }

private:
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

    [[nodiscard]] std::uint64_t ticket(std::size_t partition, std::int64_t round) const
    {
        return work_.tickets.lanes[partition] + static_cast<std::uint64_t>(round);
    }
    [[nodiscard]] std::size_t buffer_of(std::int64_t round) const
    {
        return static_cast<std::size_t>(round % work_.route->buffers);
    }
    [[nodiscard]] std::span<pattern::Cursor> cursors(std::size_t partition)
    {
        return {cursors_.data() + partition * work_.tracks.size(), work_.tracks.size()};
    }
    [[nodiscard]] std::byte* buffer(std::size_t partition, std::int64_t round) const
    {
        return place_.buffer(*work_.site, partition, buffer_of(round));
    }
    [[nodiscard]] bool one_sided() const { return outbox_ && work_.route->network.transport == plan::Transport::rma; }
    /// True if the buffer, or the slot, of a round has been emptied of the round before in it.
    [[nodiscard]] bool is_free(std::size_t partition, std::int64_t round) const
    {
        auto const drained = place_.exchange->drained(partition).load(std::memory_order_acquire);
        return ticket(partition, round) < drained + static_cast<std::uint64_t>(work_.route->buffers);
    }
    /// File offset of a buffer's first byte, relative to the base.
    [[nodiscard]] std::int64_t origin(std::size_t partition, std::int64_t round) const
    {
        return work_.schedule.partitions[partition].origin + round * work_.schedule.round_bytes - work_.base;
    }
    [[nodiscard]] ValidMap map(std::size_t partition, std::int64_t round) const
    {
        auto* const bytes = place_.maps + work_.site->map(partition, buffer_of(round));
        return {reinterpret_cast<std::uint64_t*>(bytes), work_.route->granule, origin(partition, round)};
    }

    /// The partition whose round is due first; among equals each node begins with another one, so that they do not all
    /// send to the same aggregator.
    [[nodiscard]] std::size_t soonest() const
    {
        auto const middle = next_.begin() + static_cast<std::ptrdiff_t>(first_);
        auto const after = std::min_element(middle, next_.end());
        auto const before = std::min_element(next_.begin(), middle);
        if (after == next_.end()) return static_cast<std::size_t>(before - next_.begin());
        bool const take_before = before != middle && *before < *after;
        return static_cast<std::size_t>((take_before ? before : after) - next_.begin());
    }

    /// Finds the next round with data of this rank and says that all before it are filled.
    void publish(std::size_t partition)
    {
        auto const& p = work_.schedule.partitions[partition];
        auto position = pattern::no_offset;
        if (!work_.spoiled)
            for (auto const& cursor : cursors(partition)) position = std::min(position, cursor.position());
        bool const more = position < p.end - work_.base;
        next_[partition] = more ? work_.schedule.round_of(partition, position + work_.base) : none;
        place_.exchange->set_filled(partition, ticket(partition, more ? next_[partition] : p.rounds));
    }

    void fill(std::size_t partition, std::int64_t round)
    {
        Stopwatch const watch(copying_);
        if (!work_.site->is_home(partition)) {
            hand_over(partition, round);
        } else {
            auto* const to = buffer(partition, round);
            auto const start = origin(partition, round);
            auto const limit = work_.schedule.round_end(partition, round) - work_.base;
            auto valid = map(partition, round);
            std::int64_t bytes = 0;
            auto const tracks = cursors(partition);
            for (std::size_t t = 0; t < tracks.size(); ++t)
                for (pattern::Run run; tracks[t].next(limit, run);) {
                    copy_in(to, start, run, work_.tracks[t].data);
                    if (!work_.route->dense) valid.mark(run);
                    bytes += run.length * run.count;
                }
            place_.exchange->touched(partition, buffer_of(round))
                .fetch_add(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
        }
        publish(partition);
    }

    /// What another node's aggregator gets.
    void hand_over(std::size_t partition, std::int64_t round)
    {
        auto const limit = work_.schedule.round_end(partition, round) - work_.base;
        auto const tracks = cursors(partition);
        for (std::size_t t = 0; t < tracks.size(); ++t) {
            runs_.clear();
            auto const add = [&] {
                outbox_->add_data(partition, round, runs_, work_.tracks[t].data,
                                  work_.route->dense || tracks.size() == 1);
                runs_.clear();
            };
            for (pattern::Run run; tracks[t].next(limit, run);) {
                runs_.push_back(run);
                if (runs_.size() == most_runs) add();
            }
            add();
        }
    }

    /// What another node sent for this aggregator; already in its place if `data` is null.
    void take_in(std::int64_t round, wire::Runs runs, std::byte const* data)
    {
        Stopwatch const watch(copying_);
        auto const start = origin(own_, round);
        auto valid = map(own_, round);
        std::int64_t bytes = 0;
        for (pattern::Run run; runs.next(run);) {
            if (data) copy_in(buffer(own_, round), 0, run, data);
            run.offset += start;
            if (!work_.route->dense) valid.mark(run);
            bytes += run.length * run.count;
        }
        place_.exchange->touched(own_, buffer_of(round))
            .fetch_add(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
    }

    /// Sends and receives what can be. True if something moved.
    bool pump()
    {
        bool moved = place_.net->messages->poll();
        clear_to_drain();
        moved = outbox_->pump() || moved;
        if (!inbox_) return moved;
        auto const drained = place_.exchange->drained(own_).load(std::memory_order_acquire);
        auto const open = static_cast<std::int64_t>(drained - ticket(own_, 0)) + work_.route->buffers;
        moved = inbox_->pump(open) || moved;
        note_arrived();
        return moved;
    }

    /// Nothing is written before it is known that every rank has what it declared.
    void clear_to_drain()
    {
        if (cleared_ || !place_.net->tally->done()) return;
        cleared_ = true;
        if (place_.net->tally->values()[says_spoiled] != 0) place_.exchange->spoil(work_.tickets.step);
        note_arrived();
    }
    void note_arrived()
    {
        if (cleared_ && inbox_) arrived_.store(ticket(own_, inbox_->ready()), std::memory_order_release);
    }

    /// One-sided: round by round, every rank opens its own buffer to its feeders before it waits for another's, so that
    /// none waits for a later round than it has opened.
    void put_all()
    {
        wait_until(*place_.patience, "the other ranks to start the step", [&] {
            clear_to_drain();
            return cleared_;
        });
        if (inbox_) inbox_->clear();
        std::int64_t rounds = 0;
        for (auto const& partition : work_.schedule.partitions) rounds = std::max(rounds, partition.rounds);
        auto const own_rounds = inbox_ ? work_.schedule.partitions[own_].rounds : 0;
        for (std::int64_t round = 0; round < rounds; ++round) {
            wait_until(*place_.patience, "an aggregator to take what fitted into no slot", [&] {
                place_.net->messages->poll();
                return !outbox_->choked() || (help(), false);
            });
            if (round < own_rounds) {
                wait_for_room(own_, round);
                inbox_->open_round();
            }
            for (std::size_t p = 0; p < next_.size(); ++p)
                if (next_[p] == round) {
                    wait_for_room(p, round);
                    fill(p, round);
                }
            outbox_->put_round(round, [this] { help(); });
            if (round >= own_rounds) continue;
            wait_until(*place_.patience, "the other nodes' data",
                       [&] { return inbox_->round_is_there() || (help(), false); });
            inbox_->unload_round(round);
            note_arrived();
        }
        wait_until(*place_.patience, "an aggregator to take large data", [&] {
            place_.net->messages->poll();
            return place_.net->messages->idle() || (help(), false);
        });
        put_all_ = true;
    }
    void wait_for_room(std::size_t partition, std::int64_t round)
    {
        wait_until(*place_.patience, "a free buffer", [&] { return is_free(partition, round) || (help(), false); });
    }

    /// True when all of this aggregator's rounds are written, or nobody will fill the rest.
    [[nodiscard]] bool over() const
    {
        return end_ == 0 || place_.exchange->drained(own_).load(std::memory_order_acquire) >= end_ ||
               place_.exchange->abandoned();
    }

    /// On the worker.
    void drain_all()
    {
        bool const crowded = place_.patience->crowded || outbox_;
        bool const slow = outbox_.has_value();
        Backoff backoff(crowded, slow);
        while (!over() && !abandoned_.load(std::memory_order_relaxed)) {
            if (drain_ready())
                backoff = Backoff(crowded, slow);
            else
                backoff.pause();
        }
    }

    /// Drains on the main thread, unless that is needed for messages and there is a worker.
    bool help() { return !(outbox_ && work_.threaded) && drain_ready(); }

    /// Writes the next round if all ranks have filled it and no other thread is at it. True if it did.
    bool drain_ready()
    {
        if (end_ == 0 || busy_.exchange(true, std::memory_order_acquire)) return false;
        auto const ready =
            std::min({place_.exchange->least_filled(own_), arrived_.load(std::memory_order_acquire), end_});
        bool const any = ready > done_;
        if (any) {
            drain_round(own_, static_cast<std::int64_t>(done_ - work_.tickets.lanes[own_]));
            ++done_;
            // A rank that has data further on than there are buffers waits for one: nobody filled what lies between.
            auto const window = done_ - 1 + static_cast<std::uint64_t>(work_.route->buffers);
            if (ready > window && untouched(done_, window)) done_ = ready;
            place_.exchange->drained(own_).store(done_, std::memory_order_release);
        }
        busy_.store(false, std::memory_order_release);
        return any;
    }

    /// True if no buffer of the rounds from `begin` to `end` holds data.
    [[nodiscard]] bool untouched(std::uint64_t begin, std::uint64_t end) const
    {
        for (auto t = begin; t < end; ++t) {
            auto const round = static_cast<std::int64_t>(t - work_.tickets.lanes[own_]);
            if (place_.exchange->touched(own_, buffer_of(round)).load(std::memory_order_relaxed) != 0) return false;
        }
        return true;
    }

    void drain_round(std::size_t partition, std::int64_t round)
    {
        auto& touched = place_.exchange->touched(partition, buffer_of(round));
        if (touched.load(std::memory_order_relaxed) == 0) return;
        touched.store(0, std::memory_order_relaxed);
        bool const skip = !status_ || place_.exchange->spoiled(work_.tickets.step);
        Stopwatch const watch(drain_times_.draining);
        auto const begin = work_.schedule.round_begin(partition, round) - work_.base;
        auto const end = work_.schedule.round_end(partition, round) - work_.base;
        auto const write = [&](std::int64_t from, std::int64_t to) {
            if (skip || !status_) return;
            auto const* const bytes = buffer(partition, round) + (from - origin(partition, round));
            core::keep_first(
                status_, work_.target->write(work_.base + from, std::span(bytes, static_cast<std::size_t>(to - from))));
            if (!status_) return;
            ++drain_times_.calls;
            drained_bytes_.fetch_add(static_cast<std::uint64_t>(to - from), std::memory_order_relaxed);
        };
        if (work_.route->dense) {
            reserve(begin, end, skip);
            write(begin, end);
        } else {
            stretches_.clear();
            map(partition, round).take(begin, end, [&](auto from, auto to) { stretches_.push_back({from, to}); });
            if (skip || !patch(partition, round))
                for (auto const& [from, to] : stretches_) write(from, to);
        }
        ++drain_times_.rounds;
    }

    /// Stores many small stretches through a mapping of the file instead of a call for each. False if that cannot be.
    bool patch(std::size_t partition, std::int64_t round)
    {
        constexpr std::int64_t few = 32;
        constexpr std::int64_t far_apart = 512;  // bytes: with fewer to a page, faults cost more than calls
        auto const count = static_cast<std::int64_t>(stretches_.size());
        if (!work_.route->patch || !status_ || count < few) return false;
        auto const first = stretches_.front().begin;
        auto const last = stretches_.back().end;
        if (last - first > count * far_apart) return false;
        auto const* const bytes = buffer(partition, round) - origin(partition, round);
        if (!work_.target->patch(work_.base, stretches_, bytes)) return false;
        std::uint64_t stored = 0;
        for (auto const& [from, to] : stretches_) stored += static_cast<std::uint64_t>(to - from);
        ++drain_times_.calls;
        drained_bytes_.fetch_add(stored, std::memory_order_relaxed);
        return true;
    }

    /// Room for the whole partition before its first round, then for each round.
    void reserve(std::int64_t begin, std::int64_t end, bool skip)
    {
        if (skip || work_.route->reserve == machine::Reserve::nothing) return;
        auto const& p = work_.schedule.partitions[own_];
        if (!reserved_) populate_ = work_.target->reserve(p.begin, p.end, work_.route->reserve);
        reserved_ = true;
        if (populate_) work_.target->populate(work_.base + begin, work_.base + end);
    }

    Place place_;
    Work work_;
    std::vector<pattern::Cursor> cursors_;  ///< partition by partition, one per track
    std::vector<std::int64_t> next_;        ///< per partition: the round where this rank has data next
    std::vector<std::uint64_t> received_;
    double copying_ = 0;

    std::size_t first_ = 0;  ///< partition to begin with

    // between nodes, on the main thread
    std::optional<Outbox> outbox_;
    std::optional<Inbox> inbox_;
    std::vector<pattern::Run> runs_;
    bool cleared_ = false;  ///< the tally is there
    bool put_all_ = false;
    std::atomic<std::uint64_t> arrived_ = UINT64_MAX;  ///< ticket before which other nodes' data is all there

    // of whichever thread holds busy_
    std::atomic<bool> busy_ = false;
    std::size_t own_ = 0;     ///< this aggregator's partition
    std::uint64_t done_ = 0;  ///< ticket of its next round
    std::uint64_t end_ = 0;   ///< 0: this rank drains nothing
    bool reserved_ = false;
    bool populate_ = false;
    core::Status status_;
    Times drain_times_;
    std::vector<target::Target::Stretch> stretches_;  ///< of the round that is being written

    std::atomic<std::uint64_t> drained_bytes_ = 0;
    std::atomic<bool> abandoned_ = false;
};

}  // namespace

std::unique_ptr<Run> start_write(Place const& place, Work work)
{
    return std::make_unique<WriteRun>(place, std::move(work));
}

void Tickets::pass(plan::Schedule const& schedule, bool through_lanes)
{
    ++step;
    for (std::size_t p = 0; p < schedule.partitions.size(); ++p) {
        auto const rounds = static_cast<std::uint64_t>(schedule.partitions[p].rounds);
        if (through_lanes)
            lanes[p] += rounds;
        else
            read += rounds;
    }
}

std::unique_ptr<Run> start(Place const& place, Work work)
{
    if (work.route->way == plan::Way::direct) return start_direct(place, std::move(work));
    if (work.writing) return start_write(place, std::move(work));
    if (work.route->networked()) return start_remote_read(place, std::move(work));
    return start_read(place, std::move(work));
}

}  // namespace tapioca::engine
