// ChunkPlaces: which bytes of its subfiles a set's chunks take, so that an index in which they overlap is noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tapioca::subfile {

class ChunkPlaces {
public:
    /// `count` stretches of `bytes` bytes, `step` apart from `position` on. @pre if there are several, step >= bytes
    struct PlaceSeries {
        std::uint64_t position;
        std::uint64_t bytes;
        std::uint64_t count;
        std::uint64_t step;

        [[nodiscard]] std::uint64_t last() const { return position + (count - 1) * step; }
        /// Whether one of them has bytes of [begin, begin + length).
        [[nodiscard]] bool meet(std::uint64_t begin, std::uint64_t length) const;
    };
    /// The chunk that was added alone and begins exactly there.
    [[nodiscard]] std::optional<std::size_t> find(std::uint32_t subfile, std::uint64_t position) const;
    /// Returns false if they overlap others. If very many series of chunks lie between each other, not all of them are
    /// compared: an overlap is somebody's mistake, but does no harm to a reader.
    bool add(std::uint32_t subfile, PlaceSeries const& places, std::size_t chunk);

private:
    struct Alone {
        std::uint64_t bytes;
        std::size_t chunk;
    };
    struct OfSubfile {
        std::map<std::uint64_t, Alone> alone;  ///< by position
        std::vector<PlaceSeries> series;
    };
    bool overlap(OfSubfile const& all, PlaceSeries const& places);
    bool overlap(PlaceSeries const& a, PlaceSeries const& b);

    std::map<std::uint32_t, OfSubfile> subfiles_;
    std::uint64_t comparisons_left_ = std::uint64_t{1} << 22;
};

}  // namespace tapioca::subfile
