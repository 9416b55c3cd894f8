// Datatypes: random nestings of all constructors, compared with what MPI packs.
#include "mpiio/datatype.hpp"

#include <chrono>
#include <cstdlib>
#include <numeric>
#include <random>

#include <fmt/ranges.h>

#include "mpiio/datatype_envelope.hpp"
#include "support/mpi_test.hpp"

namespace tapioca::mpiio {
namespace {

using Random = std::mt19937;

int pick(Random& random, int low, int high)
{
    return std::uniform_int_distribution<int>(low, high)(random);
}

/// Frees what was derived.
struct Type {
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    bool derived = true;

    Type() = default;
    explicit Type(MPI_Datatype named) : handle(named), derived(false) {}
    Type(Type&& other) noexcept : handle(other.handle), derived(std::exchange(other.derived, false)) {}
    Type& operator=(Type&&) = delete;
    ~Type()
    {
        if (derived && handle != MPI_DATATYPE_NULL) MPI_Type_free(&handle);
    }
};

struct Bounds {
    MPI_Count low = 0;
    MPI_Count extent = 0;
};

Bounds true_bounds(MPI_Datatype type)
{
    Bounds bounds;
    MPI_Type_get_true_extent_x(type, &bounds.low, &bounds.extent);
    return bounds;
}

std::int64_t size_of(MPI_Datatype type)
{
    MPI_Count bytes = 0;
    MPI_Type_size_x(type, &bytes);
    return bytes;
}

Type named(Random& random)
{
    // Not long double: MPICH packs only the ten bytes of sixteen that have a value.
    std::vector<MPI_Datatype> const types = {
        MPI_BYTE,      MPI_CHAR,       MPI_SHORT,    MPI_INT,       MPI_DOUBLE, MPI_LONG_LONG,       MPI_2INT,
        MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_C_BOOL, MPI_C_DOUBLE_COMPLEX};
    return Type(types[static_cast<std::size_t>(pick(random, 0, static_cast<int>(types.size()) - 1))]);
}

template <class T>
std::vector<T> some(Random& random, int count, int low, int high)
{
    std::vector<T> values;
    for (int i = 0; i < count; ++i) values.push_back(static_cast<T>(pick(random, low, high)));
    return values;
}

void make_subarray(Random& random, Type const& base, Type& made)
{
    auto const n = pick(random, 1, 3);
    auto const sizes = some<int>(random, n, 1, 5);
    std::vector<int> counts;
    std::vector<int> starts;
    for (auto const size : sizes) {
        counts.push_back(pick(random, 1, size));
        starts.push_back(pick(random, 0, size - counts.back()));
    }
    MPI_Type_create_subarray(n, sizes.data(), counts.data(), starts.data(),
                             pick(random, 0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, base.handle, &made.handle);
}

void make_darray(Random& random, Type const& base, Type& made)
{
    auto const n = pick(random, 1, 3);
    auto const sizes = some<int>(random, n, 1, 7);
    std::vector<int> distributions;
    std::vector<int> arguments;
    std::vector<int> processes;
    int ranks = 1;
    for (auto const size : sizes) {
        auto const kind = pick(random, 0, 2);
        processes.push_back(kind == 0 ? 1 : pick(random, 1, 3));
        distributions.push_back(kind == 0   ? MPI_DISTRIBUTE_NONE
                                : kind == 1 ? MPI_DISTRIBUTE_BLOCK
                                            : MPI_DISTRIBUTE_CYCLIC);
        auto const least = (size + processes.back() - 1) / processes.back();
        arguments.push_back(kind == 0 || pick(random, 0, 1) == 0 ? MPI_DISTRIBUTE_DFLT_DARG
                            : kind == 1                          ? pick(random, least, size)
                                                                 : pick(random, 1, size));
        ranks *= processes.back();
    }
    MPI_Type_create_darray(ranks, pick(random, 0, ranks - 1), n, sizes.data(), distributions.data(), arguments.data(),
                           processes.data(), pick(random, 0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, base.handle,
                           &made.handle);
}

Type random_type(Random& random, int depth);

void make_struct(Random& random, Type const& base, int depth, Type& made)
{
    auto const n = pick(random, 1, 4);
    std::vector<Type> own;
    std::vector<MPI_Datatype> types;
    for (int i = 0; i < n; ++i) {
        own.push_back(random_type(random, depth - 1));
        bool const usable = pick(random, 0, 2) > 0 && size_of(own.back().handle) > 0;
        types.push_back(usable ? own.back().handle : base.handle);
    }
    MPI_Type_create_struct(n, some<int>(random, n, 0, 3).data(), some<MPI_Aint>(random, n, -300, 300).data(),
                           types.data(), &made.handle);
}

Type random_type(Random& random, int depth)
{
    if (depth <= 0 || pick(random, 0, 6) == 0) return named(random);
    auto const base = random_type(random, depth - 1);
    // Open MPI refuses some of types without bytes, and packs some wrongly.
    if (size_of(base.handle) > 2000 || size_of(base.handle) == 0) return random_type(random, 0);
    Type made;
    auto const n = pick(random, 0, 5);
    auto const lengths = some<int>(random, n, 0, 3);
    auto const length = pick(random, 0, 3);
    auto const displacements = some<int>(random, n, -20, 20);
    auto const addresses = some<MPI_Aint>(random, n, -300, 300);
    switch (pick(random, 0, 11)) {
    case 0: MPI_Type_dup(base.handle, &made.handle); break;
    case 1: MPI_Type_contiguous(pick(random, 0, 6), base.handle, &made.handle); break;
    case 2: MPI_Type_vector(n, length, pick(random, -5, 9), base.handle, &made.handle); break;
    case 3: MPI_Type_create_hvector(n, length, pick(random, -99, 199), base.handle, &made.handle); break;
    case 4: MPI_Type_indexed(n, lengths.data(), displacements.data(), base.handle, &made.handle); break;
    case 5: MPI_Type_create_hindexed(n, lengths.data(), addresses.data(), base.handle, &made.handle); break;
    case 6: MPI_Type_create_indexed_block(n, length, displacements.data(), base.handle, &made.handle); break;
    case 7: MPI_Type_create_hindexed_block(n, length, addresses.data(), base.handle, &made.handle); break;
    case 8: make_struct(random, base, depth, made); break;
    case 9: make_subarray(random, base, made); break;
    case 10: make_darray(random, base, made); break;
    default: MPI_Type_create_resized(base.handle, pick(random, -30, 30), pick(random, 0, 200), &made.handle);
    }
    return made;
}

std::string describe(MPI_Datatype type)
{
    auto const contents = contents_of(type);
    if (predefined(type)) {
        char name[MPI_MAX_OBJECT_NAME];
        int length = 0;
        MPI_Type_get_name(type, name, &length);
        return name;
    }
    std::string inside;
    for (auto const part : contents->types) inside += " " + describe(part);
    return fmt::format("(combiner {} {} {}{})", contents->combiner, contents->integers, contents->addresses, inside);
}

void expect_as_mpi_packs(MPI_Datatype type)
{
    auto const decoded = datatype_of(type);
    ASSERT_TRUE(decoded) << decoded.error().text;
    auto const& map = decoded->map;
    ASSERT_EQ(map.bytes(), size_of(type));
    Bounds bounds;
    MPI_Type_get_extent_x(type, &bounds.low, &bounds.extent);
    ASSERT_EQ(decoded->lower_bound, bounds.low);
    ASSERT_EQ(decoded->extent, bounds.extent);
    if (map.bytes() == 0) return;
    auto const inside = true_bounds(type);
    ASSERT_EQ(map.begin(), inside.low);
    ASSERT_EQ(map.end(), inside.low + inside.extent);

    constexpr int count = 3;
    auto const all = pattern::Typemap::loop(count, decoded->extent, map);
    std::vector<std::byte> memory(static_cast<std::size_t>(all.end() - all.begin()));
    Random random(7);
    for (auto& byte : memory) byte = static_cast<std::byte>(random());
    std::vector<std::byte> packed(static_cast<std::size_t>(all.bytes()));
    pattern::pack(all, memory.data() - all.begin(), 0, all.bytes(), packed.data());
    int room = 0;
    MPI_Pack_size(count, type, MPI_COMM_SELF, &room);
    std::vector<std::byte> expected(static_cast<std::size_t>(room));
    int used = 0;
    MPI_Pack(memory.data() - all.begin(), count, type, expected.data(), room, &used, MPI_COMM_SELF);
    expected.resize(static_cast<std::size_t>(used));
    ASSERT_TRUE(packed == expected);
}

TEST(Datatype, HasTheBytesThatMpiPacks)
{
    auto const* const asked = std::getenv("TRIALS");
    auto const trials = asked ? std::atoi(asked) : 1500;
    Random random(61);
    for (int trial = 0; trial < trials; ++trial) {
        auto made = random_type(random, trial % 5);
        if (size_of(made.handle) > 20'000) continue;
        if (made.derived) MPI_Type_commit(&made.handle);
        expect_as_mpi_packs(made.handle);
        ASSERT_FALSE(HasFatalFailure()) << "trial " << trial << ": " << describe(made.handle);
    }
}

TEST(Datatype, NamedOnesHaveTheirGaps)
{
    for (auto const type : {MPI_BYTE, MPI_INT, MPI_DOUBLE, MPI_2INT, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT,
                            MPI_SHORT_INT, MPI_LONG_DOUBLE_INT, MPI_LONG_DOUBLE, MPI_PACKED, MPI_WCHAR})
        expect_as_mpi_packs(type);
    EXPECT_EQ(typemap_of(MPI_SHORT_INT)->blocks(), 2);
    MPI_Datatype f90 = MPI_DATATYPE_NULL;
    MPI_Type_create_f90_real(12, MPI_UNDEFINED, &f90);
    expect_as_mpi_packs(f90);
    MPI_Type_create_f90_integer(9, &f90);
    expect_as_mpi_packs(f90);
}

TEST(Datatype, SubarraysOfBothOrdersStayLoops)
{
    for (auto const order : {MPI_ORDER_C, MPI_ORDER_FORTRAN}) {
        int const sizes[] = {1000, 2000, 3000};
        int const counts[] = {900, 1900, 2900};
        int const starts[] = {10, 20, 30};
        Type made;
        MPI_Type_create_subarray(3, sizes, counts, starts, order, MPI_DOUBLE, &made.handle);
        auto const map = typemap_of(made.handle);
        ASSERT_TRUE(map);
        EXPECT_EQ(map->blocks(), order == MPI_ORDER_C ? 900 * 1900 : 2900 * 1900);
        EXPECT_TRUE(map->ascending());
        EXPECT_LT(map->bookkeeping_bytes(), 1024U);
    }
}

TEST(Datatype, IsDecodedOnceAndForgottenWithItsHandle)
{
    Type made;
    MPI_Type_vector(1000, 1, 3, MPI_INT, &made.handle);
    auto const first = typemap_of(made.handle);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->root().use_count(), 2) << "mine and the one that is kept";
    EXPECT_EQ(typemap_of(made.handle)->root(), first->root());
    {
        Type twin;
        MPI_Type_dup(made.handle, &twin.handle);
        auto const other = typemap_of(twin.handle);
        EXPECT_NE(other->root(), first->root()) << "attributes are not copied";
        EXPECT_EQ(*other, *first);
    }
    MPI_Type_free(&made.handle);
    EXPECT_EQ(first->root().use_count(), 1);
}

TEST(Datatype, AMillionBlocksAreQuick)
{
    constexpr int n = 1'000'000;
    std::vector<int> lengths(n);
    std::vector<MPI_Aint> displacements(n);
    for (int i = 0; i < n; ++i) {
        lengths[static_cast<std::size_t>(i)] = 1 + i % 5;
        displacements[static_cast<std::size_t>(i)] = MPI_Aint{i} * 64;
    }
    Type blocks;
    MPI_Type_create_hindexed(n, lengths.data(), displacements.data(), MPI_INT, &blocks.handle);
    Type pair;
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair.handle);
    std::iota(lengths.begin(), lengths.end(), 0);
    for (auto& length : lengths) length = length / 3 * 10;
    Type vectors;
    MPI_Type_create_indexed_block(n / 4, 1, lengths.data(), pair.handle, &vectors.handle);
    auto const start = std::chrono::steady_clock::now();
    EXPECT_EQ(typemap_of(blocks.handle)->blocks(), n);
    EXPECT_EQ(typemap_of(vectors.handle)->blocks(), n / 2);
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_LT(seconds, 5) << "sanitizers included";
}

TEST(Datatype, NoneIsRefused)
{
    auto const none = typemap_of(MPI_DATATYPE_NULL);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Errc::unsupported);
}

#if MPI_VERSION >= 4
TEST(Datatype, OnesMadeWithLargeCountsAreTheSame)
{
    MPI_Count const lengths[] = {1, 3, 2};
    MPI_Count const displacements[] = {-5, 7, 90};
    MPI_Datatype const types[] = {MPI_INT, MPI_SHORT_INT, MPI_BYTE};
    MPI_Count const sizes[] = {6, 7};
    MPI_Count const counts[] = {3, 4};
    MPI_Count const starts[] = {1, 2};
    int const distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int const arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
    int const processes[] = {2, 2};
    std::vector<Type> made(10);
    MPI_Type_contiguous_c(5, MPI_SHORT_INT, &made[0].handle);
    MPI_Type_vector_c(3, 2, 5, MPI_INT, &made[1].handle);
    MPI_Type_create_hvector_c(3, 2, 50, MPI_INT, &made[2].handle);
    MPI_Type_indexed_c(3, lengths, displacements, MPI_INT, &made[3].handle);
    MPI_Type_create_hindexed_c(3, lengths, displacements, MPI_INT, &made[4].handle);
    MPI_Type_create_indexed_block_c(3, 2, displacements, MPI_INT, &made[5].handle);
    MPI_Type_create_hindexed_block_c(3, 2, displacements, MPI_INT, &made[6].handle);
    MPI_Type_create_struct_c(3, lengths, displacements, types, &made[7].handle);
    MPI_Type_create_subarray_c(2, sizes, counts, starts, MPI_ORDER_FORTRAN, MPI_DOUBLE_INT, &made[8].handle);
    MPI_Type_create_darray_c(4, 3, 2, sizes, distributions, arguments, processes, MPI_ORDER_C, MPI_INT,
                             &made[9].handle);
    for (auto& type : made) {
        MPI_Type_commit(&type.handle);
        expect_as_mpi_packs(type.handle);
        Type wider;
        MPI_Type_create_resized_c(type.handle, -8, 500, &wider.handle);
        MPI_Type_commit(&wider.handle);
        expect_as_mpi_packs(wider.handle);
    }
    Type huge;
    MPI_Type_vector_c(MPI_Count{1} << 33, 1, 4, MPI_INT, &huge.handle);
    EXPECT_EQ(typemap_of(huge.handle)->bytes(), std::int64_t{1} << 35);
}
#endif

}  // namespace
}  // namespace tapioca::mpiio
