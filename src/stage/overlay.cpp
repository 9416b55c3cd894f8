#include "stage/overlay.hpp"

#include <algorithm>

#include "stage/covered.hpp"

namespace tapioca::stage {

Overlay::Overlay(std::shared_ptr<Content> content, std::shared_ptr<Overlay const> below)
    : content_(std::move(content)), batch_(content_->batch(0, UINT64_MAX - 1)), below_(std::move(below))
{
    if (below_) end_ = below_->end();
    for (auto const& layout : layouts()) end_ = std::max(end_, layout.end());
}

void Overlay::look(std::int64_t begin, std::int64_t end, Visit const& visit) const
{
    if (!below_) return look_above(begin, end, visit);
    Covered covered;
    auto const give = [&](std::int64_t offset, std::int64_t length, std::byte const* data) {
        covered.take(offset, offset + length,
                     [&](std::int64_t from, std::int64_t to) { visit(from, to - from, data + (from - offset)); });
    };
    look_above(begin, end, give);
    // What was left out is in the file, and hides what is below.
    for (std::size_t i = 1; i < batch_.claims.size(); ++i)
        for (auto const& layout : batch_.claims[i]->layouts()) {
            pattern::Cursor cursor(layout);
            cursor.seek(begin);
            for (pattern::Run run; cursor.next(end, run);)
                for (std::int64_t n = 0; n < run.count; ++n) {
                    auto const offset = run.offset + n * run.stride;
                    covered.take(offset, offset + run.length, [](std::int64_t, std::int64_t) {});
                }
        }
    below_->look(begin, end, give);
}

void Overlay::look_above(std::int64_t begin, std::int64_t end, Visit const& visit) const
{
    auto const look_into = [&](pattern::Layout const& layout) {
        pattern::Cursor cursor(layout);
        cursor.seek(begin);
        for (pattern::Run run; cursor.next(end, run);)
            for (std::int64_t i = 0; i < run.count; ++i)
                visit(run.offset + i * run.stride, run.length, batch_.data + run.buffer + i * run.buffer_stride);
    };
    if (layouts().empty() || begin >= end_) return;
    // A merge's requests that stayed whole come first, in the order of the file, and meet nothing; then the list of
    // all pieces of the others, which may lie anywhere between them.
    auto const list = std::prev(layouts().end());
    auto at = std::partition_point(layouts().begin(), list, [&](auto const& layout) { return layout.end() <= begin; });
    for (; at != list && at->base + at->entries.front().offset < end; ++at) look_into(*at);
    look_into(*list);
}

}  // namespace tapioca::stage
