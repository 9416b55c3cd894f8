#include "pattern/layout.hpp"

#include <algorithm>

namespace tapioca::pattern {

std::int64_t Regular::pieces() const
{
    std::int64_t product = length > 0 ? 1 : 0;
    for (auto const& dimension : dimensions) product *= dimension.count;
    return product;
}

std::int64_t Regular::offset_of(std::int64_t piece) const
{
    std::int64_t offset = base;
    for (auto d = dimensions.size(); d-- > 0;) {
        offset += piece % dimensions[d].count * dimensions[d].step;
        piece /= dimensions[d].count;
    }
    return offset;
}

Cursor::Cursor(Layout const& layout)
    : layout_(&layout), pieces_(std::visit([](auto const& l) { return l.pieces(); }, layout))
{
    advance_to(0, 0);
}

void Cursor::advance_to(std::int64_t piece, std::int64_t skip)
{
    piece_ = piece;
    skip_ = skip;
    position_ =
        piece_ < pieces_ ? std::visit([&](auto const& l) { return l.offset_of(piece_); }, *layout_) + skip_ : no_offset;
}

namespace {

/// The last piece that starts at or before `offset`, or 0; and the length of that piece.
struct Found {
    std::int64_t piece;
    std::int64_t length;
};

Found find(Regular const& regular, std::int64_t offset)
{
    std::int64_t rest = offset - regular.base;
    std::int64_t piece = 0;
    for (auto const& dimension : regular.dimensions) {
        auto const index = rest > 0 ? std::min(rest / dimension.step, dimension.count - 1) : 0;
        rest -= index * dimension.step;
        piece = piece * dimension.count + index;
    }
    return {piece, regular.length};
}

Found find(List const& list, std::int64_t offset)
{
    auto const after = std::upper_bound(list.entries.begin(), list.entries.end(), offset,
                                        [](std::int64_t value, auto const& entry) { return value < entry.offset; });
    auto const piece = after == list.entries.begin() ? after : after - 1;
    return {piece - list.entries.begin(), piece->length};
}

}  // namespace

void Cursor::seek(std::int64_t offset)
{
    if (pieces_ == 0) return;
    auto const found = std::visit([&](auto const& l) { return find(l, offset); }, *layout_);
    auto const start = std::visit([&](auto const& l) { return l.offset_of(found.piece); }, *layout_);
    if (offset <= start)
        advance_to(found.piece, 0);
    else if (offset < start + found.length)
        advance_to(found.piece, offset - start);
    else
        advance_to(found.piece + 1, 0);
}

bool Cursor::next(std::int64_t limit, Run& run)
{
    if (position_ >= limit) return false;
    return std::visit([&](auto const& l) { return next(l, limit, run); }, *layout_);
}

bool Cursor::next(Regular const& regular, std::int64_t limit, Run& run)
{
    auto const left = regular.length - skip_;
    run = {position_, left, 0, 1, piece_ * regular.length + skip_};
    if (position_ + left > limit) {  // the limit cuts this piece
        run.length = limit - position_;
        advance_to(piece_, skip_ + run.length);
        return true;
    }
    if (skip_ == 0 && !regular.dimensions.empty()) {  // whole pieces to the end of the row or the limit
        auto const& row = regular.dimensions.back();
        auto const in_row = row.count - piece_ % row.count;
        auto const below_limit = (limit - position_ - regular.length) / row.step + 1;
        run.count = std::min(in_row, below_limit);
        run.stride = row.step;
    }
    advance_to(piece_ + run.count, 0);
    return true;
}

bool Cursor::next(List const& list, std::int64_t limit, Run& run)
{
    auto const& entry = list.entries[static_cast<std::size_t>(piece_)];
    auto const left = entry.length - skip_;
    run = {position_, left, 0, 1, entry.buffer + skip_};
    if (position_ + left > limit) {
        run.length = limit - position_;
        skip_ += run.length;
        position_ = limit;
        return true;
    }
    skip_ = 0;
    position_ = ++piece_ < pieces_ ? list.entries[static_cast<std::size_t>(piece_)].offset : no_offset;
    return true;
}

}  // namespace tapioca::pattern
