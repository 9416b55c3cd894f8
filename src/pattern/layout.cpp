#include "pattern/layout.hpp"

#include <algorithm>

namespace tapioca::pattern {

std::int64_t Layout::tiles() const
{
    std::int64_t product = entries.empty() ? 0 : 1;
    for (auto const& dimension : dimensions) product *= dimension.count;
    return product;
}

std::int64_t Layout::end() const
{
    auto end = base + entries.back().offset + entries.back().length;
    for (auto const& dimension : dimensions) end += (dimension.count - 1) * dimension.step;
    return end;
}

Layout::Spot Layout::find(std::int64_t offset) const
{
    auto rest = offset - base - entries.front().offset;
    std::int64_t tile = 0;
    for (auto const& dimension : dimensions) {
        // A dimension of one has no step, or any.
        auto const index = rest > 0 && dimension.count > 1 ? std::min(rest / dimension.step, dimension.count - 1) : 0;
        rest -= index * dimension.step;
        tile = tile * dimension.count + index;
    }
    if (rest <= 0) return {tile, 0, 0};
    rest += entries.front().offset;
    auto const after = std::upper_bound(entries.begin(), entries.end(), rest,
                                        [](std::int64_t value, ListItem const& entry) { return value < entry.offset; });
    auto const& entry = *(after - 1);
    auto const number = static_cast<std::size_t>(after - entries.begin());
    if (rest < entry.offset + entry.length) return {tile, number - 1, rest - entry.offset};
    return after == entries.end() ? Spot{tile + 1, 0, 0} : Spot{tile, number, 0};
}

std::int64_t Layout::bytes_before(std::int64_t offset) const
{
    auto const& first = entries.front();
    auto const spot = find(offset);
    auto const tile_bytes = entries.back().buffer + entries.back().length - first.buffer;
    return spot.tile * tile_bytes + entries[spot.entry].buffer - first.buffer + spot.skip;
}

std::uint64_t Layout::bookkeeping_bytes() const
{
    return sizeof(Layout) + dimensions.capacity() * sizeof(Dimension) + entries.capacity() * sizeof(ListItem);
}

LayoutCursor::LayoutCursor(Layout const& layout) : layout_(&layout), tiles_(layout.tiles())
{
    go_to({0, 0, 0});
}

void LayoutCursor::go_to(Layout::Spot spot)
{
    at_ = spot;
    position_ = no_offset;
    if (spot.tile >= tiles_) return;
    tile_offset_ = layout_->base;
    tile_buffer_ = layout_->buffer;
    auto rest = spot.tile;
    for (auto d = layout_->dimensions.size(); d-- > 0;) {
        auto const& dimension = layout_->dimensions[d];
        auto const whole = d == 0 ? 0 : rest / dimension.count;
        auto const index = rest - whole * dimension.count;
        tile_offset_ += index * dimension.step;
        tile_buffer_ += index * dimension.buffer_step;
        rest = whole;
    }
    position_ = tile_offset_ + layout_->entries[spot.entry].offset + spot.skip;
}

void LayoutCursor::seek(std::int64_t offset)
{
    if (tiles_ > 0) go_to(layout_->find(offset));
}

bool LayoutCursor::next(std::int64_t limit, PieceRun& run)
{
    if (position_ >= limit) return false;
    auto const& entries = layout_->entries;
    auto const& entry = entries[at_.entry];
    auto const left = entry.length - at_.skip;
    run = {position_, left, 0, 1, tile_buffer_ + entry.buffer + at_.skip, 0};
    if (position_ + left > limit) {  // the limit cuts this piece
        run.length = limit - position_;
        at_.skip += run.length;
        position_ = limit;
        return true;
    }
    if (at_.entry + 1 < entries.size()) {
        at_.skip = 0;
        position_ = tile_offset_ + entries[++at_.entry].offset;
        return true;
    }
    if (entries.size() == 1 && at_.skip == 0 && !layout_->dimensions.empty()) {
        // whole pieces up to the end of the row or the limit
        auto const& row = layout_->dimensions.back();
        auto const in_row = row.count - (layout_->dimensions.size() == 1 ? at_.tile : at_.tile % row.count);
        auto const below_limit = (limit - position_ - entry.length) / row.step + 1;
        run.count = std::min(in_row, below_limit);
        run.stride = row.step;
        run.buffer_stride = row.buffer_step;
    }
    go_to({at_.tile + run.count, 0, 0});
    return true;
}

}  // namespace tapioca::pattern
