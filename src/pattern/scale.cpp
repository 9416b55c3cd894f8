#include "pattern/scale.hpp"

#include <algorithm>
#include <numeric>

namespace tapioca::pattern {

Scale::Scale(std::vector<std::int64_t> const& cuts, std::int64_t margin)
{
    auto const before = [&](std::int64_t cut) { return std::max<std::int64_t>(0, cut - margin); };
    auto const after = [&](std::int64_t cut) { return std::min(cut, INT64_MAX - margin) + margin; };
    for (auto const cut : cuts) edges_.insert(edges_.end(), {before(cut), cut, after(cut)});
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    auto const at = [&](std::int64_t edge) {
        return static_cast<std::size_t>(std::lower_bound(edges_.begin(), edges_.end(), edge) - edges_.begin());
    };
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        inside_.push_back({at(cuts[i]), at(cuts[i + 1])});
        near_.push_back({at(before(cuts[i])), at(after(cuts[i + 1]))});
    }
    clear();
}

void Scale::add(Variables const& variables)
{
    add_bytes_between(variables, edges_, counts_);
}

void Scale::clear()
{
    counts_.assign(edges_.size() - 1, 0);
}

std::vector<Scale::Share> Scale::weights() const
{
    std::vector<std::uint64_t> upto(edges_.size(), 0);
    std::partial_sum(counts_.begin(), counts_.end(), upto.begin() + 1);
    std::vector<Share> result(inside_.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i].bytes = upto[inside_[i].end] - upto[inside_[i].begin];
        result[i].near_bytes = upto[near_[i].end] - upto[near_[i].begin];
    }
    return result;
}

}  // namespace tapioca::pattern
