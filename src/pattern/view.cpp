// Turns file views into variables: an access consists of a head, a body of whole tiles and a tail. Loops stay loops.
#include <algorithm>

#include "pattern/type_node.hpp"

namespace tapioca::pattern {

namespace {

using TypeNode = Typemap::TypeNode;
using Pointer = TypeNode::Pointer;
__extension__ typedef __int128 Wide;  // offsets that may pass 2^63

}  // namespace

std::int64_t TiledView::offset_of(std::int64_t position) const
{
    auto const bytes = tile.bytes();
    return displacement + position / bytes * extent + tile.origin() + tile.root()->offset_of(position % bytes);
}

std::int64_t Shape::pieces() const
{
    auto const size = tile.bytes();
    if (bytes == 0 || size == 0) return 0;
    if (tile.contiguous() && extent == size) return 1;
    auto const all = static_cast<Wide>(tile.blocks()) * bytes / size;
    return static_cast<std::int64_t>(std::clamp<Wide>(all, 1, bytes));
}

core::Result<Access> access_of(TiledView const& view, std::int64_t from, std::int64_t bytes)
{
    if (bytes == 0) return Access{};
    auto const unsupported = [](char const* why) { return core::fail(Errc::unsupported, why); };
    auto const size = view.tile.bytes();
    std::int64_t end = 0;
    if (from < 0 || bytes < 0 || __builtin_add_overflow(from, bytes, &end))
        return unsupported("the access passes 2^63 bytes");
    if (size == 0) return unsupported("the file view has no bytes");
    if (!view.tile.ascending()) return unsupported("the file view's offsets do not ascend");
    bool const one_tile = from / size == (end - 1) / size;
    if (!one_tile && view.extent < view.tile.end() - view.tile.begin())
        return unsupported("tiles of the file view overlap");

    auto const offset = [&](std::int64_t position) {
        return static_cast<Wide>(view.displacement) + static_cast<Wide>(position / size) * view.extent +
               view.tile.origin() + view.tile.root()->offset_of(position % size);
    };
    auto const first = offset(from);
    if (first < 0) return unsupported("the access begins before the file");
    auto const last = offset(end - 1);
    if (last >= no_offset) return unsupported("the access passes 2^63 bytes");
    if (last - first == bytes - 1) return Access{{Typemap::block(1), 1, 0, bytes}, static_cast<std::int64_t>(first)};

    Access access{{view.tile.shifted(-view.tile.origin()), one_tile ? 0 : view.extent, from % size, bytes},
                  static_cast<std::int64_t>(first)};
    auto& shape = access.shape;
    // If copies of a smaller map make up the whole tile, that map is used as the tile.
    for (auto node = shape.tile.root(); !one_tile && node->count > 0 && node->count * node->step == shape.extent;
         node = shape.tile.root()) {
        shape.tile = Typemap(node->body);
        shape.extent = node->step;
        shape.phase %= node->body->bytes;
    }
    return access;
}

namespace {

using Dimensions = std::vector<Layout::Dimension>;
using Entries = std::vector<Layout::ListItem>;

/// Either a whole node, `count` times, or blocks.
struct Repeated {
    std::int64_t offset = 0;
    std::int64_t buffer = 0;
    Pointer node = {};
    std::int64_t count = 1;
    std::int64_t step = 0;
    Entries entries = {};

    [[nodiscard]] std::int64_t blocks() const
    {
        return node ? count * node->blocks : static_cast<std::int64_t>(entries.size());
    }
    void expand(Entries& to) const
    {
        for (auto const& entry : entries) append(to, entry);
        for (std::int64_t i = 0; node && i < count; ++i) node->expand(offset + i * step, buffer + i * node->bytes, to);
    }
};

/// Cuts ranges of data bytes out of nodes, in data order. Byte `from` of a node that lies at `offset` goes to `buffer`.
class Cutter {
public:
    std::vector<Repeated> pieces;

    void cut(Pointer const& node, std::int64_t offset, std::int64_t from, std::int64_t to, std::int64_t buffer)
    {
        if (from == 0 && to == node->bytes) {
            pieces.push_back({offset, buffer, node});
        } else if (node->count > 0) {
            cut_turns(node->body, node->step, offset, from, to, buffer);
        } else if (!node->children.empty()) {
            for (auto c = node->child_of(from); c < node->children.size() && node->children[c].data < to; ++c) {
                auto const& child = node->children[c];
                auto const begin = std::max(from, child.data);
                auto const end = std::min(to, child.data + child.node->bytes);
                cut(child.node, offset + child.offset, begin - child.data, end - child.data, buffer + begin - from);
            }
        } else {
            pieces.emplace_back();
            for (auto e = node->entry_of(from); e < node->entries.size() && node->entries[e].buffer < to; ++e) {
                auto const& entry = node->entries[e];
                auto const begin = std::max(from, entry.buffer);
                auto const end = std::min(to, entry.buffer + entry.length);
                pieces.back().entries.push_back(
                    {offset + entry.offset + begin - entry.buffer, end - begin, buffer + begin - from});
            }
        }
    }

    /// The same for `body` repeated for ever.
    void cut_turns(Pointer const& body, std::int64_t step, std::int64_t offset, std::int64_t from, std::int64_t to,
                   std::int64_t buffer)
    {
        auto const size = body->bytes;
        while (from < to) {
            auto const place = offset + from / size * step;
            auto const skip = from % size;
            auto const whole = skip == 0 ? (to - from) / size : 0;
            auto const upto = whole > 0 ? whole * size : std::min(size - skip, to - from);
            if (whole > 0)
                pieces.push_back({place, buffer, body, whole, step});
            else
                cut(body, place, skip, skip + upto, buffer);
            from += upto;
            buffer += upto;
        }
    }
};

/// Turns pieces into layouts: small ones go into one list, and each long loop gets a layout of its own.
class Arranger {
public:
    explicit Arranger(std::int64_t expanded) : expanded_(expanded) {}
    std::vector<Layout> layouts;

    void arrange(std::vector<Repeated> const& pieces, Dimensions const& dimensions)
    {
        if (pieces.size() == 1 && pieces[0].node) return place(pieces[0], dimensions);
        Entries entries;
        auto const room = pieces.size() > many_pieces ? most_expanded : expanded_;
        for (auto const& piece : pieces) {
            bool const list = !piece.node || (piece.count == 1 && !piece.node->entries.empty());
            if (list || static_cast<std::int64_t>(entries.size()) + piece.blocks() <= room)
                piece.expand(entries);
            else
                place(piece, dimensions);
        }
        add({0, 0, dimensions, std::move(entries)});
    }

private:
    static constexpr std::size_t many_pieces = 64;  ///< more layouts than this would cost more than expanding them
    static constexpr std::int64_t most_expanded = std::int64_t{1} << 22;

    void place(Repeated const& piece, Dimensions dimensions)
    {
        auto const* node = piece.node.get();
        if (piece.count > 1) dimensions.push_back({piece.count, piece.step, node->bytes});
        for (; node->count > 0; node = node->body.get())
            dimensions.push_back({node->count, node->step, node->body->bytes});
        if (node->children.empty()) return add({piece.offset, piece.buffer, std::move(dimensions), node->entries});
        std::vector<Repeated> pieces;
        for (auto const& child : node->children)
            pieces.push_back({piece.offset + child.offset, piece.buffer + child.data, child.node});
        arrange(pieces, dimensions);
    }

    void add(Layout layout)
    {
        if (layout.entries.empty()) return;
        for (std::size_t i = 1; i < layout.entries.size(); ++i) {
            auto const& before = layout.entries[i - 1];
            layout.in_order = layout.in_order && layout.entries[i].buffer == before.buffer + before.length;
        }
        layout.entries.shrink_to_fit();
        layouts.push_back(std::move(layout));
    }

    std::int64_t expanded_;
};

}  // namespace

Variable variable_of(Access const& access, std::int64_t expanded)
{
    auto const& [tile, extent, phase, bytes] = access.shape;
    if (bytes == 0) return {{}, 0};
    if (tile.contiguous() && extent == tile.bytes()) return {{{access.origin, 0, {}, {{0, bytes, 0}}}}, bytes};
    auto const start = access.origin - tile.root()->offset_of(phase);
    Cutter cutter;
    cutter.cut_turns(tile.root(), extent, start, phase, phase + bytes, 0);
    Arranger arranger(expanded);
    arranger.arrange(cutter.pieces, {});
    return {std::move(arranger.layouts), bytes};
}

}  // namespace tapioca::pattern
