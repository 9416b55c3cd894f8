// Builds typemaps in a normal form, bottom up. Each step takes time in proportion to what is added.
#include "pattern/typemap.hpp"

#include <algorithm>
#include <array>

#include "pattern/type_node.hpp"

namespace tapioca::pattern {

namespace {

using TypeNode = Typemap::TypeNode;
using Pointer = TypeNode::Pointer;
using Entries = std::vector<Layout::ListItem>;

/// Maps with at most this many blocks are lists, no matter how they were built.
constexpr std::int64_t few_blocks = 64;

constexpr std::uint64_t mixed(std::uint64_t hash, std::int64_t value)
{
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0xff51afd7ed558ccdU;
    return hash ^ (hash >> 32);
}

Pointer node_of_list(Entries entries)
{
    auto node = std::make_shared<TypeNode>();
    node->hash = 1;
    bool first = true;
    for (auto const& [offset, length, data] : entries) {
        node->ascending = node->ascending && (first || offset >= node->tail);
        first = false;
        node->begin = std::min(node->begin, offset);
        node->end = std::max(node->end, offset + length);
        node->tail = offset + length;
        node->bytes += length;
        node->hash = mixed(mixed(node->hash, offset), length);
    }
    node->blocks = static_cast<std::int64_t>(entries.size());
    node->entries = std::move(entries);
    return node;
}

/// One block for each size of a basic datatype, since every access uses them.
using Elements = std::array<Pointer, 17>;

Elements elements_of_all_sizes()
{
    Elements elements;
    for (std::size_t size = 1; size < elements.size(); ++size)
        elements[size] = node_of_list({{0, static_cast<std::int64_t>(size), 0}});
    return elements;
}

Pointer node_of_loop(std::int64_t count, std::int64_t step, Pointer body)
{
    auto node = std::make_shared<TypeNode>();
    auto const reach = (count - 1) * step;
    node->count = count;
    node->step = step;
    node->bytes = count * body->bytes;
    node->begin = body->begin + std::min<std::int64_t>(0, reach);
    node->end = body->end + std::max<std::int64_t>(0, reach);
    node->tail = reach + body->tail;
    node->blocks = count * body->blocks - (step == body->tail ? count - 1 : 0);
    node->ascending = body->ascending && step >= body->end;
    node->hash = mixed(mixed(mixed(2, count), step), static_cast<std::int64_t>(body->hash));
    node->body = std::move(body);
    return node;
}

Pointer node_of_sequence(std::vector<TypeNode::Child> children)
{
    auto node = std::make_shared<TypeNode>();
    node->hash = 3;
    bool first = true;
    for (auto& child : children) {
        node->ascending = node->ascending && child.node->ascending && (first || child.offset >= node->tail);
        node->blocks += child.node->blocks - (!first && child.offset == node->tail ? 1 : 0);
        first = false;
        node->begin = std::min(node->begin, child.offset + child.node->begin);
        node->end = std::max(node->end, child.offset + child.node->end);
        node->tail = child.offset + child.node->tail;
        child.data = node->bytes;
        node->bytes += child.node->bytes;
        node->hash = mixed(mixed(node->hash, child.offset), static_cast<std::int64_t>(child.node->hash));
    }
    node->children = std::move(children);
    return node;
}

bool same(TypeNode const& a, TypeNode const& b);

bool same(Pointer const& a, Pointer const& b)
{
    return a == b || (a && b && same(*a, *b));
}

bool same(TypeNode const& a, TypeNode const& b)
{
    if (a.hash != b.hash || a.bytes != b.bytes || a.count != b.count || a.step != b.step) return false;
    auto const equal_entries = [](auto const& x, auto const& y) {
        return x.offset == y.offset && x.length == y.length;
    };
    auto const equal_children = [](auto const& x, auto const& y) {
        return x.offset == y.offset && same(x.node, y.node);
    };
    return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), equal_entries) &&
           same(a.body, b.body) &&
           std::equal(a.children.begin(), a.children.end(), b.children.begin(), b.children.end(), equal_children);
}

/// A node of blocks that append() gathered; the first one may lie anywhere.
Pointer node_of_gathered(Entries entries)
{
    auto const origin = entries[0].offset;
    auto const step = entries.size() > 1 ? entries[1].offset - origin : 0;
    bool regular = entries.size() > 1;
    std::int64_t data = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        entries[i].offset -= origin;
        entries[i].buffer = data;
        data += entries[i].length;
        regular = regular && entries[i].offset == static_cast<std::int64_t>(i) * step &&
                  entries[i].length == entries[0].length;
    }
    if (!regular) return node_of_list(std::move(entries));
    return node_of_loop(static_cast<std::int64_t>(entries.size()), step, node_of_list({entries[0]}));
}

std::uint64_t bookkeeping(TypeNode const& node)
{
    auto bytes = sizeof(TypeNode) + node.entries.capacity() * sizeof(Layout::ListItem) +
                 node.children.capacity() * sizeof(TypeNode::Child);
    if (node.body) bytes += bookkeeping(*node.body);
    for (auto const& child : node.children) bytes += bookkeeping(*child.node);
    return bytes;
}

}  // namespace

void append(Entries& to, Layout::ListItem const& entry)
{
    if (!to.empty() && to.back().offset + to.back().length == entry.offset &&
        to.back().buffer + to.back().length == entry.buffer)
        to.back().length += entry.length;
    else
        to.push_back(entry);
}

void TypeNode::expand(std::int64_t offset, std::int64_t data, Entries& to) const
{
    for (auto const& entry : entries) append(to, {offset + entry.offset, entry.length, data + entry.buffer});
    for (std::int64_t i = 0; i < count; ++i) body->expand(offset + i * step, data + i * body->bytes, to);
    for (auto const& child : children) child.node->expand(offset + child.offset, data + child.data, to);
}

std::size_t TypeNode::entry_of(std::int64_t position) const
{
    auto const after = std::upper_bound(entries.begin(), entries.end(), position,
                                        [](std::int64_t value, auto const& entry) { return value < entry.buffer; });
    return static_cast<std::size_t>(after - entries.begin()) - 1;
}

std::size_t TypeNode::child_of(std::int64_t position) const
{
    auto const after = std::upper_bound(children.begin(), children.end(), position,
                                        [](std::int64_t value, auto const& child) { return value < child.data; });
    return static_cast<std::size_t>(after - children.begin()) - 1;
}

std::int64_t TypeNode::offset_of(std::int64_t position) const
{
    if (count > 0) return position / body->bytes * step + body->offset_of(position % body->bytes);
    if (!children.empty()) {
        auto const& child = children[child_of(position)];
        return child.offset + child.node->offset_of(position - child.data);
    }
    auto const& entry = entries[entry_of(position)];
    return entry.offset + position - entry.buffer;
}

Typemap::Typemap()
{
    static auto const& nothing = *new Pointer(node_of_list({}));  // never destroyed: used from atexit, too
    root_ = nothing;
}

Typemap::Typemap(std::shared_ptr<TypeNode const> root, std::int64_t origin) : root_(std::move(root)), origin_(origin) {}

Typemap Typemap::block(std::int64_t length)
{
    if (length <= 0) return {};
    static auto const& elements = *new Elements(elements_of_all_sizes());  // never destroyed: used from atexit, too
    auto const size = static_cast<std::size_t>(length);
    return Typemap(size < elements.size() ? elements[size] : node_of_list({{0, length, 0}}), 0);
}

Typemap Typemap::loop(std::int64_t count, std::int64_t step, Typemap const& map)
{
    if (count <= 0 || map.bytes() == 0) return {};
    if (count == 1) return map;
    auto const& body = map.root_;
    if (body->blocks == 1 && step == body->bytes) return block(count * step).shifted(map.origin_);
    if (body->count > 0 && step == body->count * body->step)
        return Typemap(node_of_loop(count * body->count, body->step, body->body), map.origin_);
    auto node = node_of_loop(count, step, body);
    if (node->blocks > few_blocks) return Typemap(std::move(node), map.origin_);
    Entries entries;
    node->expand(0, 0, entries);
    return Typemap(node_of_gathered(std::move(entries)), map.origin_);
}

Typemap Typemap::list(std::vector<Block> const& blocks)
{
    Entries entries;
    entries.reserve(blocks.size());
    std::int64_t data = 0;
    for (auto const& [displacement, length] : blocks) {
        if (length <= 0) continue;
        append(entries, {displacement, length, data});
        data += length;
    }
    if (entries.empty()) return {};
    entries.shrink_to_fit();
    auto const origin = entries[0].offset;
    return Typemap(node_of_gathered(std::move(entries)), origin);
}

namespace {

/// Takes parts one by one. Consecutive lists become one list.
class Gatherer {
public:
    void add(std::int64_t offset, Pointer const& node)
    {
        for (auto const& child : node->children) add(offset + child.offset, child.node);
        if (node->count > 0) {
            flush();
            children_.push_back({offset, 0, node});
        }
        if (!node->entries.empty()) node->expand(offset, bytes_, entries_);
        if (node->children.empty()) bytes_ += node->bytes;
    }
    std::vector<TypeNode::Child> take()
    {
        flush();
        return std::move(children_);
    }

private:
    void flush()
    {
        if (entries_.empty()) return;
        auto const offset = entries_[0].offset;
        children_.push_back({offset, 0, node_of_gathered(std::move(entries_))});
        entries_.clear();
    }
    std::vector<TypeNode::Child> children_;
    Entries entries_;
    std::int64_t bytes_ = 0;
};

}  // namespace

Typemap Typemap::sequence(std::vector<Member> const& parts)
{
    std::vector<TypeNode::Child> all;
    bool equal = true;  // equal parts at equal distances
    for (auto const& part : parts) {
        if (part.map.bytes() == 0) continue;
        all.push_back({part.displacement + part.map.origin_, 0, part.map.root_});
        auto const& [offset, data, node] = all.back();
        auto const step = all.size() > 1 ? all[1].offset - all[0].offset : 0;
        equal = equal && same(node, all[0].node) &&
                offset - all[0].offset == static_cast<std::int64_t>(all.size() - 1) * step;
    }
    if (all.empty()) return {};
    auto const origin = all[0].offset;
    if (all.size() == 1) return Typemap(all[0].node, origin);
    if (equal) return loop(static_cast<std::int64_t>(all.size()), all[1].offset - origin, Typemap(all[0].node, origin));
    Gatherer gatherer;
    for (auto const& [offset, data, node] : all) gatherer.add(offset - origin, node);
    auto children = gatherer.take();
    if (children.size() == 1) return Typemap(children[0].node, origin);
    auto node = node_of_sequence(std::move(children));
    if (node->blocks > few_blocks) return Typemap(std::move(node), origin);
    Entries entries;
    node->expand(0, 0, entries);
    return Typemap(node_of_gathered(std::move(entries)), origin);
}

Typemap Typemap::shifted(std::int64_t displacement) const
{
    return bytes() == 0 ? *this : Typemap(root_, origin_ + displacement);
}

std::int64_t Typemap::bytes() const
{
    return root_->bytes;
}
std::int64_t Typemap::begin() const
{
    return origin_ + root_->begin;
}
std::int64_t Typemap::end() const
{
    return origin_ + root_->end;
}
std::int64_t Typemap::blocks() const
{
    return root_->blocks;
}
bool Typemap::contiguous() const
{
    return root_->blocks == 1;
}
bool Typemap::ascending() const
{
    return root_->ascending;
}
std::uint64_t Typemap::hash() const
{
    return mixed(root_->hash, origin_);
}
std::uint64_t Typemap::bookkeeping_bytes() const
{
    return sizeof(Typemap) + bookkeeping(*root_);
}

bool operator==(Typemap const& a, Typemap const& b)
{
    return a.origin_ == b.origin_ && same(a.root_, b.root_);
}

}  // namespace tapioca::pattern
