// ShapeCache: the variables of the last few shapes of accesses, so that a repeated shape costs a comparison.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "pattern/typemap.hpp"

namespace tapioca::mpiio {

class ShapeCache {
public:
    struct Match {
        pattern::Variable const& variable;
        std::int64_t shift;  ///< by which the variable is to be shifted
    };
    /// The variable of an access, valid until the next call. Throws if there is no memory.
    Match of(pattern::Access const& access)
    {
        for (auto const& known : known_)
            if (known && known->access.shape == access.shape)
                return {known->variable, access.origin - known->access.origin};
        auto& place = known_[next_++ % known_.size()];
        place.emplace(CachedShape{access, pattern::variable_of(access)});
        return {place->variable, 0};
    }

private:
    struct CachedShape {
        pattern::Access access;
        pattern::Variable variable;
    };
    std::array<std::optional<CachedShape>, 8> known_;
    std::size_t next_ = 0;
};

/// Calls visit(offset, length, place in the buffer) for every piece.
template <class Visit>
void each_piece(ShapeCache::Match const& found, Visit const& visit)
{
    auto const shifted = [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
        visit(found.shift + offset, length, place);
    };
    for (auto const& layout : found.variable.layouts()) pattern::each_piece(layout, shifted);
}

}  // namespace tapioca::mpiio
