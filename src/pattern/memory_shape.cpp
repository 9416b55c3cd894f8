#include "pattern/memory_shape.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace tapioca::pattern {

namespace {

core::Status check(ArrayPart const& part, std::int64_t element_size, std::optional<std::uint64_t> array_bytes)
{
    // A section in memory is checked like a subarray of a file, with the same messages.
    Subarray const array{part.shape, part.start, part.count, part.stride, element_size, 0};
    if (auto const status = check_subarray(array); !status)
        return core::fail(status.error().code, "the section " + status.error().text);
    auto const elements =
        std::accumulate(part.shape.begin(), part.shape.end(), std::uint64_t{1},
                        [](auto product, auto count) { return product * static_cast<std::uint64_t>(count); });
    auto const bytes = elements * static_cast<std::uint64_t>(element_size);
    if (array_bytes && bytes != *array_bytes)
        return core::fail(Errc::invalid_argument,
                          fmt::format("the section is part of an array of shape [{}], which is {} bytes, but the array "
                                      "that was passed has {}",
                                      fmt::join(part.shape, ", "), bytes, *array_bytes));
    return {};
}

/// One of the nested loops over a variable's bytes, in the file or in memory: every `unit` bytes of the packed order,
/// the place moves by `step`.
struct LoopLevel {
    std::int64_t unit;
    std::int64_t step;
};

/// Where byte `unit` of the packed order lies. @pre `unit` is a multiple of the unit of its level
std::int64_t step_of(std::vector<LoopLevel> const& levels, std::int64_t unit)
{
    auto const above = std::upper_bound(levels.begin(), levels.end(), unit,
                                        [](std::int64_t value, LoopLevel const& level) { return value < level.unit; });
    auto const& level = *(above - 1);
    return level.step * (unit / level.unit);
}

/// The levels, innermost first, beginning with single bytes.
std::vector<LoopLevel> levels_of(MemoryShape const& memory)
{
    std::vector<LoopLevel> levels{{1, 1}};
    auto unit = memory.element_size;
    for (auto at = memory.dimensions.rbegin(); at != memory.dimensions.rend(); ++at) {
        if (at->count == 1) continue;
        levels.push_back({unit, at->step});
        unit *= at->count;
    }
    return levels;
}

/// The same for a layout. Empty if the layout does not consist of loops over one piece with a packed buffer.
std::vector<LoopLevel> levels_of(Layout const& layout)
{
    if (layout.entries.size() != 1 || layout.buffer != 0 || layout.entries[0].buffer != 0) return {};
    std::vector<LoopLevel> levels{{1, 1}};
    auto unit = layout.entries[0].length;
    for (auto at = layout.dimensions.rbegin(); at != layout.dimensions.rend(); ++at) {
        if (at->buffer_step != unit) return {};
        levels.push_back({unit, at->step});
        unit *= at->count;
    }
    return levels;
}

/// Makes loops that fit both the file and memory. False if there are none, such as for rows of 6 and rows of 4.
bool lay_loops(Layout const& file, MemoryShape const& memory, std::int64_t bytes, Layout& result)
{
    auto const in_file = levels_of(file);
    if (in_file.empty()) return false;
    auto const in_memory = levels_of(memory);
    std::vector<std::int64_t> units;
    for (auto const* const levels : {&in_file, &in_memory})
        for (auto const& level : *levels) units.push_back(level.unit);
    units.push_back(bytes);
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
    for (std::size_t i = 1; i < units.size(); ++i)
        if (units[i] % units[i - 1] != 0) return false;

    result = {file.base, 0, {}, {{file.entries[0].offset, 1, 0}}, false};
    auto& length = result.entries[0].length;
    auto& dimensions = result.dimensions;  // fastest first, until the end
    for (std::size_t i = 0; i + 1 < units.size(); ++i) {
        Layout::Dimension const next{units[i + 1] / units[i], step_of(in_file, units[i]), step_of(in_memory, units[i])};
        if (dimensions.empty() && next.step == length && next.buffer_step == length) {
            length *= next.count;
        } else if (!dimensions.empty() && next.step == dimensions.back().count * dimensions.back().step &&
                   next.buffer_step == dimensions.back().count * dimensions.back().buffer_step) {
            dimensions.back().count *= next.count;
        } else {
            dimensions.push_back(next);
        }
    }
    std::reverse(dimensions.begin(), dimensions.end());
    return true;
}

/// Cuts pieces of the packed order at the gaps in memory.
class Splitter {
public:
    explicit Splitter(MemoryShape const& memory) : run_(memory.element_size)
    {
        for (auto at = memory.dimensions.rbegin(); at != memory.dimensions.rend(); ++at) {
            if (at->count == 1) continue;
            if (dimensions_.empty() && at->step == run_)
                run_ *= at->count;
            else
                dimensions_.push_back(*at);
        }
    }

    void split(std::int64_t offset, std::int64_t length, std::int64_t packed,
               std::vector<Layout::ListItem>& entries) const
    {
        while (length > 0) {
            auto const skip = packed % run_;
            auto const upto = std::min(length, run_ - skip);
            entries.push_back({offset, upto, place_of(packed / run_) + skip});
            offset += upto;
            packed += upto;
            length -= upto;
        }
    }

private:
    [[nodiscard]] std::int64_t place_of(std::int64_t run) const
    {
        std::int64_t place = 0;
        for (auto const& dimension : dimensions_) {
            place += run % dimension.count * dimension.step;
            run /= dimension.count;
        }
        return place;
    }

    std::int64_t run_;                                ///< bytes that lie side by side
    std::vector<MemoryShape::Dimension> dimensions_;  ///< fastest first
};

std::vector<std::int64_t> without_ones(std::vector<std::int64_t> counts)
{
    std::erase(counts, 1);
    return counts;
}

core::Status check_fit(Variable const& variable, MemoryShape const& memory)
{
    auto const bytes = static_cast<std::uint64_t>(memory.bytes());
    if (bytes != variable.bytes())
        return core::fail(Errc::invalid_argument,
                          fmt::format("the section has {} bytes, but {} were declared", bytes, variable.bytes()));
    auto const* const declared = variable.declared();
    if (!declared || declared->element_size != memory.element_size) return {};
    std::vector<std::int64_t> counts;
    for (auto const& dimension : memory.dimensions) counts.push_back(dimension.count);
    auto const mine = without_ones(counts);
    auto const theirs = without_ones(declared->count);
    if (mine == theirs || mine.size() < 2 || theirs.size() < 2) return {};
    return core::fail(Errc::invalid_argument, fmt::format("the section has {} elements, but {} were declared",
                                                          fmt::join(counts, " x "), fmt::join(declared->count, " x ")));
}

}  // namespace

std::int64_t MemoryShape::bytes() const
{
    return std::accumulate(dimensions.begin(), dimensions.end(), element_size,
                           [](std::int64_t product, Dimension const& dimension) { return product * dimension.count; });
}

bool MemoryShape::packed() const
{
    auto bytes = element_size;
    for (auto at = dimensions.rbegin(); at != dimensions.rend(); ++at) {
        if (at->count > 1 && at->step != bytes) return false;
        bytes *= at->count;
    }
    return true;
}

core::Result<PlacedShape> place_section(ArrayPart const& part, std::int64_t element_size,
                                        std::optional<std::uint64_t> array_bytes)
{
    if (auto status = check(part, element_size, array_bytes); !status) return tl::unexpected(status.error());
    PlacedShape placed{{element_size, {}}, 0};
    auto& dimensions = placed.shape.dimensions;
    if (std::find(part.count.begin(), part.count.end(), 0) != part.count.end()) {  // starts and strides mean nothing
        dimensions.push_back({0, element_size});
        return placed;
    }
    auto step = element_size;
    for (auto d = part.shape.size(); d-- > 0; step *= part.shape[d]) {
        auto const stride = part.stride.empty() || part.count[d] == 1 ? 1 : part.stride[d];
        dimensions.push_back({part.count[d], step * stride});
        placed.begin += part.start[d] * step;
    }
    std::reverse(dimensions.begin(), dimensions.end());
    return placed;
}

core::Result<Variable> lay_over(Variable const& variable, MemoryShape const& memory)
{
    if (auto status = check_fit(variable, memory); !status) return tl::unexpected(status.error());
    std::vector<Layout> layouts;
    auto const bytes = static_cast<std::int64_t>(variable.bytes());
    if (bytes == 0) return variable.relaid({});
    if (variable.layouts().size() == 1) {
        Layout loops;
        if (lay_loops(variable.layouts()[0], memory, bytes, loops)) return variable.relaid({std::move(loops)});
    }
    Splitter const splitter(memory);
    for (auto const& layout : variable.layouts()) {
        Layout list{0, 0, {}, {}, false};
        each_piece(layout, [&](std::int64_t offset, std::int64_t length, std::int64_t packed) {
            splitter.split(offset, length, packed, list.entries);
        });
        layouts.push_back(std::move(list));
    }
    return variable.relaid(std::move(layouts));
}

Layout places_of(MemoryShape const& memory)
{
    auto const bytes = memory.bytes();
    Layout places;
    if (bytes > 0) (void)lay_loops({0, 0, {}, {{0, bytes, 0}}}, memory, bytes, places);  // one piece meets any loops
    return places;
}

}  // namespace tapioca::pattern
