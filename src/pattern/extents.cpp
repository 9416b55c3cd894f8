// Turns extents into layouts: checks them, recognises regular lists, sorts, and separates extents that overlap.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "pattern/variable.hpp"

namespace tapioca::pattern {

namespace {

core::Status check(std::size_t number, std::string_view name, std::span<Extent const> extents, std::int64_t& bytes)
{
    for (std::size_t i = 0; i < extents.size(); ++i) {
        auto const [offset, length] = extents[i];
        std::int64_t end = 0;
        if (offset < 0 || length < 0)
            return core::fail(Errc::invalid_argument,
                              fmt::format("{}: extent {} has offset {} and length {}: neither may be negative",
                                          called(number, name), i, offset, length));
        if (__builtin_add_overflow(offset, length, &end) || __builtin_add_overflow(bytes, length, &bytes))
            return core::fail(Errc::invalid_argument,
                              fmt::format("{}: extent {} with offset {} and length {} passes 2^63 bytes",
                                          called(number, name), i, offset, length));
    }
    return {};
}

bool ascending_and_disjoint(std::vector<Layout::ListItem> const& entries)
{
    for (std::size_t i = 1; i < entries.size(); ++i)
        if (entries[i].offset < entries[i - 1].offset + entries[i - 1].length) return false;
    return true;
}

/// Most lists have equal pieces at equal distances; these need no list.
bool regular(std::vector<Layout::ListItem> const& entries, Layout& found)
{
    if (entries.size() < 2) return false;
    auto const step = entries[1].offset - entries[0].offset;
    auto const length = entries[0].length;
    for (std::size_t i = 1; i < entries.size(); ++i)
        if (entries[i].offset - entries[i - 1].offset != step || entries[i].length != length) return false;
    found.dimensions = {{static_cast<std::int64_t>(entries.size()), step, length}};
    found.entries = {entries[0]};
    return true;
}

/// Gives each entry, in declared order, the lowest layer above all earlier entries that it overlaps.
std::vector<std::vector<Layout::ListItem>> separate(std::vector<Layout::ListItem> const& declared)
{
    struct Top {
        std::int64_t end;
        std::size_t layer;
    };
    std::map<std::int64_t, Top> tops;  // disjoint ranges by their start, each with its highest layer so far
    std::vector<std::vector<Layout::ListItem>> layers;
    for (auto const& entry : declared) {
        auto const end = entry.offset + entry.length;
        std::size_t layer = 0;
        auto at = tops.lower_bound(entry.offset);
        if (at != tops.begin() && std::prev(at)->second.end > entry.offset) --at;
        while (at != tops.end() && at->first < end) {
            auto const [start, top] = *at;
            layer = std::max(layer, top.layer + 1);
            at = tops.erase(at);
            if (start < entry.offset) tops[start] = {entry.offset, top.layer};
            if (top.end > end) at = tops.insert({end, top}).first;
        }
        tops[entry.offset] = {end, layer};
        if (layer == layers.size()) layers.emplace_back();
        layers[layer].push_back(entry);
    }
    return layers;
}

void sort_by_offset(std::vector<Layout::ListItem>& entries)
{
    std::sort(entries.begin(), entries.end(), [](auto const& a, auto const& b) { return a.offset < b.offset; });
}

}  // namespace

Variable Variable::from_extents(std::size_t number, std::span<Extent const> extents, std::string_view name)
{
    std::int64_t bytes = 0;
    if (auto status = check(number, name, extents, bytes); !status) return Variable(status).named(name);

    std::vector<Layout::ListItem> entries;
    entries.reserve(extents.size());
    std::int64_t buffer = 0;
    for (auto const [offset, length] : extents) {
        if (length > 0) entries.push_back({offset, length, buffer});
        buffer += length;
    }
    if (entries.empty()) return Variable({}, 0).named(name);

    std::vector<Layout> layouts;
    bool layered = false;
    if (!ascending_and_disjoint(entries)) {
        auto sorted = entries;
        sort_by_offset(sorted);
        if (!ascending_and_disjoint(sorted)) {
            layered = true;
            for (auto& layer : separate(entries)) {
                sort_by_offset(layer);
                layer.shrink_to_fit();
                layouts.push_back({0, 0, {}, std::move(layer), false});
            }
        } else {
            layouts.push_back({0, 0, {}, std::move(sorted), false});
        }
    } else if (Layout found; regular(entries, found)) {
        layouts.push_back(std::move(found));
    } else {
        layouts.push_back({0, 0, {}, std::move(entries)});
    }
    Variable variable(std::move(layouts), bytes);
    variable.layered_ = layered;
    return std::move(variable).named(name);
}

}  // namespace tapioca::pattern
