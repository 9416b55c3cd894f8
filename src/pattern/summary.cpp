#include "pattern/summary.hpp"

#include <algorithm>

#include "core/units.hpp"

namespace tapioca::pattern {

namespace {

constexpr std::uint64_t most_pieces_hashed = std::uint64_t{1} << 22;

/// The finaliser of SplitMix64: every bit of the offset decides about every bit of the hash.
constexpr std::uint64_t mix(std::int64_t offset)
{
    auto x = static_cast<std::uint64_t>(offset) + 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/// What every piece of a layout adds to a summary. Lists may be long: one pass, without a cursor.
struct Trace {
    std::uint64_t edges = 0;
    std::int64_t bits = 0;
};

Trace trace_of(List const& list)
{
    Trace trace;
    for (auto const& [offset, length, buffer] : list.entries) {
        trace.edges += mix(offset) - mix(offset + length);
        trace.bits |= offset | length;
    }
    return trace;
}

Trace trace_of(Regular const& regular, bool hashed)
{
    Trace trace;
    trace.bits = regular.base | regular.length;
    for (auto const& dimension : regular.dimensions) trace.bits |= dimension.step;
    if (!hashed) return trace;
    Layout const layout(regular);
    Cursor cursor(layout);
    for (Run run; cursor.next(no_offset, run);)
        for (std::int64_t i = 0, offset = run.offset; i < run.count; ++i, offset += run.stride)
            trace.edges += mix(offset) - mix(offset + run.length);
    return trace;
}

std::int64_t end_of(Layout const& layout)
{
    return std::visit(
        [](auto const& l) {
            auto const last = l.pieces() - 1;
            if constexpr (std::is_same_v<std::decay_t<decltype(l)>, Regular>)
                return l.offset_of(last) + l.length;
            else
                return l.entries.back().offset + l.entries.back().length;
        },
        layout);
}

/// Slices of the file that a layout touches; a long one is taken to touch all between its first and its last.
std::uint64_t spans_of(Layout const& layout)
{
    constexpr std::uint64_t most_counted = 1U << 14;
    std::uint64_t spans = 0;
    Cursor cursor(layout);
    auto const begin = cursor.position();
    while (cursor.position() < no_offset - Summary::span_bytes) {
        if (++spans == most_counted)
            return static_cast<std::uint64_t>((end_of(layout) - begin) / Summary::span_bytes) + 1;
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
}

Summary summarise(Variables const& variables)
{
    Summary summary;
    summary.ranks = 1;
    summary.fewest_variables = summary.most_variables = variables.size();
    for (auto const& variable : variables) {
        summary.bytes += variable->bytes();
        summary.most_bookkeeping_bytes += variable->bookkeeping_bytes();
        for (auto const& layout : variable->layouts()) {
            summary.begin = std::min(summary.begin, Cursor(layout).position());
            summary.end = std::max(summary.end, end_of(layout));
            summary.spans += spans_of(layout);
            summary.pieces += static_cast<std::uint64_t>(std::visit([](auto const& l) { return l.pieces(); }, layout));
            bool const hashed = summary.pieces <= most_pieces_hashed;
            auto const* const list = std::get_if<List>(&layout);
            auto const trace = list ? trace_of(*list) : trace_of(std::get<Regular>(layout), hashed);
            summary.bits |= static_cast<std::uint64_t>(trace.bits);
            if (hashed)
                summary.edges += trace.edges;
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

/// Bytes of a list that is in_order, from its beginning up to `edge`.
std::int64_t bytes_upto(List const& list, std::int64_t edge)
{
    auto const at = std::lower_bound(list.entries.begin(), list.entries.end(), edge,
                                     [](auto const& entry, std::int64_t offset) { return entry.offset < offset; });
    if (at == list.entries.begin()) return 0;
    auto const& last = *std::prev(at);
    return last.buffer + std::min(last.length, edge - last.offset) - list.entries.front().buffer;
}

void add_bytes_between(List const& list, std::vector<std::int64_t> const& edges, std::vector<std::uint64_t>& counts)
{
    if (list.in_order && edges.size() < list.entries.size()) {
        auto before = bytes_upto(list, edges.front());
        for (std::size_t slice = 0; slice + 1 < edges.size(); ++slice) {
            auto const upto = bytes_upto(list, edges[slice + 1]);
            counts[slice] += static_cast<std::uint64_t>(upto - before);
            before = upto;
        }
        return;
    }
    std::size_t slice = 0;
    for (auto const& [offset, length, buffer] : list.entries) {
        auto begin = std::max(offset, edges.front());
        auto const end = std::min(offset + length, edges.back());
        while (begin < end) {
            if (begin >= edges[slice + 1])
                slice =
                    static_cast<std::size_t>(std::upper_bound(edges.begin(), edges.end(), begin) - edges.begin()) - 1;
            auto const upto = std::min(end, edges[slice + 1]);
            counts[slice] += static_cast<std::uint64_t>(upto - begin);
            begin = upto;
        }
    }
}

}  // namespace

void add_bytes_between(Variables const& variables, std::vector<std::int64_t> const& edges,
                       std::vector<std::uint64_t>& counts)
{
    for (auto const& variable : variables)
        for (auto const& layout : variable->layouts()) {
            if (auto const* const list = std::get_if<List>(&layout)) {
                add_bytes_between(*list, edges, counts);
                continue;
            }
            Cursor cursor(layout);
            cursor.seek(edges.front());
            while (cursor.position() < edges.back()) {
                auto const next = std::upper_bound(edges.begin(), edges.end(), cursor.position());
                auto& count = counts[static_cast<std::size_t>(next - edges.begin()) - 1];
                for (Run run; cursor.next(*next, run);) count += static_cast<std::uint64_t>(run.length * run.count);
            }
        }
}

}  // namespace tapioca::pattern
