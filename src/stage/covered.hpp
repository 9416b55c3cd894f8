// Covered: which bytes of a file are taken. Each byte is given to the first request that asks for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace tapioca::stage {

class Covered {
public:
    /// Calls visit(begin, end) for every part of [begin, end) that is not taken yet, in ascending order, and takes all
    /// of it.
    template <class Visit>
    void take(std::int64_t begin, std::int64_t end, Visit const& visit)
    {
        auto at = taken_.upper_bound(begin);
        if (at != taken_.begin() && std::prev(at)->second >= begin) --at;
        auto from = begin;
        auto first = begin;
        auto last = end;
        while (at != taken_.end() && at->first <= end) {
            if (from < at->first) visit(from, at->first);
            from = std::max(from, at->second);
            first = std::min(first, at->first);
            last = std::max(last, at->second);
            at = taken_.erase(at);
        }
        if (from < end) visit(from, end);
        taken_.emplace_hint(at, first, last);
    }

private:
    std::map<std::int64_t, std::int64_t> taken_;  ///< disjoint, not adjacent
};

}  // namespace tapioca::stage
