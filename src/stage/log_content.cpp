#include "stage/log_content.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "stage/covered.hpp"

namespace tapioca::stage {

struct LogContent::Log {
    LogPlace place;
    MappedFile meta;
    MappedFile data;
    std::optional<LogImage> image;
    int data_file = -1;  ///< open only while the log is being added

    /// The bytes of a request, or null if they are not there.
    [[nodiscard]] std::byte const* data_of(LogEntry const& entry) const
    {
        if (entry.position < head_bytes || entry.position + entry.data_bytes > data.bytes()) return nullptr;
        return data.data() + entry.position;
    }
    /// Whether they are there by now: the request may have been appended after its data file was mapped.
    [[nodiscard]] bool has_grown_to(LogEntry const& entry) const
    {
        auto const size = size_of(data_file, place.data());
        return size && entry.position >= head_bytes && entry.position + entry.data_bytes <= *size;
    }
};

namespace {

constexpr std::uint64_t entries_a_mark = 128;

LogEntry head_of(std::span<std::byte const> bytes)
{
    LogEntry entry;
    std::memcpy(&entry, bytes.data(), sizeof entry);
    return entry;
}

core::Result<MappedFile> map_all(int file, std::string const& path)
{
    auto const size = size_of(file, path);
    if (!size) return tl::unexpected(size.error());
    return MappedFile::of(file, 0, *size, false);
}

}  // namespace

/// The log's image and, with `data`, the data that its entries name. Null if the log belongs to another job, which left
/// it beside the target.
core::Result<std::shared_ptr<LogContent::Log>> LogContent::look_into(OpenLog held, LogPlace const& place, bool data,
                                                                     std::uint64_t begin)
{
    auto log = std::make_shared<Log>();
    log->place = place;
    log->data_file = held.data;
    Counters counters = {};
    bool const counted = read_all(held.meta, sizeof(Head), std::as_writable_bytes(std::span(&counters, 1))).has_value();
    auto meta = map_all(held.meta, place.meta());
    if (!meta) return tl::unexpected(meta.error());
    log->meta = std::move(*meta);
    auto image = LogImage::of(log->meta.span(), counted ? counters.meta_end : UINT64_MAX, begin);
    if (!image) return core::fail(image.error().code, place.meta() + ": " + image.error().text);
    log->image = std::move(*image);
    auto const& head = log->image->head();
    if (data) {
        auto mapped = map_all(held.data, place.data());
        if (!mapped) return tl::unexpected(mapped.error());
        log->data = std::move(*mapped);
        auto const data_head = read_head(log->data.span(), data_magic);
        if (!data_head) return core::fail(data_head.error().code, place.data() + ": " + data_head.error().text);
        // While a log is being emptied, one head may already have the next generation.
        bool const empty = log->image->ranks().empty();
        if (data_head->identity != head.identity || (data_head->generation != head.generation && !empty))
            return core::fail(Errc::io, fmt::format("{}: does not belong to {}", place.data(), place.meta()));
    }
    if (!logs_.empty() && head.identity != logs_.front()->image->head().identity) return nullptr;
    for (auto const& what : log->image->damage()) damage_.push_back(place.meta() + ": " + what);
    logs_.push_back(log);
    return log;
}

core::Status LogContent::add(LogPlace const& place, std::vector<std::uint32_t> const& ranks,
                             LogImage::EntryCursor const& from)
{
    auto const meta = open_private(place.meta(), false);
    if (!meta) return tl::unexpected(meta.error());
    auto const data = open_private(place.data(), false);
    if (!data) return tl::unexpected(data.error());
    return add({meta->get(), data->get()}, place, ranks, from);
}

core::Status LogContent::add(OpenLog held, LogPlace const& place, std::vector<std::uint32_t> const& ranks,
                             LogImage::EntryCursor const& from)
{
    auto const log = look_into(held, place, true, from.begin);
    if (!log) return tl::unexpected(log.error());
    if (!*log) return {};
    Counters counters;
    std::memcpy(&counters, (*log)->meta.data() + sizeof(Head), sizeof counters);
    doubtful_ = doubtful_ || counters.doubtful != 0;
    touched_ns_ = std::max(touched_ns_, counters.touched);
    for (auto const rank : ranks.empty() ? (*log)->image->ranks() : ranks) enter(**log, {log->get(), rank, from});
    return {};
}

core::Status LogContent::add_others(LogPlace const& place, std::uint32_t rank, std::uint64_t epoch, Cursors& passed)
{
    auto const meta = open_private(place.meta(), false);
    if (!meta) return tl::unexpected(meta.error());
    auto const log = look_into({meta->get(), -1}, place, false, 0);
    if (!log) return tl::unexpected(log.error());
    if (!*log) return {};
    for (auto const other : (*log)->image->ranks()) {
        if (other == rank) continue;
        enter(**log, {log->get(), other, passed[other], epoch});
        passed[other] = streams_.back().from;
    }
    return {};
}

void LogContent::enter(Log const& log, Stream stream)
{
    std::string what;
    read(stream, what);
    if (!what.empty()) damage_.push_back(log.place.meta() + ": " + what);
    // Requests after a gap must not win over older ones, so a log that continues a damaged one is left out.
    auto& whole = whole_.try_emplace(stream.rank, true).first->second;
    if (!whole) stream.sound = 0;
    whole = whole && what.empty();
    streams_.push_back(std::move(stream));
}

/// Reads the stream's entries up to the first damage, which is described in `what`.
void LogContent::read(Stream& stream, std::string& what)
{
    auto const& image = *stream.log->image;
    auto cursor = stream.from;
    stream.to = cursor;
    auto lost = UINT64_MAX;  // the first request whose data is missing and needed
    for (auto bytes = image.next(stream.rank, cursor, what); !bytes.empty();
         stream.to = cursor, bytes = image.next(stream.rank, cursor, what)) {
        auto const entry = head_of(bytes);
        auto const number = cursor.entries - 1;
        ++looked_at_;
        if (entry.epoch < stream.others_since) {
            stream.from = cursor;
            continue;
        }
        if (entry.flags & flag_gone) {
            if (auto const request = decode(bytes, image.seed()); !request) {
                stream.sound = number;
                what = fmt::format("rank {}: entry {}: {}", stream.rank, number, request.error().text);
                break;
            }
            hand_over(stream, cursor.entries);
            lost = UINT64_MAX;
            continue;
        }
        if (entry.epoch <= after_) continue;
        if (cursor.entries % entries_a_mark == 0) stream.marks.push_back({entry.epoch, cursor});
        if (stream.others_since != 0) continue;
        if (!stream.log->data_of(entry)) {
            if (stream.log->has_grown_to(entry)) {
                stream.sound = number;
                break;
            }
            lost = std::min(lost, number);
        }
        if (lost != UINT64_MAX) continue;
        first_epoch_ = std::min(first_epoch_, entry.epoch);
        ++stream.requests;
        stream.bytes += entry.data_bytes;
    }
    stream.sound = std::min(stream.sound, cursor.entries);  // somebody may still be appending
    bool const damaged = !what.empty() || !image.damage().empty();
    if (damaged && image.hands_over_behind(stream.rank, cursor)) {
        hand_over(stream, UINT64_MAX);
    } else if (lost != UINT64_MAX) {
        stream.sound = lost;
        what = fmt::format("rank {}: entry {}: its data is not there", stream.rank, lost);
    }
}

/// The rank has handed over this number of entries, and everything in the log that this one continues.
void LogContent::hand_over(Stream& stream, std::uint64_t entries)
{
    for (auto& before : streams_)
        if (before.rank == stream.rank) {
            before.gone = UINT64_MAX;
            before.requests = before.bytes = 0;
        }
    stream.gone = entries;
    stream.requests = stream.bytes = 0;
}

std::uint64_t LogContent::continued(LogPlace const& place) const
{
    for (auto const& log : logs_)
        if (log->place.meta() == place.meta()) return log->image->continued();
    return 0;
}

LogContent::Mark LogContent::end_of(std::uint32_t rank) const
{
    Mark mark;
    mark.generation = generation();
    bool first = true;
    for (auto const& stream : streams_)
        if (stream.rank == rank) (std::exchange(first, false) ? mark.log : mark.beside) = stream.to;
    return mark;
}

bool LogContent::has_handed_over(std::uint32_t rank) const
{
    return std::any_of(streams_.begin(), streams_.end(),
                       [&](Stream const& stream) { return stream.rank == rank && stream.gone > 0; });
}

std::uint64_t LogContent::generation() const
{
    return logs_.empty() ? 0 : logs_.front()->image->head().generation;
}

std::uint64_t LogContent::requests() const
{
    std::uint64_t sum = 0;
    for (auto const& stream : streams_) sum += stream.requests;
    return sum;
}

std::uint64_t LogContent::bytes() const
{
    std::uint64_t sum = 0;
    for (auto const& stream : streams_) sum += stream.bytes;
    return sum;
}

template <class Visit>
void LogContent::each(std::uint64_t first, std::uint64_t last, Visit const& visit)
{
    struct ContentWalk {
        Stream stream;
        LogImage::EntryCursor cursor;
        std::span<std::byte const> bytes = {};
        LogEntry entry = {};
        bool done = false;
        void step()
        {
            std::string what;
            do {
                bytes = stream.log->image->next(stream.rank, cursor, what);
                // Requests after a gap must not win over older ones.
                done = bytes.empty() || cursor.entries > stream.sound;
                if (!done) entry = head_of(bytes);
            } while (!done && (entry.flags & flag_gone));
        }
    };
    first = std::max(first, after_ + 1);
    std::vector<ContentWalk> walks;
    for (auto const& stream : streams_) {
        ContentWalk walk{stream, stream.from};
        auto const mark = std::partition_point(stream.marks.begin(), stream.marks.end(),
                                               [&](auto const& m) { return m.epoch < first; });
        if (mark != stream.marks.begin()) walk.cursor = std::prev(mark)->cursor;
        do walk.step();
        while (!walk.done && walk.entry.epoch < first);
        if (!walk.done) walks.push_back(walk);
    }
    // Within one epoch, the requests of the highest rank win. A rank that hands over writes its own; otherwise two such
    // ranks could each leave the same bytes to the other.
    std::stable_sort(walks.begin(), walks.end(), [](ContentWalk const& a, ContentWalk const& b) {
        return std::pair(a.stream.others_since == 0, a.stream.rank) <
               std::pair(b.stream.others_since == 0, b.stream.rank);
    });
    while (true) {
        auto epoch = UINT64_MAX;
        for (auto const& walk : walks)
            if (!walk.done) epoch = std::min(epoch, walk.entry.epoch);
        if (epoch > last || epoch == UINT64_MAX) return;
        for (auto& walk : walks)
            for (; !walk.done && walk.entry.epoch == epoch; walk.step())
                visit(walk.bytes, walk.entry, walk.stream,
                      data_to_write(walk.entry, walk.stream, walk.cursor.entries - 1));
    }
}

Batch LogContent::batch(std::uint64_t first, std::uint64_t last, std::vector<Extent> const& done)
{
    std::byte const* base = nullptr;
    for (auto const& log : logs_)
        if (!base || (log->data.data() && log->data.data() < base)) base = log->data.data();
    Merge merge(base);
    merge.expect(requests());
    each(first, last, [&](auto bytes, LogEntry const& entry, Stream const& stream, std::byte const* data) {
        if (data && entry.kind == EntryKind::contiguous)
            return merge.add(entry.offset, static_cast<std::int64_t>(entry.data_bytes), data);
        auto request = decode(bytes, stream.log->image->seed());
        if (!request)
            damage_.push_back(stream.log->place.meta() + ": " + request.error().text);
        else if (data)
            merge.add(std::move(request->layout), data);
        else
            merge.leave_out(std::move(request->layout));
    });
    auto const left_out = pattern::Variable::from_extents(0, done);
    for (auto const& layout : left_out.layouts()) merge.leave_out(layout);
    auto merged = merge.finish();
    Batch batch;
    batch.bytes = static_cast<std::uint64_t>(merged.bytes);
    batch.data = const_cast<std::byte*>(base);  // the engine does not write to it
    batch.variables = {std::make_shared<pattern::Variable const>(std::move(merged.layouts), merged.bytes)};
    batch.claims = batch.variables;
    if (!merged.left_out.empty())
        batch.claims.push_back(
            std::make_shared<pattern::Variable const>(pattern::Variable::from_extents(1, merged.left_out)));
    return batch;
}

/// Null for a request that is in the target and need not be written.
std::byte const* LogContent::data_to_write(LogEntry const& entry, Stream const& stream, std::uint64_t number) const
{
    if (stream.others_since != 0 || number < stream.gone) return nullptr;
    return entry.flags == 0 || again_ ? stream.log->data_of(entry) : nullptr;
}

std::vector<Claim> LogContent::claims(std::int64_t begin, std::int64_t end)
{
    std::vector<Claim> all;
    each(0, UINT64_MAX - 1, [&](auto bytes, LogEntry const& entry, Stream const& stream, std::byte const* data) {
        auto const request = decode(bytes, stream.log->image->seed());
        if (!request) return;
        auto const claim = [&](std::int64_t at, std::int64_t length, std::int64_t /*place*/) {
            all.push_back({at, at + length, entry.epoch, data != nullptr});
        };
        pattern::each_piece(request->layout, claim, begin, end);
    });
    std::vector<Claim> visible;
    Covered covered;
    for (auto claim = all.rbegin(); claim != all.rend(); ++claim)
        covered.take(claim->begin, claim->end, [&](std::int64_t from, std::int64_t to) {
            visible.push_back({from, to, claim->epoch, claim->in_log});
        });
    std::sort(visible.begin(), visible.end(), [](Claim const& a, Claim const& b) { return a.begin < b.begin; });
    return visible;
}

std::vector<std::string> LogContent::verify(std::function<void(std::uint64_t)> const& progress)
{
    std::vector<std::string> bad;
    for (auto const& log : logs_)
        if (auto const missing = log->image->missing_entries()) bad.push_back(log->place.meta() + ": " + *missing);
    for (auto& stream : streams_) {
        auto const& log = *stream.log;
        auto cursor = stream.from;
        std::string what;
        while (cursor.entries < stream.sound) {
            auto const bytes = log.image->next(stream.rank, cursor, what);
            if (bytes.empty()) break;
            auto const entry = head_of(bytes);
            if (entry.epoch <= after_ || (entry.flags & flag_gone)) continue;
            auto const number = cursor.entries - 1;
            auto const request = decode(bytes, log.image->seed());
            if (request && number < stream.gone) continue;  // the data is not needed
            if (!request) {
                bad.push_back(fmt::format("{}: rank {}: entry {}: {}", log.place.meta(), stream.rank, number,
                                          request.error().text));
                if (number >= stream.gone) stream.sound = number;
            } else if (checksum_of(log.data_of(entry), entry.data_bytes) != entry.data_checksum) {
                bad.push_back(fmt::format("{}: rank {}: entry {}: the {} bytes at {} do not match their checksum",
                                          log.place.data(), stream.rank, number, entry.data_bytes, entry.position));
                stream.sound = number;
            }
            if (progress) progress(entry.data_bytes);
        }
    }
    return bad;
}

}  // namespace tapioca::stage
