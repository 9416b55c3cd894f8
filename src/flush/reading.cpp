// Collective reads of a staged file: from the logs where this is possible, otherwise after a flush. All functions are
// collective.
#include <array>
#include <utility>

#include "flush/staging.hpp"

namespace tapioca::flush {

namespace {

/// A file that is read again and again is flushed once, instead of asking all ranks for every read.
constexpr int most_reads_without_flush = 16;

}  // namespace

core::Result<Staging::BeforeRead> Staging::look_before_read(std::int64_t begin, std::int64_t end)
{
    std::int64_t size = 0;
    if (auto* const target = file_.session->team().rank() == 0 ? file_.target() : nullptr)
        size = static_cast<std::int64_t>(target->size().value_or(0));
    std::array<std::int64_t, 5> values = {begin, -end, stage_.begin(), -stage_.end(), -size};
    if (auto status = file_.session->agreement().least(values); !status) return tl::unexpected(status.error());
    BeforeRead before;
    before.range = {values[0], -values[1]};
    auto const staged_end = -values[3];
    before.longer = staged_end > -values[4] && before.range.end > -values[4];
    before.touches = before.range.begin < staged_end && (values[2] < before.range.end || before.longer);
    return before;
}

core::Result<ReadFrom> Staging::prepare_read(std::int64_t begin, std::int64_t end, bool mixed, Wanted const& wanted)
{
    logged_read_.reset();
    auto const before = look_before_read(begin, end);
    if (!before) return tl::unexpected(before.error());
    if (!before->touches) return ReadFrom::file;
    if (reads_since_flush_ < most_reads_without_flush) {
        LoggedRead read(*file_.session, stage_, before->range, file_.storage.coherent);
        auto const found = read.find(failed_ ? wanted() : std::nullopt);  // all ranks hear of it when they flush
        if (!found) return tl::unexpected(found.error());
        bool const ends_early = before->longer && *found != ReadFrom::logs;  // the file itself does
        if (*found && !ends_early && (mixed || *found != ReadFrom::both)) {
            ++reads_since_flush_;
            ++reads_without_flush_;
            if (*found != ReadFrom::file) logged_read_.emplace(std::move(read));
            return **found;
        }
    }
    auto const status = flush(false);
    if (!status) return tl::unexpected(status.error());
    return ReadFrom::file;
}

core::Status Staging::read_logs(core::Status const& local)
{
    if (!logged_read_) return file_.session->agreement().agree(local);
    auto read = std::move(*logged_read_);
    logged_read_.reset();
    return read.get(local, fetched_);
}

}  // namespace tapioca::flush
