#include "stage/stage.hpp"

#include <algorithm>
#include <utility>

#include "core/stopwatch.hpp"
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

}  // namespace

void Stage::widen(Write const& write)
{
    begin_ = std::min(begin_, begin_of(write.variable) + write.shift);
    end_ = std::max(end_, end_of(write.variable) + write.shift);
    writer_.tell_range(begin_, end_);
}

/// Makes the log beside the target. It is there completely or not at all, since the job may be killed meanwhile. A log
/// that it replaces was left by a job that has ended, since the marker belongs to this job.
core::Result<LogWriter> Stage::go_on_beside() const
{
    auto const unfinished = unfinished_place(overflow_place_);
    (void)remove_log(unfinished);
    auto head = writer_.head();
    head.mapping = StageMapping::process;
    head.rank = writer_.rank();
    auto made = LogWriter::create(unfinished, head);
    if (!made) return made;
    if (auto status = made->move_to(overflow_place_); !status) {
        (void)remove_log(unfinished);
        (void)remove_log(overflow_place_);
        return tl::unexpected(status.error());
    }
    return made;
}

core::Status Stage::append(std::function<core::Status(LogWriter&)> const& to)
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
        writer_.tell_beside();
    }
    auto status = to(*overflow_);
    if (status) ++totals.overflow;
    if (status) writer_.tell_appended();
    return status;
}

core::Status Stage::write(Write const& write)
{
    if (write.variable.bytes() == 0) return {};
    core::Stopwatch const watch(totals.seconds);
    ++totals.requests;
    totals.bytes += write.variable.bytes();
    auto const epoch = enter(write.collective ? epoch_ : epoch_ + 1);
    auto const status = append(
        [&](LogWriter& writer) { return writer.append(write.variable, write.shift, write.data, epoch, write.number); });
    if (!status) return status;
    widen(write);
    return syncs(write) ? sync() : core::Status();
}

core::Status Stage::write_through(Write const& write, std::function<core::Status()> const& through)
{
    if (write.variable.bytes() == 0) return {};
    ++totals.requests;
    totals.bytes += write.variable.bytes();
    ++totals.through;
    bool const all_written = written_.entries == entries();
    settled_ = false;
    if (auto status = through(); !status) return status;
    writer_.changes()->note();
    widen(write);
    // Otherwise older bytes of the log would win at the next flush.
    auto const epoch = enter(write.collective ? epoch_ : epoch_ + 2);
    auto status = append([&](LogWriter& writer) {
        return writer.append_stored(write.variable, write.shift, write.data, epoch, write.number);
    });
    if (status && all_written) written_ = so_far();
    return status && syncs(write) ? sync() : status;
}

/// Pieces that are adjacent in the file are written with one call.
static core::Status write_all(target::Target& target, Overlay const& overlay)
{
    constexpr std::size_t most = 512;
    core::Status status;
    std::vector<iovec> pieces;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    auto const write = [&] {
        if (status && !pieces.empty()) status = target.write(begin, pieces);
        pieces.clear();
    };
    overlay.look(0, pattern::no_offset, [&](std::int64_t offset, std::int64_t length, std::byte const* data) {
        if (offset != end || pieces.size() == most) write();
        if (pieces.empty()) begin = offset;
        pieces.push_back({const_cast<std::byte*>(data), static_cast<std::size_t>(length)});
        end = offset + length;
    });
    write();
    return status;
}

core::Status Stage::hand_over(target::Target& target, PastTheLog next, bool lasting)
{
    if (written_.entries != entries()) {
        auto found = content_since(written_.mark);
        if (!found) return tl::unexpected(found.error());
        // Other ranks of this node may have newer bytes for the same place, which may be in the target by now.
        auto const epoch = (*found)->first_epoch();
        if (auto status = neighbours_.add_others_to(**found, writer_.rank(), epoch); !status) return status;
        totals.looked_at += (*found)->looked_at();
        mark_doubtful();  // other nodes may have newer bytes, too
        if (auto status = write_all(target, Overlay(std::move(*found))); !status) return status;
        written_ = so_far();
        settled_ = false;
    }
    bool const settle = lasting && !settled_;
    if (settle)
        if (auto status = target.sync(); !status) return status;
    if (next == PastTheLog::write && void_entries_ != entries()) {
        auto const epoch = enter(epoch_);
        auto status = append([&](LogWriter& writer) { return writer.append_gone(begin_, end_, epoch); });
        if (!status) return status;
        written_ = so_far();
        void_entries_ = entries();
        begin_ = pattern::no_offset;
        end_ = 0;
    }
    if (settle)
        if (auto status = sync(); !status) return status;
    if (settle) settled_ = true;
    return {};
}

bool Stage::take_warning()
{
    return overflow_ && !std::exchange(warned_, true);
}

/// Tries once more if it fails, because nobody will remove what is left.
template <class Attempt>
static core::Status twice(Attempt const& attempt)
{
    auto const status = attempt();
    return status ? status : attempt();
}

void Stage::finish(bool first)
{
    if (first) writer_.finish();
}

core::Status Stage::remove_overflow()
{
    if (!overflow_ && !overflow_left_) return {};
    auto const status = twice([&] { return remove_log(overflow_place_); });
    overflow_left_ = !status;
    return status;
}

core::Status Stage::remove(bool first)
{
    if (!first || writer_.is_removed()) return {};
    auto const status = twice([&] { return writer_.check_place(); });
    return status ? twice([&] { return remove_log(writer_.place()); }) : status;
}

Stage::Written Stage::so_far() const
{
    return {{writer_.cursor(), overflow_ ? overflow_->cursor() : LogImage::EntryCursor()}, entries()};
}

core::Result<std::shared_ptr<LogContent>> Stage::content() const
{
    return content_since({});
}

core::Result<std::shared_ptr<LogContent>> Stage::content_since(LogContent::Mark const& mark) const
{
    auto content = std::make_shared<LogContent>();
    // Uses the descriptors, whatever happened to the names.
    auto const add = [&](LogWriter const& writer, LogImage::EntryCursor const& from) {
        return content->add({writer.meta_descriptor(), writer.data_descriptor()}, writer.place(), {writer.rank()},
                            from);
    };
    if (auto status = add(writer_, mark.log); !status) return tl::unexpected(status.error());
    if (overflow_)
        if (auto status = add(*overflow_, mark.beside); !status) return tl::unexpected(status.error());
    if (!content->damage().empty()) return core::fail(Errc::io, content->damage().front());
    return content;
}

Stage::LoggedRange Stage::range()
{
    auto const others = neighbours_.state();
    return {std::min(others.begin, begin_), std::max(others.end, end_)};
}

core::Result<std::shared_ptr<LogContent>> Stage::everything() const
{
    auto content = std::make_shared<LogContent>();
    if (auto status = neighbours_.add_to(*content); !status) return tl::unexpected(status.error());
    return content;
}

core::Result<Surface*> Stage::surface(std::int64_t begin, std::int64_t end)
{
    if (!surface_) surface_.emplace();
    surface_->ask_for_everything_by([this] { return everything(); });
    std::uint64_t looked_at = 0;
    if (seen_ != entries()) {
        auto const news =
            surface_->update(writer_.rank(), [this](LogContent::Mark const& mark) { return content_since(mark); });
        if (!news) return tl::unexpected(news.error());
        looked_at += *news;
        seen_ = entries();
    }
    if (auto const others = neighbours_.state(); end > others.begin && begin < others.end) {
        auto const news = neighbours_.update(*surface_, writer_.rank());
        if (!news) return tl::unexpected(news.error());
        looked_at += *news;
    }
    totals.looked_at += looked_at;
    if (looked_at > 0) ++totals.overlays;
    return &*surface_;
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
    surface_.reset();
    seen_ = 0;
    neighbours_.begin_anew();
    written_ = {};
    void_entries_ = 0;
    settled_ = true;
    begin_ = pattern::no_offset;
    end_ = 0;
    // In this order, because the first log says that there is one beside the target.
    auto status = writer_.reset(epoch_, empty);
    core::keep_first(status, remove_overflow());
    overflow_.reset();
    return status;
}

}  // namespace tapioca::stage
