// Packing and unpacking: copies a typemap's bytes between memory and a contiguous buffer.
#include <algorithm>

#include "core/copy.hpp"
#include "pattern/type_node.hpp"

namespace tapioca::pattern {

namespace {

using TypeNode = Typemap::TypeNode;

/// Walks data bytes [from, to) of a node at `offset`, and calls copy(offset, data, length, count, step, data_step) for
/// the pieces.
template <class Copy>
struct TypeWalk {
    Copy copy;

    void range(TypeNode const& node, std::int64_t offset, std::int64_t from, std::int64_t to, std::int64_t data) const
    {
        if (node.count > 0) return loop(node, offset, from, to, data);
        if (node.children.empty()) return list(node, offset, from, to, data);
        for (auto c = node.child_of(from); c < node.children.size() && node.children[c].data < to; ++c) {
            auto const& child = node.children[c];
            auto const begin = std::max(from, child.data);
            auto const end = std::min(to, child.data + child.node->bytes);
            range(*child.node, offset + child.offset, begin - child.data, end - child.data, data + begin - from);
        }
    }

    void list(TypeNode const& node, std::int64_t offset, std::int64_t from, std::int64_t to, std::int64_t data) const
    {
        for (auto e = node.entry_of(from); e < node.entries.size() && node.entries[e].buffer < to; ++e) {
            auto const& entry = node.entries[e];
            auto const begin = std::max(from, entry.buffer);
            auto const end = std::min(to, entry.buffer + entry.length);
            copy(offset + entry.offset + begin - entry.buffer, data + begin - from, end - begin, 1, 0, 0);
        }
    }

    void loop(TypeNode const& node, std::int64_t offset, std::int64_t from, std::int64_t to, std::int64_t data) const
    {
        auto const size = node.body->bytes;
        while (from < to) {
            auto const turn = from / size;
            auto const skip = from % size;
            auto const whole = skip == 0 ? (to - from) / size : 0;
            auto const upto = whole > 0 ? whole * size : std::min(size, skip + to - from) - skip;
            if (whole > 0)
                turns(*node.body, offset + turn * node.step, whole, node.step, data);
            else
                range(*node.body, offset + turn * node.step, skip, skip + upto, data);
            from += upto;
            data += upto;
        }
    }

    /// If the body has a few small blocks, each block is copied for many turns at a time, since that is faster.
    void turns(TypeNode const& body, std::int64_t offset, std::int64_t count, std::int64_t step,
               std::int64_t data) const
    {
        if (body.entries.empty()) {
            for (std::int64_t i = 0; i < count; ++i)
                range(body, offset + i * step, 0, body.bytes, data + i * body.bytes);
            return;
        }
        constexpr std::int64_t in_cache = 16 * 1024;
        auto const at_once = body.entries.size() == 1 ? count : std::max<std::int64_t>(1, in_cache / body.bytes);
        for (std::int64_t i = 0; i < count; i += at_once) {
            auto const now = std::min(at_once, count - i);
            for (auto const& entry : body.entries)
                copy(offset + i * step + entry.offset, data + i * body.bytes + entry.buffer, entry.length, now, step,
                     body.bytes);
        }
    }
};

template <class Copy>
void walk(Typemap const& map, std::int64_t from, std::int64_t bytes, Copy copy)
{
    if (bytes > 0) TypeWalk<Copy>{copy}.range(*map.root(), map.origin(), from, from + bytes, 0);
}

}  // namespace

void pack(Typemap const& map, std::byte const* base, std::int64_t from, std::int64_t bytes, std::byte* packed)
{
    walk(map, from, bytes, [=](auto offset, auto data, auto length, auto count, auto step, auto data_step) {
        core::copy_pieces(packed + data, base + offset, length, count, data_step, step);
    });
}

void unpack(Typemap const& map, std::byte* base, std::int64_t from, std::int64_t bytes, std::byte const* packed)
{
    walk(map, from, bytes, [=](auto offset, auto data, auto length, auto count, auto step, auto data_step) {
        core::copy_pieces(base + offset, packed + data, length, count, step, data_step);
    });
}

}  // namespace tapioca::pattern
