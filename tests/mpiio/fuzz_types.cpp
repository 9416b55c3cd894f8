// See fuzz_types.hpp.
#include "fuzz_types.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace fuzz {

std::uint64_t Random::next()
{
    state_ += 0x9e3779b97f4a7c15U;
    auto z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

std::int64_t Random::between(std::int64_t low, std::int64_t high)
{
    if (high <= low) return low;
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
}

namespace {

struct Block {
    std::int64_t at;
    int count;
    TypePtr child;
};

void append(Segments& segments, std::int64_t at, std::int64_t length)
{
    if (length == 0) return;
    if (!segments.empty() && segments.back().at + segments.back().length == at)
        segments.back().length += length;
    else
        segments.push_back({at, length});
}

/// The handle of a child for as long as a type is made of it.
class Child {
public:
    explicit Child(TypePtr const& type) : type_(type->make()), named_(type->named) {}
    ~Child()
    {
        if (!named_) MPI_Type_free(&type_);
    }
    Child(Child const&) = delete;
    Child& operator=(Child const&) = delete;
    operator MPI_Datatype() const { return type_; }

private:
    MPI_Datatype type_;
    bool named_;
};

/// The standard lets an implementation pad an extent for alignment; the fuzzer's types have the bounds it computed.
MPI_Datatype with_bounds(MPI_Datatype type, std::int64_t lower, std::int64_t extent)
{
    MPI_Aint has_lower = 0;
    MPI_Aint has_extent = 0;
    MPI_Type_get_extent(type, &has_lower, &has_extent);
    if (has_lower == lower && has_extent == extent) return type;
    MPI_Datatype bounded = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(type, lower, extent, &bounded);
    MPI_Type_free(&type);
    return bounded;
}

TypePtr placed(std::string text, std::vector<Block> const& blocks, std::function<MPI_Datatype()> make)
{
    auto type = std::make_shared<Type>();
    type->text = std::move(text);
    type->lower = std::numeric_limits<std::int64_t>::max();
    type->upper = std::numeric_limits<std::int64_t>::min();
    for (auto const& [at, count, child] : blocks) {
        type->bounded = type->bounded || child->bounded;
        if (count == 0) continue;
        for (int i = 0; i < count; ++i)
            for (auto const& piece : child->segments)
                append(type->segments, at + i * child->extent() + piece.at, piece.length);
        auto const last = at + (count - 1) * child->extent();
        type->lower = std::min({type->lower, at + child->lower, last + child->lower});
        type->upper = std::max({type->upper, at + child->upper, last + child->upper});
        type->size += count * child->size;
    }
    if (type->upper < type->lower) type->lower = type->upper = 0;
    type->make = [make = std::move(make), lower = type->lower, extent = type->extent()] {
        return with_bounds(make(), lower, extent);
    };
    return type;
}

std::string list(std::vector<int> const& values)
{
    std::string text = "[";
    for (auto value : values) text += (text.size() > 1 ? " " : "") + std::to_string(value);
    return text + "]";
}

std::string list(std::vector<MPI_Aint> const& values)
{
    std::string text = "[";
    for (auto value : values) text += (text.size() > 1 ? " " : "") + std::to_string(value);
    return text + "]";
}

std::string call(char const* name, std::initializer_list<std::string> arguments)
{
    std::string text = std::string(name) + "(";
    for (auto const& argument : arguments) text += (text.back() == '(' ? "" : ", ") + argument;
    return text + ")";
}

std::string s(std::int64_t value)
{
    return std::to_string(value);
}

TypePtr hvector(int count, int length, std::int64_t stride, TypePtr const& child)
{
    std::vector<Block> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back({i * stride, length, child});
    return placed(call("hvector", {s(count), s(length), s(stride), child->text}), blocks, [=] {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_create_hvector(count, length, static_cast<MPI_Aint>(stride), Child(child), &type);
        return type;
    });
}

TypePtr indexed(std::vector<int> const& lengths, std::vector<int> const& at, TypePtr const& child)
{
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < at.size(); ++i) blocks.push_back({at[i] * child->extent(), lengths[i], child});
    return placed(call("indexed", {list(lengths), list(at), child->text}), blocks, [=] {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_indexed(static_cast<int>(at.size()), lengths.data(), at.data(), Child(child), &type);
        return type;
    });
}

TypePtr hindexed(std::vector<int> const& lengths, std::vector<MPI_Aint> const& at, TypePtr const& child)
{
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < at.size(); ++i) blocks.push_back({at[i], lengths[i], child});
    return placed(call("hindexed", {list(lengths), list(at), child->text}), blocks, [=] {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_create_hindexed(static_cast<int>(at.size()), lengths.data(), at.data(), Child(child), &type);
        return type;
    });
}

TypePtr indexed_block(int length, std::vector<int> const& at, TypePtr const& child)
{
    std::vector<Block> blocks;
    for (auto where : at) blocks.push_back({where * child->extent(), length, child});
    return placed(call("indexed_block", {s(length), list(at), child->text}), blocks, [=] {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_create_indexed_block(static_cast<int>(at.size()), length, at.data(), Child(child), &type);
        return type;
    });
}

TypePtr hindexed_block(int length, std::vector<MPI_Aint> const& at, TypePtr const& child)
{
    std::vector<Block> blocks;
    for (auto where : at) blocks.push_back({where, length, child});
    return placed(call("hindexed_block", {s(length), list(at), child->text}), blocks, [=] {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_create_hindexed_block(static_cast<int>(at.size()), length, at.data(), Child(child), &type);
        return type;
    });
}

TypePtr structure(std::vector<int> const& lengths, std::vector<MPI_Aint> const& at,
                  std::vector<TypePtr> const& children)
{
    std::vector<Block> blocks;
    std::string names;
    for (std::size_t i = 0; i < at.size(); ++i) {
        blocks.push_back({at[i], lengths[i], children[i]});
        names += (names.empty() ? "" : ", ") + children[i]->text;
    }
    return placed(call("struct", {list(lengths), list(at), names}), blocks, [=] {
        std::vector<std::unique_ptr<Child>> made;
        std::vector<MPI_Datatype> types;
        for (auto const& child : children) {
            made.push_back(std::make_unique<Child>(child));
            types.push_back(*made.back());
        }
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_create_struct(static_cast<int>(at.size()), lengths.data(), at.data(), types.data(), &type);
        return type;
    });
}

TypePtr duplicate(TypePtr const& child)
{
    return placed("dup(" + child->text + ")", {{0, 1, child}}, [=] {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_dup(Child(child), &type);
        return type;
    });
}

/// Which elements of an array are `in`, in the array's own order; the first dimension is the slowest in C order.
template <class In>
TypePtr array(std::string text, std::vector<int> const& sizes, int order, TypePtr const& child, In in,
              std::function<MPI_Datatype()> make)
{
    auto const dimensions = sizes.size();
    std::int64_t const elements =
        std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<std::int64_t>());
    auto type = std::make_shared<Type>();
    for (std::int64_t i = 0; i < elements; ++i) {
        auto rest = i;
        bool inside = true;
        for (std::size_t k = 0; k < dimensions; ++k) {
            auto const d = order == MPI_ORDER_C ? dimensions - 1 - k : k;
            inside = inside && in(d, static_cast<int>(rest % sizes[d]));
            rest /= sizes[d];
        }
        if (!inside) continue;
        for (auto const& piece : child->segments) append(type->segments, i * child->extent() + piece.at, piece.length);
        type->size += child->size;
    }
    type->text = std::move(text);
    type->upper = elements * child->extent();
    type->bounded = true;
    type->make = [make = std::move(make), extent = type->extent()] { return with_bounds(make(), 0, extent); };
    return type;
}

char const* name_of(int order)
{
    return order == MPI_ORDER_C ? "C" : "Fortran";
}

}  // namespace

TypePtr named(MPI_Datatype datatype, char const* name, std::int64_t size)
{
    auto type = std::make_shared<Type>();
    type->text = name;
    type->segments = {{0, size}};
    type->upper = type->size = size;
    type->named = true;
    type->make = [datatype] { return datatype; };
    return type;
}

TypePtr random_named(Random& random)
{
    switch (random.between(0, 7)) {
    case 0: return named(MPI_CHAR, "CHAR", 1);
    case 1: return named(MPI_SHORT, "SHORT", 2);
    case 2:
    case 3: return named(MPI_INT, "INT", 4);
    case 4: return named(MPI_FLOAT, "FLOAT", 4);
    case 5: return named(MPI_DOUBLE, "DOUBLE", 8);
    default: return named(MPI_BYTE, "BYTE", 1);
    }
}

TypePtr contiguous(int count, TypePtr const& child)
{
    return placed(call("contiguous", {s(count), child->text}), {{0, count, child}}, [=] {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_contiguous(count, Child(child), &type);
        return type;
    });
}

TypePtr vector(int count, int length, int stride, TypePtr const& child)
{
    std::vector<Block> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back({i * stride * child->extent(), length, child});
    return placed(call("vector", {s(count), s(length), s(stride), child->text}), blocks, [=] {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_vector(count, length, stride, Child(child), &type);
        return type;
    });
}

TypePtr resized(TypePtr const& child, std::int64_t lower, std::int64_t extent)
{
    auto type = std::make_shared<Type>(*child);
    type->text = call("resized", {s(lower), s(extent), child->text});
    type->lower = lower;
    type->upper = lower + extent;
    type->named = false;
    type->bounded = true;
    type->make = [=] {
        MPI_Datatype made = MPI_DATATYPE_NULL;
        MPI_Type_create_resized(Child(child), lower, extent, &made);
        return made;
    };
    return type;
}

TypePtr subarray(std::vector<int> sizes, std::vector<int> subsizes, std::vector<int> starts, int order,
                 TypePtr const& child)
{
    auto text = call("subarray", {list(sizes), list(subsizes), list(starts), name_of(order), child->text});
    auto in = [=](std::size_t d, int i) { return i >= starts[d] && i < starts[d] + subsizes[d]; };
    return array(text, sizes, order, child, in, [=] {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), subsizes.data(), starts.data(), order,
                                 Child(child), &type);
        return type;
    });
}

TypePtr darray(int rank, std::vector<int> sizes, std::vector<int> block, std::vector<int> grid, int order,
               TypePtr const& child)
{
    int processes = 1;
    for (auto n : grid) processes *= n;
    std::vector<int> coordinates(grid.size());  // the grid is in C order whatever the array's order is
    int rest = rank;
    for (std::size_t d = grid.size(); d-- > 0;) {
        coordinates[d] = rest % grid[d];
        rest /= grid[d];
    }
    auto text = call("darray", {"process " + s(rank) + " of " + s(processes), list(sizes), list(block), list(grid),
                                name_of(order), child->text});
    auto in = [=](std::size_t d, int i) {
        if (block[d] == 0) return true;
        int const piece = block[d] < 0 ? (sizes[d] + grid[d] - 1) / grid[d] : block[d];
        return i / piece % grid[d] == coordinates[d];
    };
    return array(text, sizes, order, child, in, [=] {
        std::vector<int> distributions;
        std::vector<int> arguments;
        for (auto b : block) {
            distributions.push_back(b == 0  ? MPI_DISTRIBUTE_NONE
                                    : b < 0 ? MPI_DISTRIBUTE_BLOCK
                                            : MPI_DISTRIBUTE_CYCLIC);
            arguments.push_back(b <= 0 ? MPI_DISTRIBUTE_DFLT_DARG : b);
        }
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_Type_create_darray(processes, rank, static_cast<int>(sizes.size()), sizes.data(), distributions.data(),
                               arguments.data(), grid.data(), order, Child(child), &type);
        return type;
    });
}

namespace {

/// One constructor around `child`. In a file everything is in order and nothing is below zero.
TypePtr wrap(Random& random, TypePtr const& child, bool file, bool simple, bool careful)
{
    auto const n = static_cast<int>(random.between(1, 5));
    auto const length = static_cast<int>(random.between(1, 3));
    auto const extent = std::max<std::int64_t>(child->extent(), 1);
    std::vector<int> lengths;
    std::vector<int> at;
    std::vector<MPI_Aint> bytes;
    std::vector<MPI_Aint> block_bytes;
    std::int64_t next = file ? random.between(0, 2) : simple ? 0 : random.between(-4, 2);
    for (int i = 0; i < n; ++i) {
        lengths.push_back(static_cast<int>(random.chance(10) && !simple && !careful ? 0 : random.between(1, length)));
        at.push_back(static_cast<int>(next));
        bytes.push_back(next * extent + (simple ? 0 : random.between(0, 1) * 4 * (file ? i : 1)));
        next += length + random.between(0, 3);
    }
    for (int i = 0; i < n; ++i) block_bytes.push_back(at[static_cast<std::size_t>(i)] * extent);
    if (!file && random.chance(40)) {  // memory may be in any order
        std::reverse(at.begin(), at.end());
        std::reverse(bytes.begin(), bytes.end());
    }
    switch (random.between(0, 11)) {
    case 0: return contiguous(n, child);
    case 1: return vector(n, length, length + static_cast<int>(random.between(0, 3)), child);
    case 2:
        return file || random.chance(70) ? hvector(n, length, length * extent + random.between(0, 3) * 4, child)
                                         : hvector(n, length, -length * extent - random.between(0, 2) * 8, child);
    case 3: return indexed(lengths, at, child);
    case 4: return hindexed(lengths, bytes, child);
    case 5: return indexed_block(length, at, child);
    case 6: return hindexed_block(length, block_bytes, child);
    case 7: {
        std::vector<TypePtr> children;
        for (int i = 0; i < n; ++i) children.push_back(random.chance(25) && !file ? contiguous(1, child) : child);
        return structure(lengths, bytes, children);
    }
    case 8: {
        std::vector<int> sizes;
        std::vector<int> subsizes;
        std::vector<int> starts;
        for (auto d = random.between(1, 3); d > 0; --d) {
            sizes.push_back(static_cast<int>(random.between(1, 6)));
            subsizes.push_back(static_cast<int>(random.between(1, sizes.back())));
            starts.push_back(static_cast<int>(random.between(0, sizes.back() - subsizes.back())));
        }
        return subarray(sizes, subsizes, starts, random.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, child);
    }
    case 9: {
        if ((simple && (file || !child->named)) || (careful && !child->named)) return contiguous(n, child);
        std::vector<int> sizes;
        std::vector<int> block;
        std::vector<int> grid;
        int processes = 1;
        for (auto d = random.between(1, 2); d > 0; --d) {
            sizes.push_back(static_cast<int>(random.between(2, 8)));
            block.push_back(static_cast<int>(random.between(-1, 2)));
            grid.push_back(block.back() == 0 ? 1 : static_cast<int>(random.between(1, 2)));
            processes *= grid.back();
        }
        auto const rank = static_cast<int>(random.between(0, processes - 1));
        return darray(rank, sizes, block, grid, random.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, child);
    }
    case 10: {
        auto const span = span_of(*child, 1);
        auto const lower = careful ? 0 : file ? -random.between(0, 1) * 4 : random.between(-2, 2) * 4;
        if (!file && !simple && random.chance(20)) return resized(child, lower, random.between(0, span.length));
        return resized(child, lower,
                       span.at + span.length - std::min<std::int64_t>(lower, 0) + random.between(0, 3) * 4);
    }
    default: return duplicate(contiguous(length, child));
    }
}

constexpr std::int64_t longest_span = 3000;
constexpr std::size_t most_segments = 120;

bool small(Type const& type)
{
    return type.segments.size() <= most_segments && span_of(type, 1).length <= longest_span &&
           type.extent() <= longest_span && type.extent() >= 0;
}

}  // namespace

TypePtr random_memory_type(Random& random, TypePtr const& child, int depth, bool simple)
{
    auto type = child;
    for (int i = 0; i < depth && !(simple && type->bounded); ++i)
        if (auto next = wrap(random, type, false, simple, false);
            small(*next) && next->size > 0 && !(simple && (next->lower != 0 || span_of(*next, 1).at < 0)))
            type = next;
    return type;
}

TypePtr random_file_type(Random& random, TypePtr const& etype, int depth, bool simple, bool careful)
{
    auto type = etype;
    for (int i = 0; i < depth && !(simple && type->bounded); ++i) {
        auto next = wrap(random, type, true, simple, careful);
        if (next->size == 0 || !small(*next)) continue;
        auto const span = span_of(*next, 1);
        bool in_order = span.at >= 0;
        for (std::size_t k = 1; k < next->segments.size(); ++k)
            in_order = in_order && next->segments[k].at >= next->segments[k - 1].at + next->segments[k - 1].length;
        if (!in_order || (simple && next->lower < 0)) continue;
        if (next->extent() < span.length)
            next = resized(next, 0, span.at + span.length + random.between(0, 2) * etype->extent());
        type = next;
    }
    return type;
}

bool overlaps(Type const& type, std::int64_t count)
{
    Segments all;
    for (std::int64_t i = 0; i < count; ++i)
        for (auto const& piece : type.segments) all.push_back({i * type.extent() + piece.at, piece.length});
    std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.at < b.at; });
    for (std::size_t i = 1; i < all.size(); ++i)
        if (all[i].at < all[i - 1].at + all[i - 1].length) return true;
    return false;
}

Segment span_of(Type const& type, std::int64_t count)
{
    if (type.segments.empty() || count <= 0) return {0, 0};
    auto low = std::numeric_limits<std::int64_t>::max();
    auto high = std::numeric_limits<std::int64_t>::min();
    for (auto const& piece : type.segments)
        for (auto shift : {std::int64_t{0}, (count - 1) * type.extent()}) {
            low = std::min(low, shift + piece.at);
            high = std::max(high, shift + piece.at + piece.length);
        }
    return {low, high - low};
}

Committed::Committed(TypePtr const& type) : type_(type->make()), named_(type->named)
{
    if (!named_) MPI_Type_commit(&type_);
}

Committed::~Committed()
{
    if (!named_) MPI_Type_free(&type_);
}

}  // namespace fuzz
