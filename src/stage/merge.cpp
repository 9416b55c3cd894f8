#include "stage/merge.hpp"

#include <algorithm>
#include <numeric>

#include "stage/covered.hpp"

namespace tapioca::stage {

namespace {

std::int64_t begin_of(pattern::Layout const& layout)
{
    return layout.base + layout.entries.front().offset;
}

bool same_bytes(pattern::Layout const& a, pattern::Layout const& b)
{
    return a.base == b.base &&
           std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                      [](auto const& x, auto const& y) { return x.offset == y.offset && x.length == y.length; }) &&
           std::equal(a.dimensions.begin(), a.dimensions.end(), b.dimensions.begin(), b.dimensions.end(),
                      [](auto const& x, auto const& y) { return x.count == y.count && x.step == y.step; });
}

}  // namespace

void Merge::add(std::int64_t offset, std::int64_t length, std::byte const* data)
{
    auto const buffer = data - base_;
    // In the log of one rank, later data has a greater position. Then the position gives the order, and no order needs
    // to be stored.
    if (by_place_ && !flat_.empty() && buffer <= flat_.back().buffer) give_up_order_by_place();
    if (!by_place_) orders_.push_back(added_);
    flat_.push_back({offset, length, buffer});
    ++added_;
}

void Merge::give_up_order_by_place()
{
    by_place_ = false;
    orders_.resize(flat_.size());
    std::iota(orders_.begin(), orders_.end(), added_ - flat_.size());
}

void Merge::add(pattern::Layout layout, std::byte const* data)
{
    layout.buffer += data - base_;
    // The order of contiguous requests before and after a structured one must be stored.
    if (by_place_) give_up_order_by_place();
    units_.push_back({std::move(layout), added_++, false});
}

void Merge::leave_out(pattern::Layout layout)
{
    if (by_place_) give_up_order_by_place();
    units_.push_back({std::move(layout), added_++, true});
}

void Merge::sort()
{
    auto const before = [](auto const& a, auto const& b) { return a.offset < b.offset; };
    std::sort(units_.begin(), units_.end(), [](LargeRequest const& a, LargeRequest const& b) {
        return std::pair(begin_of(a.layout), b.order) < std::pair(begin_of(b.layout), a.order);
    });
    // Of several requests for exactly the same bytes, for example from a program that writes one view repeatedly, only
    // the latest is kept.
    units_.erase(
        std::unique(units_.begin(), units_.end(),
                    [](LargeRequest const& a, LargeRequest const& b) { return same_bytes(a.layout, b.layout); }),
        units_.end());
    if (std::is_sorted(flat_.begin(), flat_.end(), before)) return;
    if (by_place_) {
        std::sort(flat_.begin(), flat_.end(), before);
        return;
    }
    std::vector<std::size_t> index(flat_.size());
    std::iota(index.begin(), index.end(), std::size_t{0});
    std::sort(index.begin(), index.end(),
              [&](std::size_t a, std::size_t b) { return flat_[a].offset < flat_[b].offset; });
    std::vector<pattern::Layout::ListItem> flat;
    std::vector<std::uint64_t> orders;
    flat.reserve(flat_.size());
    orders.reserve(flat_.size());
    for (auto const i : index) {
        flat.push_back(flat_[i]);
        orders.push_back(orders_[i]);
    }
    flat_ = std::move(flat);
    orders_ = std::move(orders);
}

void Merge::break_up(LargeRequest const& unit, std::vector<MergedPiece>& pieces) const
{
    pattern::each_piece(unit.layout, [&](std::int64_t offset, std::int64_t length, std::int64_t buffer) {
        pieces.push_back({offset, length, buffer, unit.order, unit.left_out});
    });
}

void Merge::emit(Merged& merged, std::int64_t offset, std::int64_t length, std::int64_t buffer)
{
    merged.bytes += length;
    auto& entries = list_.entries;
    if (!entries.empty()) {
        auto& last = entries.back();
        bool const follows = last.buffer + last.length == buffer;
        if (last.offset + last.length == offset && follows) {
            last.length += length;
            return;
        }
        list_.in_order = list_.in_order && follows;
    }
    entries.push_back({offset, length, buffer});
}

/// Emits the pieces of a group; where they overlap, the latest wins.
void Merge::resolve(std::vector<MergedPiece>& pieces, Merged& merged)
{
    auto const by_offset = [](MergedPiece const& a, MergedPiece const& b) { return a.offset < b.offset; };
    std::sort(pieces.begin(), pieces.end(), by_offset);
    bool const disjoint =
        std::adjacent_find(pieces.begin(), pieces.end(), [](MergedPiece const& a, MergedPiece const& b) {
            return a.offset + a.length > b.offset;
        }) == pieces.end();
    if (!disjoint) {
        std::sort(pieces.begin(), pieces.end(),
                  [](MergedPiece const& a, MergedPiece const& b) { return a.order > b.order; });
        std::vector<MergedPiece> visible;
        Covered covered;
        for (auto const& piece : pieces)
            covered.take(piece.offset, piece.offset + piece.length, [&](std::int64_t begin, std::int64_t end) {
                visible.push_back(
                    {begin, end - begin, piece.buffer + (begin - piece.offset), piece.order, piece.left_out});
            });
        pieces = std::move(visible);
        std::sort(pieces.begin(), pieces.end(), by_offset);
    }
    for (auto const& piece : pieces) {
        if (piece.left_out)
            merged.left_out.push_back({piece.offset, piece.length});
        else
            emit(merged, piece.offset, piece.length, piece.buffer);
    }
}

/// If no contiguous requests overlap, they are the result, and no second list of them is made.
bool Merge::finish_disjoint(Merged& merged)
{
    auto const meet = [](auto const& a, auto const& b) { return a.offset + a.length > b.offset; };
    if (!units_.empty() || std::adjacent_find(flat_.begin(), flat_.end(), meet) != flat_.end()) return false;
    auto& entries = list_.entries;
    entries = std::move(flat_);
    std::size_t kept = 0;
    for (auto const entry : entries) {
        merged.bytes += entry.length;
        auto* const last = kept > 0 ? &entries[kept - 1] : nullptr;
        bool const follows = last && last->buffer + last->length == entry.buffer;
        if (follows && last->offset + last->length == entry.offset) {
            last->length += entry.length;
            continue;
        }
        list_.in_order = list_.in_order && (!last || follows);
        entries[kept++] = entry;
    }
    entries.resize(kept);
    if (kept > 0) merged.layouts.push_back(std::move(list_));
    return true;
}

Merged Merge::finish()
{
    sort();
    Merged merged;
    list_ = {};
    if (finish_disjoint(merged)) return merged;
    std::size_t f = 0;
    std::size_t u = 0;
    auto const flat_begin = [&](std::size_t i) { return i < flat_.size() ? flat_[i].offset : pattern::no_offset; };
    auto const unit_begin = [&](std::size_t i) {
        return i < units_.size() ? begin_of(units_[i].layout) : pattern::no_offset;
    };
    while (f < flat_.size() || u < units_.size()) {
        // A group: requests whose ranges interleave.
        auto const first_f = f;
        auto const first_u = u;
        std::int64_t end = 0;
        do {
            if (flat_begin(f) <= unit_begin(u)) {
                end = std::max(end, flat_[f].offset + flat_[f].length);
                ++f;
            } else {
                end = std::max(end, units_[u].layout.end());
                ++u;
            }
        } while (std::min(flat_begin(f), unit_begin(u)) < end);

        bool const alone = f - first_f + u - first_u == 1;
        if (alone && f > first_f) {
            emit(merged, flat_[first_f].offset, flat_[first_f].length, flat_[first_f].buffer);
        } else if (alone && !units_[first_u].left_out) {
            auto& layout = units_[first_u].layout;
            for (auto const& entry : layout.entries) merged.bytes += entry.length * layout.tiles();
            merged.layouts.push_back(std::move(layout));
        } else {
            std::vector<MergedPiece> pieces;
            for (auto i = first_f; i < f; ++i)
                pieces.push_back({flat_[i].offset, flat_[i].length, flat_[i].buffer,
                                  by_place_ ? static_cast<std::uint64_t>(flat_[i].buffer) : orders_[i], false});
            for (auto i = first_u; i < u; ++i) break_up(units_[i], pieces);
            resolve(pieces, merged);
        }
    }
    if (!list_.entries.empty()) merged.layouts.push_back(std::move(list_));
    return merged;
}

}  // namespace tapioca::stage
