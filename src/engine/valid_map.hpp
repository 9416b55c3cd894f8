// ValidMap: which bytes of a round were written, with one bit per granule, so that holes stay untouched.
#pragma once

#include <cstdint>

#include "pattern/layout.hpp"

namespace tapioca::engine {

/// The map lies in shared memory beside its buffer. Many ranks mark it at the same time; the drainer reads it when all
/// are done.
class ValidMap {
public:
    /// `origin` is the file offset of the round's first byte, relative to the step's base.
    ValidMap(std::uint64_t* words, std::uint64_t granule, std::int64_t origin)
        : words_(words), granule_(static_cast<std::int64_t>(granule)), first_(floor(origin))
    {
    }

    /// Marks a run's bytes. Neighbouring bits are gathered first, so that there is one atomic operation per word.
    void mark(pattern::PieceRun const& run);

    /// Calls visit(begin, end), in offsets relative to the base, for each stretch of valid bytes within
    /// [begin, end), and clears the map.
    template <class Visit>
    void take(std::int64_t begin, std::int64_t end, Visit visit)
    {
        std::int64_t stretch = -1;  // bit where the current stretch began
        auto const bits = floor(end - 1) - first_ + 1;
        for (std::int64_t bit = 0; bit < bits;) {
            auto& word = words_[bit / 64];
            bool const on = (word >> (bit % 64)) & 1;
            // jump over equal bits in whole words
            if (bit % 64 == 0 && (word == 0 || word == ~std::uint64_t{0})) {
                if (on != (stretch >= 0)) toggle(stretch, bit, begin, end, visit);
                bit += 64;
                word = 0;
                continue;
            }
            if (on != (stretch >= 0)) toggle(stretch, bit, begin, end, visit);
            ++bit;
            if (bit % 64 == 0 || bit == bits) word = 0;
        }
        if (stretch >= 0) toggle(stretch, bits, begin, end, visit);
    }

private:
    [[nodiscard]] std::int64_t floor(std::int64_t offset) const
    {
        return offset >= 0 ? offset / granule_ : -((-offset + granule_ - 1) / granule_);
    }

    template <class Visit>
    void toggle(std::int64_t& stretch, std::int64_t bit, std::int64_t begin, std::int64_t end, Visit& visit)
    {
        if (stretch < 0) {
            stretch = bit;
            return;
        }
        auto const from = (first_ + stretch) * granule_;
        auto const to = (first_ + bit) * granule_;
        visit(from < begin ? begin : from, to > end ? end : to);
        stretch = -1;
    }

    std::uint64_t* words_;
    std::int64_t granule_;
    std::int64_t first_;  ///< granule of bit 0
};

}  // namespace tapioca::engine
