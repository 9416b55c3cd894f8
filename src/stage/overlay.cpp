#include "stage/overlay.hpp"

#include <algorithm>

namespace tapioca::stage {

Overlay::Overlay(std::shared_ptr<LogContent> content)
    : content_(std::move(content)), batch_(content_->batch(0, UINT64_MAX - 1))
{
    for (auto const& layout : layouts()) end_ = std::max(end_, layout.end());
}

void Overlay::look(std::int64_t begin, std::int64_t end, Visit const& visit) const
{
    auto const give = [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
        visit(offset, length, batch_.data + place);
    };
    if (layouts().empty() || begin >= end_) return;
    // The requests that a merge left whole come first, in the order of the file, and do not overlap. The list of all
    // pieces of the other requests follows; its pieces may lie anywhere between them.
    auto const list = std::prev(layouts().end());
    auto at = std::partition_point(layouts().begin(), list, [&](auto const& layout) { return layout.end() <= begin; });
    for (; at != list && at->base + at->entries.front().offset < end; ++at) pattern::each_piece(*at, give, begin, end);
    pattern::each_piece(*list, give, begin, end);
}

void Overlay::look_through(std::int64_t begin, std::int64_t end, Visit const& visit) const
{
    auto const give = [&](std::int64_t offset, std::int64_t length, std::int64_t /*place*/) {
        visit(offset, length, nullptr);
    };
    for (std::size_t i = 1; i < batch_.claims.size(); ++i)
        for (auto const& layout : batch_.claims[i]->layouts()) pattern::each_piece(layout, give, begin, end);
}

}  // namespace tapioca::stage
