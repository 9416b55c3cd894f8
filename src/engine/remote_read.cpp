// Reading across nodes: each partition's aggregator loads its rounds; the ranks of its node copy from its buffers,
// other nodes ask for their pieces, a node's requests for a round in one message, and get them in one.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <optional>

#include "engine/copy.hpp"
#include "engine/outbox.hpp"
#include "engine/run.hpp"

namespace tapioca::engine {

namespace {

class RemoteReadRun final : public Run {
public:
    RemoteReadRun(Place const& place, Work work)
        : place_(place), work_(std::move(work)), received_(work_.variables, 0), status_(work_.target_status)
    {
        auto const partitions = work_.schedule.partitions.size();
        lanes_.resize(partitions);
        for (std::size_t p = 0; p < partitions; ++p) {
            auto& lane = lanes_[p];
            lane.home = work_.site->is_home(p);
            place_.exchange->raise_drained(p, ticket(p, 0));
            lane.taking.reserve(work_.tracks.size());
            for (auto const& track : work_.tracks) {
                lane.taking.emplace_back(*track.layout);
                lane.taking.back().seek(work_.schedule.partitions[p].begin - work_.base);
            }
            lane.asking = lane.taking;
            lane.to_take = next_round(p, lane.taking);
            lane.to_ask = lane.to_take;
            publish(p);
        }
        outbox_.emplace(place_, work_);
        auto const& aggregators = work_.route->ranks;
        auto const mine = std::find(aggregators.begin(), aggregators.end(), place_.rank);
        if (mine == aggregators.end()) return;
        own_ = static_cast<std::size_t>(mine - aggregators.begin());
        end_ = work_.schedule.partitions[own_].rounds;
        if (end_ == 0) return;
        add_feeders();
        update_wanted();
        if (work_.threaded && !one_sided()) place_.worker->start([this] { load_all(); });
    }
    RemoteReadRun(RemoteReadRun const&) = delete;
    RemoteReadRun& operator=(RemoteReadRun const&) = delete;
    ~RemoteReadRun() override
    {
        stop_worker();
        if (!place_.net->messages->idle()) place_.net->messages->drop();
    }

    bool advance(bool helping) override
    {
        if (one_sided()) {
            if (helping && !got_all_) get_all();
            return true;  // without the others, who wait for it inside MPI, nothing moves
        }
        for (;;) {
            bool moved = place_.net->messages->poll();
            for (std::size_t p = 0; p < lanes_.size(); ++p) moved = serve_self(p) || moved;
            moved = outbox_->pump() || moved;
            for (auto& feeder : feeders_) moved = answer(feeder) || moved;
            if (done()) return true;
            // Where there is a worker, the main thread is there for the messages.
            if (!moved && (!helping || work_.threaded || !load_ready())) return false;
        }
    }

    core::Status settle() override
    {
        stop_worker();
        return status_;
    }

    [[nodiscard]] std::vector<std::uint64_t> const& received() const override { return received_; }
    [[nodiscard]] std::uint64_t drained_bytes() const override { return loaded_bytes_.load(std::memory_order_relaxed); }
    [[nodiscard]] double copying() const override { return copying_; }
    [[nodiscard]] Times times() const override
    {
        Times times = times_;
        times.copying = copying_;
        times.bytes = drained_bytes();
        return times;
    }

private:
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

    /// What this rank asked for in a round.
    struct Asked {
        struct Part {
            std::size_t track;
            std::int64_t end;                 ///< pieces before this offset
            std::optional<std::uint64_t> at;  ///< where in the reply; nothing: read it oneself
        };
        std::int64_t round;
        std::vector<Part> parts;
    };
    struct Lane {
        bool home = false;
        std::vector<pattern::Cursor> taking;  ///< one per track
        std::vector<pattern::Cursor> asking;  ///< runs ahead, where the aggregator is elsewhere
        std::int64_t to_take = none;
        std::int64_t to_ask = none;
        std::deque<Asked> asked;
    };
    struct Feeder {
        int rank;
        std::span<std::byte> landing;
        std::size_t request_bytes;
        wire::Heading heading{};
        bool landed = false;
        bool replying = false;
        std::int64_t wants = -1;  ///< the round it wants next, or none; -1: not known yet
    };

    [[nodiscard]] std::uint64_t ticket(std::size_t partition, std::int64_t round) const
    {
        return work_.tickets.lanes[partition] + static_cast<std::uint64_t>(round);
    }
    [[nodiscard]] std::size_t buffer_of(std::int64_t round) const
    {
        return static_cast<std::size_t>(round % work_.route->buffers);
    }
    [[nodiscard]] std::byte* buffer(std::size_t partition, std::int64_t round) const
    {
        return place_.buffer(*work_.site, partition, buffer_of(round));
    }
    [[nodiscard]] std::int64_t origin(std::size_t partition, std::int64_t round) const
    {
        return work_.schedule.partitions[partition].origin + round * work_.schedule.round_bytes - work_.base;
    }
    [[nodiscard]] std::int64_t begin(std::size_t partition, std::int64_t round) const
    {
        return work_.schedule.round_begin(partition, round) - work_.base;
    }
    [[nodiscard]] std::int64_t end(std::size_t partition, std::int64_t round) const
    {
        return work_.schedule.round_end(partition, round) - work_.base;
    }
    [[nodiscard]] bool one_sided() const { return work_.route->network.transport == plan::Transport::rma; }
    /// Loaded, or the reply has come.
    [[nodiscard]] bool is_there(std::size_t partition, std::int64_t round) const
    {
        return place_.exchange->drained(partition).load(std::memory_order_acquire) > ticket(partition, round);
    }
    [[nodiscard]] std::int64_t next_round(std::size_t p, std::vector<pattern::Cursor> const& cursors) const
    {
        auto position = pattern::no_offset;
        for (auto const& cursor : cursors) position = std::min(position, cursor.position());
        bool const more = position < work_.schedule.partitions[p].end - work_.base;
        return more ? work_.schedule.round_of(p, position + work_.base) : none;
    }
    [[nodiscard]] std::uint64_t ticket_or_end(std::size_t p, std::int64_t round) const
    {
        return ticket(p, round == none ? work_.schedule.partitions[p].rounds : round);
    }

    /// Tells the node what this rank needs next, and up to where it has asked.
    void publish(std::size_t p)
    {
        auto const& lane = lanes_[p];
        place_.exchange->set_taken(p, ticket_or_end(p, lane.to_take));
        place_.exchange->set_filled(p, ticket_or_end(p, lane.home ? lane.to_take : lane.to_ask));
    }

    [[nodiscard]] bool done() const
    {
        auto const through = [](Lane const& lane) { return lane.to_take == none; };
        return std::all_of(lanes_.begin(), lanes_.end(), through) && outbox_->done() && all_answered() &&
               (end_ == 0 || place_.exchange->least_filled(own_) >= ticket(own_, end_));
    }
    [[nodiscard]] bool all_answered() const
    {
        return std::all_of(feeders_.begin(), feeders_.end(),
                           [](Feeder const& feeder) { return feeder.wants == none && !feeder.replying; });
    }

    // as one who reads

    /// Asks for and takes what can be. True if something was done.
    bool serve_self(std::size_t p)
    {
        auto& lane = lanes_[p];
        bool any = false;
        while (!lane.home && lane.to_ask != none && slot_is_free(p, lane.to_ask)) {
            ask(p);
            any = true;
        }
        while (lane.to_take != none) {
            auto const round = lane.to_take;
            bool const asked = lane.home || (!lane.asked.empty() && lane.asked.front().round == round);
            if (!asked || !is_there(p, round)) break;
            take(p);
            any = true;
        }
        return any;
    }
    [[nodiscard]] bool slot_is_free(std::size_t p, std::int64_t round) const
    {
        return ticket(p, round) < place_.exchange->least_taken(p) + static_cast<std::uint64_t>(work_.route->buffers);
    }
    void ask(std::size_t p)
    {
        auto& lane = lanes_[p];
        Asked asked{lane.to_ask, {}};
        for (std::size_t t = 0; t < lane.asking.size(); ++t) {
            auto& cursor = lane.asking[t];
            auto const add = [&] {
                if (!runs_.empty())
                    asked.parts.push_back({t, cursor.position(), outbox_->add_request(p, asked.round, runs_)});
                runs_.clear();
            };
            for (pattern::Run run; cursor.next(end(p, asked.round), run);) {
                runs_.push_back(run);
                if (runs_.size() == most_runs) add();
            }
            add();
        }
        lane.asked.push_back(std::move(asked));
        lane.to_ask = next_round(p, lane.asking);
        publish(p);
    }

    void take(std::size_t p)
    {
        Stopwatch const watch(copying_);
        auto& lane = lanes_[p];
        auto const round = lane.to_take;
        if (lane.home) {
            auto const valid = place_.exchange->touched(p, buffer_of(round)).load(std::memory_order_relaxed);
            auto const limit = begin(p, round) + static_cast<std::int64_t>(valid);
            for (std::size_t t = 0; t < lane.taking.size(); ++t)
                for (pattern::Run run; lane.taking[t].next(limit, run); count(t, run))
                    copy_out(buffer(p, round), origin(p, round), run, work_.tracks[t].data);
        } else {
            take_reply(lane, outbox_->reply(p, round), begin(p, round), end(p, round));
        }
        for (auto& cursor : lane.taking)
            if (cursor.position() < end(p, round)) cursor.seek(end(p, round));  // the file ended before
        lane.to_take = next_round(p, lane.taking);
        publish(p);
    }
    void take_reply(Lane& lane, std::span<std::byte const> reply, std::int64_t begin, std::int64_t end)
    {
        std::uint64_t valid = 0;
        std::memcpy(&valid, reply.data(), sizeof valid);
        auto const limit = begin + static_cast<std::int64_t>(valid);
        for (auto const& part : lane.asked.front().parts) {
            auto& cursor = lane.taking[part.track];
            auto const& track = work_.tracks[part.track];
            if (!part.at) {
                read_oneself(cursor, track, std::min(part.end, end));
                continue;
            }
            std::byte const* from = reply.data() + sizeof valid + *part.at;
            for (pattern::Run run; cursor.next(std::min(part.end, limit), run); count(part.track, run))
                from = scatter(from, run, track.data);
            if (cursor.position() < std::min(part.end, end)) cursor.seek(std::min(part.end, end));
        }
        lane.asked.pop_front();
    }
    void count(std::size_t track, pattern::Run const& run)
    {
        received_[work_.tracks[track].variable] += static_cast<std::uint64_t>(run.length * run.count);
    }

    /// A request that found no room. Its round is waited for all the same: till then the slot belongs to the round.
    void read_oneself(pattern::Cursor& cursor, Track const& track, std::int64_t limit)
    {
        for (pattern::Run run; cursor.next(limit, run);)
            for (std::int64_t i = 0; i < run.count; ++i) {
                if (!work_.target && status_) work_.target = work_.open_target(status_);
                if (!work_.target) continue;
                auto const got = work_.target->read(
                    work_.base + run.offset + i * run.stride,
                    std::span(track.data + run.buffer + i * run.buffer_stride, static_cast<std::size_t>(run.length)));
                if (got)
                    received_[track.variable] += *got;
                else
                    core::keep_first(status_, tl::unexpected(got.error()));
            }
    }

    // as the aggregator

    void add_feeders()
    {
        auto const& network = work_.route->network;
        for (auto const& [node, rank, landing] : work_.site->feeders(own_)) {
            auto const at = static_cast<std::size_t>(node);
            feeders_.push_back(
                {rank, {place_.buffers + landing[0], network.slot_bytes[at]}, network.request_bytes[at]});
        }
        if (!one_sided())
            for (auto& feeder : feeders_) expect(feeder);  // they move no more
    }
    void expect(Feeder& feeder)
    {
        auto const room = feeder.landing.first(feeder.request_bytes);
        place_.net->messages->receive(room, feeder.rank, tag_gathered, [this, &feeder] {
            std::memcpy(&feeder.heading, feeder.landing.data(), sizeof feeder.heading);
            feeder.landed = feeder.heading.round >= 0;
            if (feeder.landed)
                feeder.wants = feeder.heading.round;
            else
                await_next(feeder);
            update_wanted();
        });
    }
    void await_next(Feeder& feeder)
    {
        feeder.wants = feeder.heading.following < end_ ? feeder.heading.following : none;
        if (feeder.wants != none) expect(feeder);
    }

    /// The first round that another node may want; known for sure once all have said something.
    void update_wanted()
    {
        auto least = end_;
        bool sure = true;
        for (auto const& feeder : feeders_) {
            least = std::min(least, std::max<std::int64_t>(0, feeder.wants));
            sure = sure && feeder.wants >= 0;
        }
        wanted_.store(ticket(own_, least), std::memory_order_release);
        if (sure) sure_.store(true, std::memory_order_release);
    }

    /// Answers a request whose round is loaded. True if it did.
    bool answer(Feeder& feeder)
    {
        if (!feeder.landed || feeder.replying || !is_there(own_, feeder.heading.round)) return false;
        auto const reply = pack_reply(feeder);
        feeder.landed = false;
        feeder.replying = true;
        place_.net->messages->send(reply, feeder.rank, tag_reply, [&feeder] { feeder.replying = false; });
        await_next(feeder);
        update_wanted();
        place_.exchange->beat();
        return true;
    }
    std::span<std::byte const> pack_reply(Feeder const& feeder)
    {
        Stopwatch const watch(copying_);
        auto const round = feeder.heading.round;
        auto const reply = feeder.landing.subspan(feeder.request_bytes);
        auto const valid = place_.exchange->touched(own_, buffer_of(round)).load(std::memory_order_relaxed);
        std::memcpy(reply.data(), &valid, sizeof valid);
        std::span<std::byte const> entries = feeder.landing.subspan(sizeof(wire::Heading), feeder.heading.bytes);
        while (!entries.empty()) {
            auto const entry = wire::take_entry(entries);
            if (entry.heading.data_bytes == 0) continue;  // its reply found no room
            wire::Runs runs(entry.runs);
            auto* const to = reply.data() + sizeof valid + entry.heading.data_at;
            for (pattern::Run run; runs.next(run);) copy_out(buffer(own_, round), 0, run, to);
        }
        return reply.first(sizeof valid + feeder.heading.reply);
    }

    /// Loads the next round that somebody wants, if its buffer is free and no other thread is at it.
    bool load_ready()
    {
        if (end_ == 0 || busy_.exchange(true, std::memory_order_acquire)) return false;
        auto const first = ticket(own_, 0);
        auto const last = ticket(own_, end_);
        auto const wanted = std::min(place_.exchange->least_filled(own_), wanted_.load(std::memory_order_acquire));
        auto const loaded = place_.exchange->drained(own_).load(std::memory_order_relaxed);
        bool const sure = sure_.load(std::memory_order_acquire);
        bool any = false;
        if (wanted < last && wanted >= loaded && (sure || work_.every_byte)) {
            load(static_cast<std::int64_t>(wanted - first));
            any = true;
        } else if (work_.every_byte &&
                   loaded < std::min(last, wanted + static_cast<std::uint64_t>(work_.route->buffers))) {
            load(static_cast<std::int64_t>(loaded - first));  // all of it will be wanted
            any = true;
        }
        busy_.store(false, std::memory_order_release);
        return any;
    }
    void load(std::int64_t round)
    {
        Stopwatch const watch(times_.draining);
        auto const from = begin(own_, round);
        auto const bytes = static_cast<std::size_t>(end(own_, round) - from);
        core::Result<std::uint64_t> got = 0;  // whoever could not open the file hands out nothing
        if (work_.target)
            got = work_.target->read(work_.base + from,
                                     std::span(buffer(own_, round) + (from - origin(own_, round)), bytes));
        if (!got) core::keep_first(load_status_, tl::unexpected(got.error()));
        place_.exchange->touched(own_, buffer_of(round)).store(got.value_or(0), std::memory_order_relaxed);
        place_.exchange->drained(own_).store(ticket(own_, round) + 1, std::memory_order_release);
        loaded_bytes_.fetch_add(got.value_or(0), std::memory_order_relaxed);
        ++times_.rounds;
        ++times_.calls;
    }
    /// On the worker.
    void load_all()
    {
        Backoff backoff(true);
        while (!abandoned_.load(std::memory_order_relaxed)) {
            if (load_ready())
                backoff = Backoff(true);
            else
                backoff.pause();
        }
    }
    void stop_worker()
    {
        abandoned_.store(true, std::memory_order_relaxed);
        place_.worker->wait();
        core::keep_first(status_, load_status_);
    }

    /// One-sided: requests are put, replies got; all ranks go through the rounds together.
    void get_all()
    {
        wait_until(*place_.patience, "the other ranks to start the step", [&] { return place_.net->tally->done(); });
        using Row = comm::Window::Row;
        auto& window = *place_.net->window;
        wire::Heading const nothing{-1, 0, 0, 0, 0};
        std::int64_t rounds = 0;
        for (auto const& partition : work_.schedule.partitions) rounds = std::max(rounds, partition.rounds);
        for (std::int64_t round = 0; round < rounds; ++round) {
            for (auto& feeder : feeders_) std::memcpy(feeder.landing.data(), &nothing, sizeof nothing);
            for (std::size_t p = 0; p < lanes_.size(); ++p)
                if (!lanes_[p].home && lanes_[p].to_ask == round) {
                    wait_until(*place_.patience, "a free slot", [&] { return slot_is_free(p, round); });
                    ask(p);
                }
            window.fence(Row::first);
            outbox_->put_requests(round);
            window.fence(Row::between);
            if (round < end_) serve_round(round);
            window.fence(Row::between);
            outbox_->get_replies(round);
            window.fence(Row::last);
            outbox_->free_round(round);
            for (std::size_t p = 0; p < lanes_.size(); ++p)
                if (lanes_[p].to_take == round) {
                    wait_until(*place_.patience, "a round of the file", [&] { return is_there(p, round); });
                    take(p);
                }
        }
        got_all_ = true;
    }
    void serve_round(std::int64_t round)
    {
        bool wanted = place_.exchange->least_taken(own_) == ticket(own_, round);
        for (auto& feeder : feeders_) {
            std::memcpy(&feeder.heading, feeder.landing.data(), sizeof feeder.heading);
            wanted = wanted || feeder.heading.round == round;
        }
        // The ranks of this node are done with the buffer's round before: they were before the last fence but two.
        if (wanted) load(round);
        for (auto const& feeder : feeders_)
            if (feeder.heading.round == round) (void)pack_reply(feeder);
        place_.exchange->drained(own_).store(ticket(own_, round) + 1, std::memory_order_release);
    }

    Place place_;
    Work work_;
    std::vector<Lane> lanes_;
    std::vector<std::uint64_t> received_;
    double copying_ = 0;
    core::Status status_;
    std::optional<Outbox> outbox_;
    std::vector<pattern::Run> runs_;
    bool got_all_ = false;

    // as the aggregator of a partition
    std::size_t own_ = 0;
    std::int64_t end_ = 0;  ///< its rounds; 0: this rank loads nothing
    std::vector<Feeder> feeders_;
    std::atomic<std::uint64_t> wanted_ = UINT64_MAX;  ///< ticket of the first round that another node may want
    std::atomic<bool> sure_ = false;

    // of whichever thread holds busy_
    std::atomic<bool> busy_ = false;
    core::Status load_status_;
    Times times_;
    std::atomic<std::uint64_t> loaded_bytes_ = 0;
    std::atomic<bool> abandoned_ = false;
};

}  // namespace

std::unique_ptr<Run> start_remote_read(Place const& place, Work work)
{
    return std::make_unique<RemoteReadRun>(place, std::move(work));
}

}  // namespace tapioca::engine
