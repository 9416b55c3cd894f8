#include "stage/stage.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "stage/marker.hpp"

namespace tapioca::stage {

namespace {

std::int64_t begin_of(pattern::Variable const& variable)
{
    auto begin = pattern::no_offset;
    for (auto const& layout : variable.layouts())
        if (layout.pieces() > 0) begin = std::min(begin, layout.base + layout.entries.front().offset);
    return begin;
}

std::int64_t end_of(pattern::Variable const& variable)
{
    std::int64_t end = 0;
    for (auto const& layout : variable.layouts())
        if (layout.pieces() > 0) end = std::max(end, layout.end());
    return end;
}

/// Adds the seconds of its life to `total`.
class Watch {
public:
    explicit Watch(double& total) : total_(total) {}
    Watch(Watch const&) = delete;
    Watch& operator=(Watch const&) = delete;
    ~Watch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
    double& total_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

void Stage::widen(Write const& write)
{
    begin_ = std::min(begin_, begin_of(write.variable) + write.shift);
    end_ = std::max(end_, end_of(write.variable) + write.shift);
    writer_.tell_range(begin_, end_);
}

/// The log beside the target. It is there as a whole or not at all, since the job may be killed meanwhile; and what it
/// replaces was left by a job that is over, as the marker is ours.
core::Result<Writer> Stage::go_on_beside() const
{
    auto const unfinished = unfinished_place(overflow_place_);
    (void)remove_log(unfinished);
    auto head = writer_.head();
    head.mapping = Mapping::process;
    head.rank = writer_.rank();
    auto made = Writer::create(unfinished, head);
    if (!made) return made;
    if (auto status = made->move_to(overflow_place_); !status) {
        (void)remove_log(unfinished);
        (void)remove_log(overflow_place_);
        return tl::unexpected(status.error());
    }
    return made;
}

core::Status Stage::append(std::function<core::Status(Writer&)> const& to)
{
    if (!overflow_) {
        auto const status = to(writer_);
        if (status || status.error().code != Errc::no_space) return status;
        auto made = go_on_beside();
        if (!made) {
            made.error().text = "the log's tier is full, and beside the file: " + made.error().text;
            return tl::unexpected(made.error());
        }
        overflow_ = std::move(*made);
    }
    auto status = to(*overflow_);
    if (status) ++totals.overflow;
    return status;
}

core::Status Stage::write(Write const& write)
{
    if (write.variable.bytes() == 0) return {};
    Watch const watch(totals.seconds);
    ++totals.requests;
    totals.bytes += write.variable.bytes();
    auto const epoch = enter(write.collective ? epoch_ : epoch_ + 1);
    auto const status = append(
        [&](Writer& writer) { return writer.append(write.variable, write.shift, write.data, epoch, write.number); });
    if (!status) return status;
    widen(write);
    bool const now = durable_ == Durable::write || (durable_ == Durable::collective && write.collective);
    return now ? sync() : core::Status();
}

core::Status Stage::write_through(Write const& write, std::function<core::Status()> const& through)
{
    if (write.variable.bytes() == 0) return {};
    ++totals.requests;
    totals.bytes += write.variable.bytes();
    ++totals.through;
    if (auto status = through(); !status) return status;
    widen(write);
    // Else older bytes of the log would win at the next flush.
    auto const epoch = enter(epoch_ + 2);
    auto status = append([&](Writer& writer) {
        return writer.append_stored(write.variable, write.shift, write.data, epoch, write.number);
    });
    return status && durable_ == Durable::write ? sync() : status;
}

core::Status Stage::forget(pattern::Variable const& variable, std::int64_t shift)
{
    if (empty()) return {};
    auto const epoch = enter(epoch_ + 2);
    return append([&](Writer& writer) { return writer.append_gone(variable, shift, epoch); });
}

bool Stage::take_warning()
{
    return overflow_ && !std::exchange(warned_, true);
}

/// Once more if it fails: nobody will come back for what is left.
template <class Attempt>
static core::Status twice(Attempt const& attempt)
{
    auto const status = attempt();
    return status ? status : attempt();
}

core::Status Stage::remove(bool first)
{
    auto status = first ? twice([&] { return writer_.check_place(); }) : core::Status();
    if (first && status) status = twice([&] { return remove_log(writer_.place()); });
    auto const beside = overflow_ ? twice([&] { return remove_log(overflow_place_); }) : core::Status();
    return status ? beside : status;
}

core::Result<std::shared_ptr<Content>> Stage::content() const
{
    auto content = std::make_shared<Content>();
    if (auto status = content->add(writer_.place(), {writer_.rank()}); !status) return tl::unexpected(status.error());
    if (auto status = writer_.check_place(); !status) return tl::unexpected(status.error());
    if (overflow_)
        if (auto status = content->add(overflow_place_); !status) return tl::unexpected(status.error());
    if (!content->damage().empty()) return core::fail(Errc::io, content->damage().front());
    return content;
}

Neighbours::Range Stage::range()
{
    auto range = neighbours_.range();
    return {std::min(range.begin, begin_), std::max(range.end, end_)};
}

core::Status Stage::look(std::int64_t begin, std::int64_t end, Visit const& visit)
{
    auto const around = neighbours_.range();
    bool const others = end > around.begin && begin < around.end;
    if (!others && (empty() || end <= begin_ || begin >= end_)) return {};
    // What others append is not known without looking.
    if (others || looked_at_ != entries()) {
        auto found = others ? neighbours_.content() : content();
        if (!found) return tl::unexpected(found.error());
        seen_ = std::move(*found);
        seen_batch_ = seen_->batch(0, UINT64_MAX - 1);
        looked_at_ = others ? UINT64_MAX : entries();
    }
    for (auto const& layout : seen_batch_.variables.front()->layouts()) {
        pattern::Cursor cursor(layout);
        cursor.seek(begin);
        for (pattern::Run run; cursor.next(end, run);)
            for (std::int64_t i = 0; i < run.count; ++i)
                visit(run.offset + i * run.stride, run.length, seen_batch_.data + run.buffer + i * run.buffer_stride);
    }
    return {};
}

core::Status Stage::sync()
{
    auto status = writer_.sync(!named_);
    if (status) named_ = true;
    if (status && overflow_) status = overflow_->sync(true);
    return status;
}

core::Status Stage::reset(bool empty)
{
    seen_.reset();
    seen_batch_ = {};
    looked_at_ = UINT64_MAX;
    begin_ = pattern::no_offset;
    end_ = 0;
    core::Status status;
    if (std::exchange(overflow_, std::nullopt)) status = twice([&] { return remove_log(overflow_place_); });
    core::keep_first(status, writer_.reset(epoch_, empty));
    return status;
}

}  // namespace tapioca::stage
