// Reading through shared buffers on one node: readers read the file block by block, and every rank copies out what it
// needs. Reads take no inode lock, so every reader that would have to wait reads the next block itself.
#include <algorithm>
#include <atomic>

#include "core/stopwatch.hpp"
#include "engine/copy.hpp"
#include "engine/run.hpp"

namespace tapioca::engine {

namespace {

class ReadRun final : public Run {
public:
    explicit ReadRun(Context context)
        : context_(std::move(context)),
          slots_(static_cast<std::uint64_t>(context_.route->aggregators * context_.route->buffers)),
          begin_(context_.tickets.read),
          end_(begin_ + static_cast<std::uint64_t>(context_.schedule.partitions[0].rounds)),
          received_(context_.variables, 0)
    {
        auto const& readers = context_.route->ranks;
        main_.status = context_.target_status;
        reader_ = std::find(readers.begin(), readers.end(), context_.rank) != readers.end();
        for (auto const& variable_buffer : context_.variable_buffers) cursors_.emplace_back(*variable_buffer.layout);
        publish();
        // One thread reads ahead while the application computes.
        if (context_.threaded && context_.rank == readers.front()) context_.worker->start([this] { read_ahead(); });
    }
    ReadRun(ReadRun const&) = delete;
    ReadRun& operator=(ReadRun const&) = delete;
    ~ReadRun() override { stop_worker(); }

    bool advance(bool helping) override
    {
        while (next_ < end_) {
            if (ready(next_))
                take(next_);
            else if (!helping || !pull(main_))
                return false;
        }
        while (helping && pull(main_)) {}  // a reader goes on for the ranks that may not read themselves
        return !reader_ || context_.exchange->claimed().load(std::memory_order_relaxed) >= end_ ||
               context_.exchange->least_consumed() >= end_;
    }

    core::Status settle() override
    {
        stop_worker();
        core::keep_first(main_.status, ahead_.status);
        return main_.status;
    }

    [[nodiscard]] std::vector<std::uint64_t> const& received() const override { return received_; }
    [[nodiscard]] std::uint64_t drained_bytes() const override { return pulled_bytes_.load(std::memory_order_relaxed); }
    [[nodiscard]] double copying() const override { return copying_; }
    [[nodiscard]] Times times() const override
    {
        Times times = main_.times;
        times.draining += ahead_.times.draining;
        times.rounds += ahead_.times.rounds;
        times.calls += ahead_.times.calls;
        times.copying = copying_;
        times.bytes = drained_bytes();
        return times;
    }

private:
    /// What one thread of this rank has read.
    struct Puller {
        core::Status status;
        Times times;
    };

    void stop_worker()
    {
        abandoned_.store(true, std::memory_order_relaxed);
        context_.worker->wait();
    }

    [[nodiscard]] std::int64_t round(std::uint64_t ticket) const { return static_cast<std::int64_t>(ticket - begin_); }
    [[nodiscard]] std::size_t slot(std::uint64_t ticket) const
    {
        return static_cast<std::size_t>((ticket - begin_) % slots_);
    }
    [[nodiscard]] std::byte* buffer(std::uint64_t ticket) const
    {
        return context_.buffer(0, 0) + slot(ticket) * context_.route->round_bytes;
    }
    [[nodiscard]] bool ready(std::uint64_t ticket) const
    {
        return context_.exchange->block(slot(ticket)).ready.load(std::memory_order_acquire) == ticket + 1;
    }

    /// Finds the next block that this rank needs, and marks all blocks before it as consumed.
    void publish()
    {
        auto position = pattern::no_offset;
        for (auto const& cursor : cursors_) position = std::min(position, cursor.position());
        next_ = position == pattern::no_offset
                    ? end_
                    : begin_ + static_cast<std::uint64_t>(context_.schedule.round_of(0, position + context_.base));
        context_.exchange->set_consumed(next_);
    }

    /// Copies this rank's part out of a block.
    void take(std::uint64_t ticket)
    {
        core::Stopwatch const watch(copying_);
        auto const begin = context_.schedule.round_begin(0, round(ticket)) - context_.base;
        auto const end = context_.schedule.round_end(0, round(ticket)) - context_.base;
        auto const valid =
            static_cast<std::int64_t>(context_.exchange->block(slot(ticket)).valid.load(std::memory_order_relaxed));
        for (std::size_t t = 0; t < cursors_.size(); ++t) {
            auto const& variable_buffer = context_.variable_buffers[t];
            for (pattern::PieceRun run; cursors_[t].next(begin + valid, run);) {
                copy_out(buffer(ticket), begin, run, variable_buffer.data);
                received_[variable_buffer.variable] += static_cast<std::uint64_t>(run.length * run.count);
            }
            if (cursors_[t].position() < end) cursors_[t].seek(end);  // the file ended before
        }
        publish();
    }

    /// Reads the next block that no rank has claimed. Returns false if there is none, or if no buffer is free.
    bool pull(Puller& puller)
    {
        if (!reader_) return false;
        for (;;) {
            auto const consumed = context_.exchange->least_consumed();
            auto const ticket = std::max(context_.exchange->claimed().load(std::memory_order_relaxed), consumed);
            if (ticket >= end_) return false;
            if (ticket >= begin_ + slots_ && consumed + slots_ <= ticket) return false;
            auto& block = context_.exchange->block(slot(ticket));
            auto holder = block.holder.load(std::memory_order_acquire);
            if (holder <= ticket) {
                // A block that no rank needs is skipped, although a slow reader may still be filling its buffer.
                if (block.ready.load(std::memory_order_acquire) != holder) return false;
                if (!block.holder.compare_exchange_strong(holder, ticket + 1, std::memory_order_acq_rel)) continue;
                context_.exchange->raise_claimed(ticket + 1);
                fetch(ticket, puller);
                return true;
            }
            context_.exchange->raise_claimed(ticket + 1);  // another rank has it, but has not raised the counter yet
        }
    }

    void fetch(std::uint64_t ticket, Puller& puller)
    {
        core::Stopwatch const watch(puller.times.draining);
        auto const begin = context_.schedule.round_begin(0, round(ticket));
        auto const bytes = static_cast<std::size_t>(context_.schedule.round_end(0, round(ticket)) - begin);
        core::Result<std::uint64_t> got = 0;  // a rank that could not open the file provides empty blocks
        if (context_.target) got = context_.target->read(begin, std::span(buffer(ticket), bytes));
        if (!got) core::keep_first(puller.status, tl::unexpected(got.error()));
        auto& block = context_.exchange->block(slot(ticket));
        block.valid.store(got.value_or(0), std::memory_order_relaxed);
        block.ready.store(ticket + 1, std::memory_order_release);
        pulled_bytes_.fetch_add(got.value_or(0), std::memory_order_relaxed);
        ++puller.times.rounds;
        ++puller.times.calls;
    }

    void read_ahead()
    {
        Backoff backoff(true);
        while (!abandoned_.load(std::memory_order_relaxed) &&
               context_.exchange->claimed().load(std::memory_order_relaxed) < end_) {
            if (pull(ahead_))
                backoff = Backoff(true);
            else
                backoff.pause();
        }
    }

    Context context_;
    std::uint64_t slots_;
    std::uint64_t begin_;  ///< tickets of this step's blocks
    std::uint64_t end_;
    std::uint64_t next_ = 0;  ///< ticket of the block that this rank needs next
    bool reader_ = false;
    std::vector<pattern::LayoutCursor> cursors_;
    std::vector<std::uint64_t> received_;
    double copying_ = 0;
    Puller main_;
    Puller ahead_;  ///< used by the I/O thread
    std::atomic<std::uint64_t> pulled_bytes_ = 0;
    std::atomic<bool> abandoned_ = false;
};

}  // namespace

std::unique_ptr<Run> start_read(Context context)
{
    return std::make_unique<ReadRun>(std::move(context));
}

}  // namespace tapioca::engine
