#include "subfile/chunk_places.hpp"

#include <algorithm>
#include <iterator>

namespace tapioca::subfile {

bool ChunkPlaces::PlaceSeries::meet(std::uint64_t begin, std::uint64_t length) const
{
    auto const end = begin + length;
    if (position >= end) return false;
    auto const nearest = count == 1 ? 0 : std::min((end - 1 - position) / step, count - 1);
    return position + nearest * step + bytes > begin;
}

std::optional<std::size_t> ChunkPlaces::find(std::uint32_t subfile, std::uint64_t position) const
{
    auto const all = subfiles_.find(subfile);
    if (all == subfiles_.end()) return std::nullopt;
    auto const there = all->second.alone.find(position);
    return there == all->second.alone.end() ? std::nullopt : std::optional(there->second.chunk);
}

bool ChunkPlaces::add(std::uint32_t subfile, PlaceSeries const& places, std::size_t chunk)
{
    auto& all = subfiles_[subfile];
    if (overlap(all, places)) return false;
    if (places.count == 1)
        all.alone.emplace(places.position, Alone{places.bytes, chunk});
    else
        all.series.push_back(places);
    return true;
}

bool ChunkPlaces::overlap(OfSubfile const& all, PlaceSeries const& places)
{
    for (auto other = all.series.begin(); other != all.series.end() && comparisons_left_ > 0; ++other)
        if (overlap(*other, places)) return true;
    auto at = all.alone.lower_bound(places.position);
    if (at != all.alone.begin()) {
        auto const& [position, before] = *std::prev(at);
        if (position + before.bytes > places.position) return true;
    }
    for (; at != all.alone.end() && at->first < places.last() + places.bytes && comparisons_left_ > 0; ++at) {
        if (places.meet(at->first, at->second.bytes)) return true;
        if (places.count > 1) --comparisons_left_;
    }
    return false;
}

bool ChunkPlaces::overlap(PlaceSeries const& a, PlaceSeries const& b)
{
    if (comparisons_left_ == 0) return false;
    --comparisons_left_;
    if (a.position >= b.last() + b.bytes || b.position >= a.last() + a.bytes) return false;
    // If two series with the same step meet, the first chunk of one of them meets the other series.
    if (a.count == 1 || b.count == 1 || a.step == b.step)
        return a.meet(b.position, b.bytes) || b.meet(a.position, a.bytes);
    auto const& fewer = a.count < b.count ? a : b;
    auto const& more = a.count < b.count ? b : a;
    auto const tried = std::min(fewer.count, comparisons_left_);
    comparisons_left_ -= tried;
    for (std::uint64_t i = 0; i < tried; ++i)
        if (more.meet(fewer.position + i * fewer.step, fewer.bytes)) return true;
    return false;
}

}  // namespace tapioca::subfile
