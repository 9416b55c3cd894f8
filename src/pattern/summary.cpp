#include "pattern/summary.hpp"

#include <algorithm>

#include "core/units.hpp"
#include "pattern/read_once.hpp"

namespace tapioca::pattern {

namespace {

constexpr std::uint64_t most_pieces_hashed = std::uint64_t{1} << 22;

/// The finaliser of SplitMix64: every bit of the offset affects every bit of the hash.
constexpr std::uint64_t mix(std::int64_t offset)
{
    auto x = static_cast<std::uint64_t>(offset) + 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/// The bitwise or of all offsets, steps and lengths of a layout.
std::int64_t bits_of(Layout const& layout)
{
    std::int64_t bits = 0;
    for (auto const& dimension : layout.dimensions) bits |= dimension.step;
    for (auto const& entry : layout.entries) bits |= (layout.base + entry.offset) | entry.length;
    return bits;
}

std::uint64_t edges_of(Layout const& layout)
{
    std::uint64_t edges = 0;
    if (layout.dimensions.empty()) {  // a list may be long, so without a cursor
        for (auto const& entry : layout.entries)
            edges += mix(layout.base + entry.offset) - mix(layout.base + entry.offset + entry.length);
        return edges;
    }
    LayoutCursor cursor(layout);
    for (PieceRun run; cursor.next(no_offset, run);)
        for (std::int64_t i = 0, offset = run.offset; i < run.count; ++i, offset += run.stride)
            edges += mix(offset) - mix(offset + run.length);
    return edges;
}

/// The number of slices of the file that a layout touches. A long layout is assumed to touch all slices between its
/// first and its last byte.
std::uint64_t spans_of(Layout const& layout)
{
    constexpr std::uint64_t most_counted = 1U << 14;
    std::uint64_t spans = 0;
    LayoutCursor cursor(layout);
    auto const begin = cursor.position();
    while (cursor.position() < no_offset - Summary::span_bytes) {
        if (++spans == most_counted)
            return static_cast<std::uint64_t>((layout.end() - begin) / Summary::span_bytes) + 1;
        cursor.seek((cursor.position() / Summary::span_bytes + 1) * Summary::span_bytes);
    }
    return spans;
}

}  // namespace

bool Summary::dense() const
{
    return bytes > 0 && unproven == 0 && edges == mix(begin) - mix(end);
}

void Summary::add(Summary const& other)
{
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
    bytes += other.bytes;
    pieces += other.pieces;
    spans += other.spans;
    most_bytes = std::max(most_bytes, other.most_bytes);
    most_pieces = std::max(most_pieces, other.most_pieces);
    most_bookkeeping_bytes = std::max(most_bookkeeping_bytes, other.most_bookkeeping_bytes);
    ranks += other.ranks;
    ranks_with_data += other.ranks_with_data;
    bits |= other.bits;
    edges += other.edges;
    unproven += other.unproven;
    fewest_variables = std::min(fewest_variables, other.fewest_variables);
    most_variables = std::max(most_variables, other.most_variables);
    most_layouts = std::max(most_layouts, other.most_layouts);
}

std::vector<std::string> names_of(Variables const& variables)
{
    std::vector<std::string> names;
    if (std::all_of(variables.begin(), variables.end(), [](auto const& v) { return v->name().empty(); })) return names;
    for (std::size_t number = 0; number < variables.size(); ++number) {
        auto const name = variables[number]->name();
        names.push_back(name.empty() ? called(number, name) : std::string(name));
    }
    return names;
}

Summary summarise(Variables const& variables)
{
    Summary summary;
    summary.ranks = 1;
    summary.fewest_variables = summary.most_variables = variables.size();
    for (auto const& variable : variables) {
        summary.bytes += variable->bytes();
        summary.most_bookkeeping_bytes += variable->bookkeeping_bytes();
        summary.most_layouts += variable->layouts().size();
        if (variable->layered()) summary.most_bookkeeping_bytes += ReadOnce::most_bytes(*variable);
        for (auto const& layout : variable->layouts()) {
            summary.begin = std::min(summary.begin, LayoutCursor(layout).position());
            summary.end = std::max(summary.end, layout.end());
            summary.spans += spans_of(layout);
            summary.pieces += static_cast<std::uint64_t>(layout.pieces());
            summary.bits |= static_cast<std::uint64_t>(bits_of(layout));
            if (summary.pieces <= most_pieces_hashed)
                summary.edges += edges_of(layout);
            else
                summary.unproven = 1;
        }
    }
    summary.most_bytes = summary.bytes;
    summary.most_pieces = summary.pieces;
    summary.ranks_with_data = summary.bytes > 0 ? 1 : 0;
    return summary;
}

std::vector<std::uint64_t> histogram(Variables const& variables, std::int64_t begin, std::int64_t end, std::size_t bins)
{
    auto const width = std::max<std::int64_t>(1, core::divide_up(end - begin, static_cast<std::int64_t>(bins)));
    std::vector<std::int64_t> edges{begin};
    for (std::size_t i = 0; i < bins; ++i) edges.push_back(end - edges.back() < width ? end : edges.back() + width);
    return bytes_between(variables, edges);
}

std::vector<std::uint64_t> bytes_between(Variables const& variables, std::vector<std::int64_t> const& edges)
{
    std::vector<std::uint64_t> counts(edges.size() - 1, 0);
    add_bytes_between(variables, edges, counts);
    return counts;
}

namespace {

void add_bytes_between(Layout const& layout, std::vector<std::int64_t> const& edges, std::vector<std::uint64_t>& counts)
{
    if (layout.in_order && static_cast<std::int64_t>(edges.size()) < layout.pieces()) {
        auto before = layout.bytes_before(edges.front());
        for (std::size_t slice = 0; slice + 1 < edges.size(); ++slice) {
            auto const upto = layout.bytes_before(edges[slice + 1]);
            counts[slice] += static_cast<std::uint64_t>(upto - before);
            before = upto;
        }
        return;
    }
    LayoutCursor cursor(layout);
    cursor.seek(edges.front());
    while (cursor.position() < edges.back()) {
        auto const next = std::upper_bound(edges.begin(), edges.end(), cursor.position());
        auto& count = counts[static_cast<std::size_t>(next - edges.begin()) - 1];
        for (PieceRun run; cursor.next(*next, run);) count += static_cast<std::uint64_t>(run.length * run.count);
    }
}

}  // namespace

void add_bytes_between(Variables const& variables, std::vector<std::int64_t> const& edges,
                       std::vector<std::uint64_t>& counts)
{
    for (auto const& variable : variables)
        for (auto const& layout : variable->layouts()) add_bytes_between(layout, edges, counts);
}

}  // namespace tapioca::pattern
