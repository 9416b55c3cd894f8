// What an ExtentMap has, as the records of an index: only what counts, in as few records as possible.
#include <algorithm>
#include <string_view>
#include <tuple>

#include "subfile/extent_map.hpp"

namespace tapioca::subfile {

namespace {

/// Chunks that are looked at one by one. Of a set with more, nothing is left out.
constexpr std::size_t most_looked_at = std::size_t{1} << 20;

/// Gives forms with the same entries the same number.
class EqualForms {
public:
    std::size_t number(ChunkForm const& form)
    {
        auto const [known, is_new] = by_form_.try_emplace(&form, 0);
        if (is_new) {
            auto const entries = std::span(form.record).subspan(sizeof(FormRecord));
            std::string_view const text(reinterpret_cast<char const*>(entries.data()), entries.size());
            known->second = by_entries_.try_emplace({form.data_bytes, text}, by_entries_.size()).first->second;
        }
        return known->second;
    }

private:
    std::map<ChunkForm const*, std::size_t> by_form_;
    std::map<std::pair<std::uint64_t, std::string_view>, std::size_t> by_entries_;
};

/// Puts chunks that come one after the other together to series.
class Gathering {
public:
    explicit Gathering(std::vector<ChunkSeries> const& chunks)
    {
        for (auto const& series : chunks) depth_left_ -= series.depth();
        for (auto const& chunk : chunks) add(chunk);
        finish();
    }
    [[nodiscard]] std::vector<ChunkSeries> const& all() const { return gathered_; }

private:
    void add(ChunkSeries const& chunk)
    {
        if (open_ && chunk.count == 1 && continues(chunk)) {
            ++open_->count;
            return;
        }
        finish();
        if (chunk.count == 1)
            open_ = chunk;
        else
            gathered_.push_back(chunk);
    }
    void finish()
    {
        if (!open_) return;
        if (auto const depth = open_->depth(); depth <= depth_left_) {
            depth_left_ -= depth;
            gathered_.push_back(*open_);
        } else {
            for (std::uint64_t i = 0; i < open_->count; ++i) gathered_.push_back(open_->chunk(i));
        }
        open_.reset();
    }
    bool continues(ChunkSeries const& chunk)
    {
        auto const before = open_->last();
        if (open_->form != chunk.form || chunk.position < before.position) return false;
        auto const epoch_step = chunk.epoch - before.epoch;
        auto const shift_step = chunk.shift - before.shift;
        auto const position_step = chunk.position - before.position;
        if (open_->count == 1) {
            open_->epoch_step = epoch_step;
            open_->shift_step = shift_step;
            open_->position_step = position_step;
        }
        return epoch_step == open_->epoch_step && shift_step == open_->shift_step &&
               position_step == open_->position_step;
    }

    std::vector<ChunkSeries> gathered_;
    std::optional<ChunkSeries> open_;
    std::uint64_t depth_left_ = most_depth;
};

auto order_by_form(ChunkSeries const& chunk)
{
    return std::tuple(chunk.form->subfile, chunk.form->number, chunk.epoch, chunk.position);
}

}  // namespace

/// The chunks of which something may be seen, by their forms and epochs; or all series, if there are too many chunks.
std::vector<ChunkSeries> ExtentMap::live_chunks() const
{
    if (chunks_ > most_looked_at) return series_;
    struct LiveChunk {
        ChunkSeries chunk;
        std::size_t form;
    };
    std::vector<LiveChunk> found;
    EqualForms forms;
    for (auto const& series : series_)
        for (std::uint64_t i = 0; i < series.count; ++i)
            if (auto chunk = series.chunk(i); chunk.begin() < limit(chunk.epoch))
                found.push_back({std::move(chunk), forms.number(*series.form)});
    auto const place = [](LiveChunk const& one) { return std::tuple(one.form, one.chunk.shift); };
    std::sort(found.begin(), found.end(), [&](LiveChunk const& a, LiveChunk const& b) {
        auto const order = [](LiveChunk const& one) {
            return std::tuple(one.chunk.epoch, one.chunk.form->subfile, one.chunk.position);
        };
        return std::tuple_cat(place(a), order(a)) < std::tuple_cat(place(b), order(b));
    });
    std::vector<ChunkSeries> live;
    for (std::size_t i = 0; i < found.size(); ++i)
        if (i + 1 == found.size() || place(found[i]) != place(found[i + 1])) live.push_back(found[i].chunk);
    return live;
}

std::vector<std::byte> ExtentMap::records(SetId const& identity) const
{
    auto chunks = live_chunks();
    std::sort(chunks.begin(), chunks.end(),
              [](auto const& a, auto const& b) { return order_by_form(a) < order_by_form(b); });
    std::map<std::uint32_t, std::uint64_t> subfiles;
    for (auto const& chunk : chunks) {
        auto& bytes = subfiles[chunk.form->subfile];
        bytes = std::max(bytes, chunk.last().position + chunk.form->data_bytes);
    }
    Gathering const gathering(chunks);
    std::vector<std::byte> all;
    auto const put = [&](std::vector<std::byte> const& record) { all.insert(all.end(), record.begin(), record.end()); };
    for (auto const& [number, bytes] : subfiles) put(subfile_record(number, bytes, identity, host_of(number)));
    ChunkForm const* form = nullptr;
    std::map<std::uint64_t, std::int64_t> cuts;
    for (auto const& series : gathering.all()) {
        if (form != series.form.get()) put(series.form->record);
        form = series.form.get();
        put(chunk_record({{},
                          form->subfile,
                          form->number,
                          series.epoch,
                          series.shift,
                          series.position,
                          series.count,
                          series.epoch_step,
                          series.shift_step,
                          series.position_step},
                         identity));
    }
    for (auto const& chunk : chunks)
        if (auto const cut = cuts_.upper_bound(chunk.epoch); cut != cuts_.end() && cut->second < chunk.end())
            cuts.insert(*cut);
    if (chunks_ > most_looked_at) cuts = cuts_;
    for (auto const& [epoch, size] : cuts) put(cut_record(epoch, size, identity));
    return all;
}

}  // namespace tapioca::subfile
