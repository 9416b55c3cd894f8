#include "mpiio/datatype.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <fmt/core.h>

#include "mpiio/datatype_envelope.hpp"

namespace tapioca::mpiio {

namespace {

using pattern::Typemap;
using ArgumentNumbers = std::span<std::int64_t const>;

tl::unexpected<core::Failure> unsupported(std::string text)
{
    return core::fail(Errc::unsupported, std::move(text));
}

/// An element, and a map of `count` such elements.
struct Element {
    Typemap map;
    std::int64_t extent = 0;

    [[nodiscard]] Typemap times(std::int64_t count) const { return Typemap::loop(count, extent, map); }
    /// True if `count` elements are contiguous.
    [[nodiscard]] bool in_one_piece(std::int64_t count) const
    {
        return map.contiguous() && (count == 1 || extent == map.bytes());
    }
};

template <class FirstAccesses>
Typemap pair_of()
{
    struct ElementPair {
        FirstAccesses value;
        int index;
    };
    return Typemap::sequence(
        {{0, Typemap::block(sizeof(FirstAccesses))}, {offsetof(ElementPair, index), Typemap::block(sizeof(int))}});
}

core::Result<Typemap> decode_predefined(MPI_Datatype type)
{
    if (type == MPI_FLOAT_INT) return pair_of<float>();
    if (type == MPI_DOUBLE_INT) return pair_of<double>();
    if (type == MPI_LONG_INT) return pair_of<long>();
    if (type == MPI_SHORT_INT) return pair_of<short>();
    if (type == MPI_LONG_DOUBLE_INT) return pair_of<long double>();
    MPI_Count bytes = 0;
    MPI_Count begin = 0;
    MPI_Count extent = 0;
    PMPI_Type_size_x(type, &bytes);
    PMPI_Type_get_true_extent_x(type, &begin, &extent);
    if (bytes > 0 && (begin != 0 || extent != bytes)) {
        std::string name(MPI_MAX_OBJECT_NAME, '\0');
        int length = 0;
        PMPI_Type_get_name(type, name.data(), &length);
        return unsupported(fmt::format("datatype {} has gaps at unknown places", name.substr(0, length)));
    }
    return Typemap::block(bytes);
}

/// lengths[i] elements at displacements[i].
template <class Lengths, class Displacements, class DatatypeElements>
Typemap decode_blocks(std::size_t count, Lengths const& length, Displacements const& displacement,
                      DatatypeElements const& element)
{
    bool pieces = true;
    for (std::size_t i = 0; i < count && pieces; ++i) pieces = element(i).in_one_piece(length(i)) || length(i) == 0;
    if (pieces) {
        std::vector<Typemap::Block> blocks;
        blocks.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            auto const& map = element(i).map;
            blocks.push_back({displacement(i) + map.begin(), length(i) * map.bytes()});
        }
        return Typemap::list(blocks);
    }
    std::vector<Typemap::Member> parts;
    parts.reserve(count);
    std::map<std::pair<Element const*, std::int64_t>, Typemap> known;
    for (std::size_t i = 0; i < count; ++i) {
        auto const [at, is_new] = known.try_emplace({&element(i), length(i)});
        if (is_new) at->second = element(i).times(length(i));
        parts.push_back({displacement(i), at->second});
    }
    return Typemap::sequence(parts);
}

Typemap decode_subarray(ArgumentNumbers integers, Element const& element)
{
    auto const n = static_cast<std::size_t>(integers[0]);
    auto const sizes = integers.subspan(1, n);
    auto const counts = integers.subspan(1 + n, n);
    auto const starts = integers.subspan(1 + 2 * n, n);
    bool const fortran = integers[1 + 3 * n] == MPI_ORDER_FORTRAN;
    auto map = element.map;
    auto step = element.extent;
    for (std::size_t i = 0; i < n; ++i) {
        auto const d = fortran ? i : n - 1 - i;
        map = Typemap::loop(counts[d], step, map).shifted(starts[d] * step);
        step *= sizes[d];
    }
    return map;
}

/// A process's share of one dimension: blocks of `length` indices, dealt out to `processes` processes in turn.
Typemap deal(Typemap const& map, std::int64_t step, std::int64_t size, std::int64_t length, std::int64_t processes,
             std::int64_t place)
{
    auto const start = place * length;
    auto const left = std::max<std::int64_t>(0, size - start);
    auto const turn = processes * length;
    auto const whole = left / turn + (left % turn >= length ? 1 : 0);
    auto const rest = left % turn >= length ? 0 : left % turn;
    auto const block = Typemap::loop(length, step, map);
    return Typemap::sequence({{start * step, Typemap::loop(whole, turn * step, block)},
                              {(start + whole * turn) * step, Typemap::loop(rest, step, map)}});
}

core::Result<Typemap> decode_darray(ArgumentNumbers integers, Element const& element)
{
    auto const n = static_cast<std::size_t>(integers[2]);
    auto const sizes = integers.subspan(3, n);
    auto const distributions = integers.subspan(3 + n, n);
    auto const arguments = integers.subspan(3 + 2 * n, n);
    auto const processes = integers.subspan(3 + 3 * n, n);
    bool const fortran = integers[3 + 4 * n] == MPI_ORDER_FORTRAN;
    std::vector<std::int64_t> places(n);  // in the grid of processes, which is always in C order
    auto rank = integers[1];
    for (auto d = n; d-- > 0; rank /= processes[d]) places[d] = rank % processes[d];
    auto map = element.map;
    auto step = element.extent;
    for (std::size_t i = 0; i < n; ++i) {
        auto const d = fortran ? i : n - 1 - i;
        bool const by_default = arguments[d] == MPI_DISTRIBUTE_DFLT_DARG;
        if (distributions[d] == MPI_DISTRIBUTE_NONE)
            map = Typemap::loop(sizes[d], step, map);
        else if (distributions[d] == MPI_DISTRIBUTE_BLOCK)
            map = deal(map, step, sizes[d], by_default ? (sizes[d] + processes[d] - 1) / processes[d] : arguments[d],
                       processes[d], places[d]);
        else if (distributions[d] == MPI_DISTRIBUTE_CYCLIC)
            map = deal(map, step, sizes[d], by_default ? 1 : arguments[d], processes[d], places[d]);
        else
            return unsupported(fmt::format("a darray has the unknown distribution {}", distributions[d]));
        step *= sizes[d];
    }
    return map;
}

core::Result<Typemap> decode(MPI_Datatype type);

/// The types of which a datatype was made; each different type is decoded once.
class DatatypeElements {
public:
    core::Status add(std::vector<MPI_Datatype> const& types)
    {
        for (auto const type : types) {
            auto const [at, is_new] = known_.try_emplace(type);
            all_.push_back(&at->second);
            if (!is_new) continue;
            auto map = decode(type);
            if (!map) return tl::unexpected(std::move(map.error()));
            MPI_Count begin = 0;
            MPI_Count extent = 0;
            PMPI_Type_get_extent_x(type, &begin, &extent);
            at->second = {std::move(*map), extent};
        }
        return {};
    }
    Element const& operator[](std::size_t i) const { return *all_[i]; }

private:
    std::map<MPI_Datatype, Element> known_;
    std::vector<Element const*> all_;
};

core::Result<Typemap> decode(MPI_Datatype type)
{
    auto const contents = contents_of(type);
    if (!contents) return tl::unexpected(contents.error());
    if (contents->types.empty() && contents->integers.empty()) return decode_predefined(type);
    DatatypeElements elements;
    if (auto status = elements.add(contents->types); !status) return tl::unexpected(std::move(status.error()));
    ArgumentNumbers const n = contents->integers;
    ArgumentNumbers const a = contents->addresses;
    auto const first = [&](std::size_t) -> Element const& { return elements[0]; };
    auto const among = [&](std::size_t at) { return [=](std::size_t i) { return n[at + i]; }; };
    auto const address = [&](std::size_t i) { return a[i]; };
    auto const scaled = [&](std::size_t at) {
        return [=, &elements](std::size_t i) { return n[at + i] * elements[0].extent; };
    };
    auto const always = [&](std::size_t) { return n[1]; };
    auto const count = n.empty() ? 0 : static_cast<std::size_t>(n[0]);
    switch (contents->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: return elements[0].map;
    case MPI_COMBINER_CONTIGUOUS: return elements[0].times(n[0]);
    case MPI_COMBINER_VECTOR: return Typemap::loop(n[0], n[2] * elements[0].extent, elements[0].times(n[1]));
    case MPI_COMBINER_HVECTOR: return Typemap::loop(n[0], a[0], elements[0].times(n[1]));
    case MPI_COMBINER_INDEXED: return decode_blocks(count, among(1), scaled(1 + count), first);
    case MPI_COMBINER_HINDEXED: return decode_blocks(count, among(1), address, first);
    case MPI_COMBINER_INDEXED_BLOCK: return decode_blocks(count, always, scaled(2), first);
    case MPI_COMBINER_HINDEXED_BLOCK: return decode_blocks(count, always, address, first);
    case MPI_COMBINER_STRUCT:
        return decode_blocks(count, among(1), address, [&](std::size_t i) -> Element const& { return elements[i]; });
    case MPI_COMBINER_SUBARRAY: return decode_subarray(n, elements[0]);
    case MPI_COMBINER_DARRAY: return decode_darray(n, elements[0]);
    default: return unsupported(fmt::format("a datatype was made in the unknown way {}", contents->combiner));
    }
}

core::Result<Datatype> decode_all(MPI_Datatype type)
{
    auto map = decode(type);
    if (!map) return tl::unexpected(std::move(map.error()));
    MPI_Count bytes = 0;
    MPI_Count lower_bound = 0;
    MPI_Count extent = 0;
    PMPI_Type_size_x(type, &bytes);
    PMPI_Type_get_extent_x(type, &lower_bound, &extent);
    if (map->bytes() != bytes)
        return unsupported(fmt::format("a datatype of {} bytes seems to have {}", bytes, map->bytes()));
    return Datatype{std::move(*map), lower_bound, extent};
}

extern "C" int forget(MPI_Datatype /*type*/, int /*key*/, void* value, void* /*state*/)
{
    delete static_cast<Datatype*>(value);
    return MPI_SUCCESS;
}

/// Protects the attributes: an attribute that another thread replaces is freed.
std::mutex cache;

/// @pre cache is locked
int key()
{
    static int const value = [] {
        int created = MPI_KEYVAL_INVALID;
        PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &created, nullptr);
        return created;
    }();
    return value;
}

/// @pre cache is locked
Datatype const* kept(MPI_Datatype type)
{
    void* value = nullptr;
    int found = 0;
    PMPI_Type_get_attr(type, key(), static_cast<void*>(&value), &found);
    return found != 0 ? static_cast<Datatype const*>(value) : nullptr;
}

}  // namespace

core::Result<Datatype> datatype_of(MPI_Datatype type)
{
    if (type == MPI_DATATYPE_NULL) return unsupported("the datatype is MPI_DATATYPE_NULL");
    {
        std::lock_guard const lock(cache);
        if (auto const* const known = kept(type)) return *known;
    }
    auto decoded = decode_all(type);
    if (!decoded || predefined(type)) return decoded;
    std::lock_guard const lock(cache);
    if (!kept(type)) {
        auto copy = std::make_unique<Datatype>(*decoded);
        if (PMPI_Type_set_attr(type, key(), copy.get()) == MPI_SUCCESS) (void)copy.release();
    }
    return decoded;
}

core::Result<pattern::Typemap> typemap_of(MPI_Datatype type)
{
    auto decoded = datatype_of(type);
    if (!decoded) return tl::unexpected(std::move(decoded.error()));
    return std::move(decoded->map);
}

}  // namespace tapioca::mpiio
