#include "subfile/straight.hpp"

#include <algorithm>

#include "core/descriptor.hpp"

namespace tapioca::subfile {

namespace {

/// A variable of so few pieces is looked up piece by piece.
constexpr std::int64_t few_pieces = 16;
/// Stretches that are shorter on average are left to the aggregators.
constexpr std::int64_t long_stretch = std::int64_t{128} << 10;

bool same_pieces(pattern::Layout const& a, pattern::Layout const& b)
{
    auto const same_step = [](auto const& x, auto const& y) { return x.count == y.count && x.step == y.step; };
    auto const same_entry = [](auto const& x, auto const& y) { return x.offset == y.offset && x.length == y.length; };
    return std::equal(a.dimensions.begin(), a.dimensions.end(), b.dimensions.begin(), b.dimensions.end(), same_step) &&
           std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same_entry);
}

/// The bytes of a layout whose pieces lie side by side in the buffer, in the order of the file; otherwise -1.
std::int64_t packed_bytes(pattern::Layout const& layout)
{
    if (!layout.in_order) return -1;
    std::int64_t bytes = 0;
    for (auto const& entry : layout.entries) bytes += entry.length;
    for (auto d = layout.dimensions.rbegin(); d != layout.dimensions.rend(); ++d) {
        if (d->count > 1 && d->buffer_step != bytes) return -1;
        bytes *= d->count;
    }
    return bytes;
}

/// The place of a layout that was written as it is, and over which nothing was written since.
std::optional<PlacedPiece> as_written(SetTarget& set, pattern::Layout const& layout, std::int64_t shift)
{
    auto const bytes = packed_bytes(layout);
    if (bytes < 0) return std::nullopt;
    auto const begin = layout.base + layout.entries.front().offset + shift;
    auto const end = layout.end() + shift;
    auto const holdings = set.find(begin, end);
    if (!holdings) return std::nullopt;
    auto const is_it = [&](Holding const& holding) {
        auto const& part = holding.part->layout;
        return packed_bytes(part) == bytes && part.base + holding.shift == layout.base + shift && holding.end >= end &&
               same_pieces(part, layout);
    };
    auto const found = std::find_if(holdings->rbegin(), holdings->rend(), is_it);
    if (found == holdings->rend()) return std::nullopt;
    for (auto const& other : *holdings) {
        bool const itself = other.part == found->part && other.position == found->position;
        bool const under = other.epoch < found->epoch;
        bool const beside = other.epoch == found->epoch && other.form->disjoint && found->form->disjoint;
        if (!itself && !under && !beside) return std::nullopt;
    }
    return PlacedPiece{found->subfile, found->position + found->part->layout.buffer, bytes, layout.buffer};
}

/// Adds the stretches of a layout of a few pieces; false if some of them are no chunk's, or cannot be opened.
bool add_stretches(SetTarget& set, pattern::Layout const& layout, std::int64_t shift,
                   std::vector<StraightPiece>& pieces)
{
    bool all = true;
    pattern::each_piece(layout, [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
        auto const begin = offset + shift;
        auto const holdings = set.find(begin, begin + length);
        all = all && holdings;
        if (!all) return;
        for (auto const& part : latest_parts(*holdings, begin, begin + length, true)) {
            auto const fd = part.subfile == in_rest ? core::Result<int>(-1) : set.subfile(part.subfile);
            all = all && fd && *fd >= 0;
            if (all) pieces.push_back({*fd, part.at, part.length, place + (part.offset - begin)});
        }
    });
    return all;
}

}  // namespace

std::optional<std::vector<StraightPiece>> straight_pieces(SetTarget& set, pattern::Variable const& variable,
                                                          std::int64_t shift)
{
    std::vector<StraightPiece> pieces;
    if (variable.bytes() == 0) return pieces;
    for (auto const& layout : variable.layouts()) {
        if (layout.pieces() == 0) continue;
        auto const piece = as_written(set, layout, shift);
        auto const fd = piece ? set.subfile(piece->subfile) : core::Result<int>(-1);
        if (!fd) return std::nullopt;
        if (piece)
            pieces.push_back({*fd, piece->at, piece->length, piece->place});
        else if (layout.pieces() > few_pieces || !add_stretches(set, layout, shift, pieces))
            return std::nullopt;
    }
    auto const wanted = static_cast<std::int64_t>(variable.bytes());
    auto const count = static_cast<std::int64_t>(pieces.size());
    bool const worth = count <= static_cast<std::int64_t>(variable.layouts().size()) || wanted / count >= long_stretch;
    return worth ? std::optional(std::move(pieces)) : std::nullopt;
}

namespace {

/// Finds where pieces of the file lie that come, as a rule, in ascending order, looking at a window at a time.
class PartFinder {
public:
    PartFinder(SetTarget& set, std::int64_t end) : set_(set), end_(end) {}

    /// Calls visit(part) for the parts of [begin, begin + length).
    template <class Visit>
    core::Status each(std::int64_t begin, std::int64_t length, Visit const& visit)
    {
        auto const end = begin + length;
        while (begin < end) {
            if (auto status = look_at(begin); !status) return status;
            auto part = std::upper_bound(parts_.begin(), parts_.end(), begin,
                                         [](std::int64_t at, FilePart const& one) { return at < one.offset; });
            auto const& found = *--part;  // the window has every byte
            auto const from = begin - found.offset;
            auto const taken = std::min(found.length - from, end - begin);
            visit(FilePart{begin, taken, found.subfile, found.at + from});
            begin += taken;
        }
        return {};
    }

private:
    core::Status look_at(std::int64_t begin)
    {
        constexpr std::int64_t window = std::int64_t{16} << 20;
        if (begin >= from_ && begin < to_) return {};
        auto found = set_.parts(begin, std::min(end_, begin + window));
        if (!found) return tl::unexpected(found.error());
        parts_ = std::move(*found);
        from_ = begin;
        to_ = std::min(end_, begin + window);
        return {};
    }

    SetTarget& set_;
    std::int64_t end_;  ///< of what is looked for
    std::int64_t from_ = 0, to_ = 0;
    std::vector<FilePart> parts_;
};

/// Adds a piece, or makes the last one longer.
void add(std::vector<PlacedPiece>& pieces, PlacedPiece const& piece)
{
    if (!pieces.empty()) {
        auto& last = pieces.back();
        if (last.subfile == piece.subfile && last.at + last.length == piece.at &&
            last.place + last.length == piece.place) {
            last.length += piece.length;
            return;
        }
    }
    pieces.push_back(piece);
}

}  // namespace

core::Result<std::vector<PlacedPiece>> placed_pieces(SetTarget& set, pattern::Variable const& variable,
                                                     std::int64_t shift, std::int64_t size)
{
    std::vector<PlacedPiece> pieces;
    core::Status status;
    for (auto const& layout : variable.layouts()) {
        if (layout.pieces() == 0) continue;
        auto const end = layout.end() + shift;
        auto const piece = as_written(set, layout, shift);
        if (piece) {
            add(pieces, *piece);
            continue;
        }
        PartFinder finder(set, std::min(end, size));
        pattern::each_piece(layout, [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
            auto const begin = offset + shift;
            auto const wanted = std::min(length, size - begin);
            if (!status || wanted <= 0) return;
            status = finder.each(begin, wanted, [&](FilePart const& part) {
                add(pieces, {part.subfile, part.at, part.length, place + (part.offset - begin)});
            });
        });
        if (!status) return tl::unexpected(status.error());
    }
    return pieces;
}

core::Status read_piece(StraightPiece const& piece, std::byte* buffer)
{
    auto status = core::read_all(piece.fd, static_cast<std::uint64_t>(piece.at),
                                 {buffer + piece.place, static_cast<std::size_t>(piece.length)}, "a subfile");
    if (!status && status.error().sys_errno == 0)
        status.error().text += ": `tapioca subfile verify` lists what is missing";
    return status;
}

}  // namespace tapioca::subfile
