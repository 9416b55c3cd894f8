#include "subfile/range_index.hpp"

#include <algorithm>
#include <iterator>

namespace tapioca::subfile {

/// Fills in furthest_end in [first, last), and returns it for the whole.
std::int64_t RangeIndex::connect(SortedRanges& layer, std::size_t first, std::size_t last)
{
    if (first == last) return 0;
    auto const middle = first + (last - first) / 2;
    auto& here = layer[middle];
    here.furthest_end = std::max({here.end, connect(layer, first, middle), connect(layer, middle + 1, last)});
    return here.furthest_end;
}

void RangeIndex::search(SortedRanges const& layer, std::size_t first, std::size_t last, Range const& wanted,
                        std::vector<std::size_t>& found)
{
    if (first == last) return;
    auto const middle = first + (last - first) / 2;
    auto const& here = layer[middle];
    if (here.furthest_end <= wanted.begin) return;
    search(layer, first, middle, wanted, found);
    if (here.begin >= wanted.end) return;
    if (here.end > wanted.begin) found.push_back(here.id);
    search(layer, middle + 1, last, wanted, found);
}

/// What is new becomes a layer, together with the layers that are not larger.
void RangeIndex::add_layer() const
{
    auto const by_begin = [](Range const& a, Range const& b) { return a.begin < b.begin; };
    SortedRanges layer;
    layer.swap(new_);
    std::sort(layer.begin(), layer.end(), by_begin);
    while (!layers_.empty() && layers_.back().size() <= layer.size()) {
        SortedRanges both;
        both.reserve(layers_.back().size() + layer.size());
        std::merge(layers_.back().begin(), layers_.back().end(), layer.begin(), layer.end(), std::back_inserter(both),
                   by_begin);
        layer = std::move(both);
        layers_.pop_back();
    }
    connect(layer, 0, layer.size());
    layers_.push_back(std::move(layer));
}

std::vector<std::size_t> RangeIndex::find(std::int64_t begin, std::int64_t end) const
{
    if (!new_.empty()) add_layer();
    std::vector<std::size_t> found;
    for (auto const& layer : layers_) search(layer, 0, layer.size(), {begin, end, 0, 0}, found);
    return found;
}

}  // namespace tapioca::subfile
