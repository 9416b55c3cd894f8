#include "subfile/extent_map.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <fmt/core.h>

namespace tapioca::subfile {

namespace {

constexpr std::uint64_t most_chunks = std::uint64_t{1} << 62;

tl::unexpected<core::Failure> contradiction(std::string const& what)
{
    return core::fail(Errc::io, "the index contradicts itself: " + what);
}

bool stays_in_range(ChunkSeries const& chunk)
{
    auto const& form = *chunk.form;
    return chunk.begin() >= 0 && form.end <= stage::longest_file - std::max<std::int64_t>(chunk.shift, 0) &&
           form.data_bytes <= static_cast<std::uint64_t>(stage::longest_file) - chunk.position;
}

/// In this order, later chunks win.
auto order_of(ChunkSeries const& chunk)
{
    return std::tuple(chunk.epoch, chunk.form->subfile, chunk.position);
}

}  // namespace

ChunkSeries::Numbers ChunkSeries::touched(std::int64_t wanted_begin, std::int64_t wanted_end) const
{
    // All at one place: the last one has every byte of the others.
    auto const earliest = shift_step == 0 ? last() : *this;
    auto const first_begin = form->begin + earliest.shift;
    auto const first_end = form->end + earliest.shift;
    if (count == 1 || shift_step == 0)
        return first_begin < wanted_end && first_end > wanted_begin ? Numbers{count - 1, count} : Numbers{0, 0};
    // Those up to some number lie on one side of the range, those from some number on on the other side.
    auto const step = shift_step > 0 ? shift_step : -shift_step;
    auto const before = shift_step > 0 ? wanted_begin - first_end : first_begin - wanted_end;
    auto const within = shift_step > 0 ? wanted_end - first_begin : first_end - wanted_begin;
    if (within <= 0) return {0, 0};
    auto const first = before < 0 ? 0 : static_cast<std::uint64_t>(before / step) + 1;
    auto const last = std::min(static_cast<std::uint64_t>((within - 1) / step) + 1, count);
    return {std::min(first, last), last};
}

std::uint64_t ChunkSeries::depth() const
{
    if (count == 1 || shift_step == 0) return 0;
    auto const step = static_cast<std::uint64_t>(shift_step > 0 ? shift_step : -shift_step);
    auto const chunks = std::min((static_cast<std::uint64_t>(form->end - form->begin) - 1) / step + 1, count);
    std::uint64_t product = 0;
    if (chunks == 1) return 0;
    return __builtin_mul_overflow(chunks, form->parts.size(), &product) ? UINT64_MAX : product;
}

core::Status ExtentMap::add(std::span<std::byte const> record)
{
    switch (kind_of(record)) {
    case RecordKind::form: return add_form(record);
    case RecordKind::chunk: {
        auto const chunk = decode_chunk(record);
        return chunk ? add_chunks(*chunk) : tl::unexpected(chunk.error());
    }
    case RecordKind::cut: {
        auto const cut = decode_cut(record);
        if (!cut) return tl::unexpected(cut.error());
        add_cut(cut->epoch, cut->size);
        return {};
    }
    case RecordKind::subfile: {
        auto const subfile = decode_subfile(record);
        return subfile ? announce(*subfile) : tl::unexpected(subfile.error());
    }
    }
    return contradiction("a record of an unknown kind");
}

core::Status ExtentMap::add_form(std::span<std::byte const> record)
{
    auto form = decode_form(record);
    if (!form) return tl::unexpected(form.error());
    FormKey const key{form->subfile, form->number};
    if (!forms_.emplace(key, std::make_shared<ChunkForm const>(std::move(*form))).second)
        return contradiction(fmt::format("subfile {} has two forms {}", key.first, key.second));
    return {};
}

std::uint64_t ExtentMap::end_in_subfile(ChunkRecord const& record) const
{
    auto const found = forms_.find({record.subfile, record.form});
    if (found == forms_.end()) return 0;
    return record.position + (record.count - 1) * record.position_step + found->second->data_bytes;
}

core::Status ExtentMap::announce(SubfileRecord const& subfile)
{
    if (subfiles_.contains(subfile.subfile))
        return contradiction(fmt::format("the size of subfile {} comes twice, or too late", subfile.subfile));
    subfiles_[subfile.subfile] = subfile.bytes;
    announced_.insert(subfile.subfile);
    note_host(subfile.subfile, subfile.host);
    return {};
}

std::string ExtentMap::host_of(std::uint32_t subfile) const
{
    auto const found = hosts_.find(subfile);
    return found == hosts_.end() ? std::string() : found->second;
}

core::Status ExtentMap::add_chunks(ChunkRecord const& record)
{
    auto const found = forms_.find({record.subfile, record.form});
    if (found == forms_.end())
        return contradiction(fmt::format("subfile {} has no form {}", record.subfile, record.form));
    auto const& form = *found->second;
    ChunkSeries const series{found->second, record.epoch,      record.shift,      record.position,
                             record.count,  record.epoch_step, record.shift_step, record.position_step};
    auto const last = series.last();
    if (!stays_in_range(series.chunk(0)) || !stays_in_range(last))
        return contradiction("a chunk leaves the range of offsets");
    if (record.count > 1 && record.position_step < form.data_bytes)
        return contradiction(fmt::format("chunks overlap in subfile {}", record.subfile));
    auto& bytes = subfiles_[record.subfile];
    if (announced_.contains(record.subfile) && last.position + form.data_bytes > bytes)
        return contradiction(fmt::format("a chunk lies beyond the end of subfile {}", record.subfile));
    bytes = std::max(bytes, last.position + form.data_bytes);
    epoch_ = std::max(epoch_, last.epoch);
    if (auto const known = places_.find(record.subfile, record.position); known && record.count == 1) {
        auto& before = series_[*known];  // written again at the same place
        if (before.form != series.form || before.shift != series.shift || before.epoch > series.epoch)
            return contradiction(fmt::format("two chunks at {} of subfile {}", record.position, record.subfile));
        before.epoch = series.epoch;
    } else {
        if (record.count > most_chunks - chunks_) return contradiction("more chunks than any program writes");
        if (series.depth() > most_depth - depth_)
            return contradiction("more chunks at one place than any program writes");
        depth_ += series.depth();
        if (!places_.add(record.subfile, {record.position, form.data_bytes, record.count, record.position_step},
                         series_.size()))
            return contradiction(fmt::format("chunks overlap in subfile {}", record.subfile));
        ranges_.add(series.begin(), series.end(), series_.size());
        series_.push_back(series);
        chunks_ += record.count;
    }
    if (end_) end_ = std::max(*end_, end_of(series));
    return {};
}

void ExtentMap::add_cut(std::uint64_t epoch, std::int64_t size)
{
    // Every chunk that there is ends there, or it is not simple.
    if (end_ && epoch > epoch_)
        end_ = std::min(*end_, size);
    else
        end_.reset();
    epoch_ = std::max(epoch_, epoch);
    auto const after = cuts_.lower_bound(epoch);
    if (after != cuts_.end() && after->second <= size) return;
    auto first = after;
    while (first != cuts_.begin() && std::prev(first)->second >= size) --first;
    cuts_.erase(first, after);
    cuts_.insert_or_assign(epoch, size);
}

/// Bytes that a chunk of this epoch has from here on were cut off later.
std::int64_t ExtentMap::limit(std::uint64_t epoch) const
{
    auto const later = cuts_.upper_bound(epoch);  // of these, the first one is the deepest
    return later == cuts_.end() ? pattern::no_offset : later->second;
}

/// One past the last byte of the file that is left of these chunks. Of later ones no more is cut off.
std::int64_t ExtentMap::end_of(ChunkSeries const& series) const
{
    auto const end = [&](std::uint64_t number) {
        auto const chunk = series.chunk(number);
        return std::min(chunk.end(), limit(chunk.epoch));
    };
    if (series.shift_step >= 0) return end(series.count - 1);
    std::uint64_t low = 0;  // the first one that is whole
    for (auto high = series.count - 1; low < high;) {
        auto const middle = low + (high - low) / 2;
        auto const chunk = series.chunk(middle);
        if (chunk.end() <= limit(chunk.epoch))
            high = middle;
        else
            low = middle + 1;
    }
    return std::max(end(low), low > 0 ? end(low - 1) : 0);
}

std::vector<Holding> ExtentMap::find(std::int64_t begin, std::int64_t end) const
{
    std::vector<ChunkSeries> touched;
    for (auto const i : ranges_.find(begin, end)) {
        auto const numbers = series_[i].touched(begin, end);
        for (auto number = numbers.first; number < numbers.last; ++number) touched.push_back(series_[i].chunk(number));
    }
    std::sort(touched.begin(), touched.end(), [](auto const& a, auto const& b) { return order_of(a) < order_of(b); });
    std::vector<Holding> found;
    for (auto const& chunk : touched) {
        auto const limit_here = limit(chunk.epoch);
        for (auto const& part : chunk.form->parts) {
            auto const first = part.layout.base + part.layout.entries.front().offset + chunk.shift;
            if (first >= std::min(end, limit_here) || part.layout.end() + chunk.shift <= begin) continue;
            found.push_back({chunk.form->subfile, chunk.form, &part, chunk.epoch, chunk.shift,
                             static_cast<std::int64_t>(chunk.position) + part.position, limit_here});
        }
    }
    return found;
}

std::int64_t ExtentMap::end() const
{
    if (!end_) {
        end_ = 0;
        for (auto const& series : series_) end_ = std::max(*end_, end_of(series));
    }
    return *end_;
}

std::uint64_t ExtentMap::data_bytes() const
{
    std::uint64_t sum = 0;
    for (auto const& series : series_) sum += series.count * series.form->data_bytes;
    return sum;
}

}  // namespace tapioca::subfile
