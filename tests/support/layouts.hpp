// Layouts and patterns byte by byte: a slow and obvious implementation with which the fast code is compared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "pattern/layout.hpp"
#include "pattern/variable.hpp"

namespace tapioca::test {

/// A byte of the file and the byte of the buffer that belongs there.
struct Place {
    std::int64_t file;
    std::int64_t buffer;
    bool operator==(Place const&) const = default;
};

inline std::vector<Place> places(pattern::Layout const& layout)
{
    std::vector<Place> starts{{layout.base, layout.buffer}};
    for (auto const& dimension : layout.dimensions) {
        std::vector<Place> finer;
        for (auto const& start : starts)
            for (std::int64_t i = 0; i < dimension.count; ++i)
                finer.push_back({start.file + i * dimension.step, start.buffer + i * dimension.buffer_step});
        starts = std::move(finer);
    }
    std::vector<Place> result;
    for (auto const& start : starts)
        for (auto const& entry : layout.entries)
            for (std::int64_t i = 0; i < entry.length; ++i)
                result.push_back({start.file + entry.offset + i, start.buffer + entry.buffer + i});
    return result;
}

inline std::vector<Place> places(pattern::PieceRun const& run)
{
    std::vector<Place> result;
    for (std::int64_t piece = 0; piece < run.count; ++piece)
        for (std::int64_t i = 0; i < run.length; ++i)
            result.push_back({run.offset + piece * run.stride + i, run.buffer + piece * run.buffer_stride + i});
    return result;
}

/// The places of a variable; each layout is walked with a cursor to its end, layouts in their order.
inline std::vector<Place> walk(pattern::Variable const& variable)
{
    std::vector<Place> result;
    for (auto const& layout : variable.layouts()) {
        pattern::LayoutCursor cursor(layout);
        for (pattern::PieceRun run; cursor.next(pattern::no_offset, run);)
            for (auto const& place : places(run)) result.push_back(place);
    }
    return result;
}

/// Uniform in [low, high].
template <class Random>
std::int64_t pick(Random& random, std::int64_t low, std::int64_t high)
{
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

}  // namespace tapioca::test
