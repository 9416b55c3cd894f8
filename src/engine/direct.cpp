// Direct access: each rank reads or writes its own pieces. Pieces that are adjacent in the file are moved in one call.
// Small pieces that lie apart in memory are copied through a buffer that stays in the cache, because a system call
// takes longer for each piece than a copy.
#include <algorithm>
#include <atomic>
#include <climits>

#include "core/stopwatch.hpp"
#include "engine/run.hpp"
#include "engine/small_pieces.hpp"

namespace tapioca::engine {

namespace {

class DirectRun final : public Run {
public:
    explicit DirectRun(Context context)
        : context_(std::move(context)), status_(context_.target_status), received_(context_.variables, 0)
    {
        if (context_.spoiled || !status_ || context_.variable_buffers.empty()) return;
        vectors_.reserve(std::min<std::size_t>(context_.variable_buffers.size(), IOV_MAX));
        variables_.reserve(vectors_.capacity());
        lengths_.reserve(vectors_.capacity());
        if (context_.threaded)
            context_.worker->start([this] { move_all(); });
        else
            move_all();
    }
    DirectRun(DirectRun const&) = delete;
    DirectRun& operator=(DirectRun const&) = delete;
    ~DirectRun() override { context_.worker->wait(); }

    bool advance(bool /*helping*/) override { return true; }
    core::Status settle() override
    {
        context_.worker->wait();
        return status_;
    }
    [[nodiscard]] std::vector<std::uint64_t> const& received() const override { return received_; }
    [[nodiscard]] std::uint64_t drained_bytes() const override { return moved_bytes_.load(std::memory_order_relaxed); }
    [[nodiscard]] Times times() const override
    {
        Times times = times_;
        times.bytes = drained_bytes();
        return times;
    }

private:
    void move_all()
    {
        core::Stopwatch const watch(times_.draining);
        for (auto const& variable_buffer : context_.variable_buffers) {
            auto const move = [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
                if (status_) add(offset, variable_buffer.data + place, length, variable_buffer.variable);
            };
            pattern::LayoutCursor cursor(*variable_buffer.layout);
            for (pattern::PieceRun run; status_ && cursor.next(pattern::no_offset, run);) {
                bool const follows = run.count == 1 && !small_.empty() && small_.end() == run.offset;
                bool const apart = run.count > 1 && run.stride == run.length && !run.packed();
                if (run.length < SmallPieces::small_bytes && (follows || apart)) {
                    flush();
                    add_small(run, variable_buffer);
                } else {
                    flush_small();
                    pattern::each_piece(run, move);
                }
            }
            flush_small();
        }
        flush();
    }

    /// Pieces that touch in the file and lie apart in memory.
    void add_small(pattern::PieceRun run, VariableBuffer const& variable_buffer)
    {
        if (!small_.empty() && small_.end() != run.offset) flush_small();
        while (run.count > 0 && status_) {
            if (!small_.add(run, variable_buffer)) flush_small();
        }
    }

    void flush_small()
    {
        if (small_.empty()) return;
        auto const stretch = small_.bytes();
        core::Result<std::uint64_t> moved = stretch.size();
        if (context_.writing) {
            small_.gather();
            if (auto const written = context_.target->write(context_.base + small_.begin(), stretch); !written)
                moved = tl::unexpected(written.error());
        } else {
            moved = context_.target->read(context_.base + small_.begin(), stretch);
            if (moved) small_.scatter(*moved, received_);
        }
        if (!moved) core::keep_first(status_, tl::unexpected(moved.error()));
        moved_bytes_.fetch_add(moved.value_or(0), std::memory_order_relaxed);
        ++times_.calls;
        context_.exchange->beat();
        small_.clear();
    }

    void add(std::int64_t offset, std::byte* data, std::int64_t length, std::size_t variable)
    {
        if (!vectors_.empty() && (offset != end_ || vectors_.size() == IOV_MAX)) flush();
        if (vectors_.empty()) begin_ = offset;
        end_ = offset + length;
        auto const bytes = static_cast<std::size_t>(length);
        if (!vectors_.empty() && variables_.back() == variable &&
            static_cast<std::byte*>(vectors_.back().iov_base) + vectors_.back().iov_len == data) {
            vectors_.back().iov_len += bytes;
            return;
        }
        vectors_.push_back({data, bytes});
        variables_.push_back(variable);
    }

    void flush()
    {
        if (vectors_.empty()) return;
        if (status_) context_.writing ? write() : read();
        ++times_.calls;
        context_.exchange->beat();
        vectors_.clear();
        variables_.clear();
    }

    void write()
    {
        core::keep_first(status_, context_.target->write(context_.base + begin_, vectors_));
        if (status_) moved_bytes_.fetch_add(static_cast<std::uint64_t>(end_ - begin_), std::memory_order_relaxed);
    }

    void read()
    {
        lengths_.clear();
        for (auto const& vector : vectors_) lengths_.push_back(vector.iov_len);
        auto const got = context_.target->read(context_.base + begin_, vectors_);
        if (!got) {
            core::keep_first(status_, tl::unexpected(got.error()));
            return;
        }
        moved_bytes_.fetch_add(*got, std::memory_order_relaxed);
        auto left = *got;
        for (std::size_t i = 0; i < lengths_.size(); ++i) {
            auto const share = std::min<std::uint64_t>(left, lengths_[i]);
            received_[variables_[i]] += share;
            left -= share;
        }
    }

    Context context_;
    core::Status status_;
    std::vector<std::uint64_t> received_;
    Times times_;

    // a stretch of the file that is moved in one call
    std::int64_t begin_ = 0;
    std::int64_t end_ = 0;
    std::vector<iovec> vectors_;
    std::vector<std::size_t> variables_;
    std::vector<std::size_t> lengths_;

    SmallPieces small_;

    std::atomic<std::uint64_t> moved_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Run> start_direct(Context context)
{
    return std::make_unique<DirectRun>(std::move(context));
}

}  // namespace tapioca::engine
