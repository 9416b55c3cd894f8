#include "engine/valid_map.hpp"

#include <atomic>

namespace tapioca::engine {

namespace {

/// Gathers bits for one word, and adds them to the map when the next word begins.
class Gathered {
public:
    explicit Gathered(std::uint64_t* words) : words_(words) {}
    Gathered(Gathered const&) = delete;
    Gathered& operator=(Gathered const&) = delete;
    ~Gathered() { flush(); }

    void add(std::int64_t word, std::uint64_t bits)
    {
        if (word != word_) {
            flush();
            word_ = word;
            bits_ = 0;
        }
        bits_ |= bits;
    }

private:
    void flush()
    {
        if (word_ >= 0) std::atomic_ref(words_[word_]).fetch_or(bits_, std::memory_order_relaxed);
    }
    std::uint64_t* words_;
    std::int64_t word_ = -1;
    std::uint64_t bits_ = 0;
};

}  // namespace

void ValidMap::mark(pattern::PieceRun const& run)
{
    constexpr std::uint64_t all = ~std::uint64_t{0};
    Gathered gathered(words_);
    for (std::int64_t i = 0, offset = run.offset; i < run.count; ++i, offset += run.stride) {
        auto bit = floor(offset) - first_;
        auto const last = floor(offset + run.length - 1) - first_;
        for (; bit <= last; bit = (bit / 64 + 1) * 64) {
            auto const to = last / 64 == bit / 64 ? last % 64 : 63;
            gathered.add(bit / 64, (all << (bit % 64)) & (all >> (63 - to)));
        }
    }
}

}  // namespace tapioca::engine
