#include "stage/surface.hpp"

#include <algorithm>

#include "stage/covered.hpp"

namespace tapioca::stage {

core::Result<std::uint64_t> Pile::update(std::uint32_t rank, Read const& read)
{
    auto content = read(to_);
    if (!content) return tl::unexpected(content.error());
    if ((*content)->generation() != to_.generation && !to_.at_the_beginning()) {  // the log was emptied since
        layers_.clear();
        content = read({});
        if (!content) return tl::unexpected(content.error());
    }
    auto looked_at = (*content)->looked_at();
    auto from = layers_.empty() ? LogContent::Mark{} : to_;
    to_ = (*content)->end_of(rank);
    if ((*content)->looked_at() == 0) return 0;
    if ((*content)->has_handed_over(rank))
        for (auto& layer : layers_) layer.gone = true;
    // New content is merged into one layer with the layers below it that are not much larger.
    auto entries = looked_at;
    auto const below = layers_.size();
    while (!layers_.empty() && layers_.back().entries <= 2 * entries) {
        entries += layers_.back().entries;
        from = layers_.back().from;
        layers_.pop_back();
    }
    if (layers_.size() < below) {
        content = read(from);
        if (!content) return tl::unexpected(content.error());
        looked_at += (*content)->looked_at();
        entries = (*content)->looked_at();
        to_ = (*content)->end_of(rank);
        if ((*content)->has_handed_over(rank))
            for (auto& layer : layers_) layer.gone = true;
    }
    layers_.push_back({from, entries, Overlay(std::move(*content))});
    return looked_at;
}

void Pile::look(std::int64_t begin, std::int64_t end, Overlay::Visit const& visit) const
{
    if (layers_.size() == 1 && !layers_[0].gone) {
        layers_[0].overlay.look(begin, end, visit);
        layers_[0].overlay.look_through(begin, end, visit);
        return;
    }
    Covered covered;
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
        auto const give = [&](std::int64_t offset, std::int64_t length, std::byte const* data) {
            covered.take(offset, offset + length, [&](std::int64_t from, std::int64_t to) {
                visit(from, to - from, data && !layer->gone ? data + (from - offset) : nullptr);
            });
        };
        layer->overlay.look(begin, end, give);
        layer->overlay.look_through(begin, end, give);
    }
}

std::int64_t Pile::end() const
{
    std::int64_t end = 0;
    for (auto const& layer : layers_)
        if (!layer.gone) end = std::max(end, layer.overlay.end());
    return end;
}

core::Result<std::uint64_t> Surface::update(std::uint32_t rank, Pile::Read const& read)
{
    auto const looked_at = piles_[rank].update(rank, read);
    if (!looked_at) piles_.erase(rank);
    whole_.reset();
    return looked_at;
}

bool Surface::disputed(std::vector<SurfacePiece>& pieces)
{
    std::sort(pieces.begin(), pieces.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
    auto const* last = pieces.data();  // of the pieces before, the one with the greatest end
    for (auto const& piece : pieces) {
        bool const meet = piece.rank != last->rank && piece.begin < last->end;
        if (meet && (piece.data || last->data)) return true;
        if (piece.end > last->end) last = &piece;
    }
    return false;
}

core::Status Surface::look(std::int64_t begin, std::int64_t end, Overlay::Visit const& visit)
{
    if (!whole_) {
        pieces_.clear();
        for (auto const& [rank, pile] : piles_)
            pile.look(begin, end, [&, rank = rank](std::int64_t offset, std::int64_t length, std::byte const* data) {
                pieces_.push_back({offset, offset + length, data, rank});
            });
        if (piles_.size() < 2 || !disputed(pieces_)) {
            for (auto const& piece : pieces_)
                if (piece.data) visit(piece.begin, piece.end - piece.begin, piece.data);
            return {};
        }
        auto found = everything_();
        if (!found) return tl::unexpected(found.error());
        whole_.emplace(std::move(*found));
    }
    whole_->look(begin, end, visit);
    return {};
}

void Surface::look_at(std::uint32_t rank, std::int64_t begin, std::int64_t end, Overlay::Visit const& visit) const
{
    if (auto const pile = piles_.find(rank); pile != piles_.end()) pile->second.look(begin, end, visit);
}

std::int64_t Surface::end() const
{
    std::int64_t end = 0;
    for (auto const& [rank, pile] : piles_) end = std::max(end, pile.end());
    return end;
}

}  // namespace tapioca::stage
