// Parts of arrays in memory: ghost cells in 1 to 4 dimensions and strides, in C++ and in C; what can be wrong with
// them; and the names of variables. property_test has sections in random patterns and configurations.
#include <cstring>
#include <numeric>

#include <tapioca/tapioca.h>

#include "mpi/c_test.hpp"
#include "support/random_patterns.hpp"

namespace tapioca::test {
namespace {

constexpr double ghost = -1;

/// This rank's block of an array whose elements are their own numbers, in memory with ghost cells around it.
class Halo {
public:
    Halo(Random& random, std::size_t dimensions)
    {
        std::int64_t const most[] = {60'000, 300, 40, 16};
        for (std::size_t d = 0; d < dimensions; ++d) {
            global.push_back(random.pick(ranks(), most[dimensions - 1]));
            before.push_back(random.pick(0, 3));
            after.push_back(random.pick(0, 3));
        }
        block = block_of({.shape = global, .ranks = ranks(), .rank = rank(), .element_size = sizeof(double)});
        for (std::size_t d = 0; d < dimensions; ++d) shape.push_back(before[d] + block.count[d] + after[d]);
        array.assign(static_cast<std::size_t>(elements(shape)), ghost);
    }

    static std::int64_t elements(std::vector<std::int64_t> const& counts)
    {
        return std::accumulate(counts.begin(), counts.end(), std::int64_t{1}, std::multiplies<>());
    }
    void fill()
    {
        auto const inner = inside();
        auto const numbers = expand(block);
        for (std::size_t i = 0; i < inner.size(); ++i)
            array[inner[i]] = static_cast<double>(numbers[i].offset / static_cast<std::int64_t>(sizeof(double)));
    }
    /// The elements that fill() sets, and no ghost cell.
    [[nodiscard]] bool is_filled() const
    {
        auto other = *this;
        std::fill(other.array.begin(), other.array.end(), ghost);
        other.fill();
        return other.array == array;
    }
    [[nodiscard]] std::vector<std::size_t> inside() const
    {
        std::vector<std::size_t> places;
        for (auto const& extent : expand({shape, before, block.count, {}, 1, 0}))
            places.push_back(static_cast<std::size_t>(extent.offset));
        return places;
    }

    std::vector<std::int64_t> global, before, after, shape;
    Subarray block;
    std::vector<double> array;
};

void expect_numbers(std::string const& path, std::int64_t count)
{
    auto const bytes = contents(path);
    ASSERT_EQ(bytes.size(), static_cast<std::size_t>(count) * sizeof(double));
    std::vector<double> values(static_cast<std::size_t>(count));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<double>(i));
}

Options way(int trial)
{
    Options options;
    options.direct = trial % 3 == 0 ? Direct::always : trial % 3 == 1 ? Direct::never : Direct::automatic;
    if (trial % 4 == 0) options.stage = "dram";
    return options;
}

TEST(Sections, InteriorsOfOneToFourDimensions)
{
    Scratch const scratch;
    Random random(5);
    for (int trial = 0; trial < 48; ++trial) {
        Halo out(random, static_cast<std::size_t>(trial % 4) + 1);
        out.fill();
        auto const path = scratch.path("file");
        auto file = File::open(MPI_COMM_WORLD, path, Mode::create, way(trial));
        Pattern pattern;
        auto const u = pattern.add<double>("u", out.block);
        auto step = file.declare(pattern);
        step.write(u, interior(out.array, out.shape, out.before, out.after));
        EXPECT_EQ(step.finish().bytes, out.inside().size() * sizeof(double));
        file.flush();
        expect_numbers(path, Halo::elements(out.global));
        barrier();

        auto in = out;
        std::fill(in.array.begin(), in.array.end(), ghost);
        step.read(u, interior(in.array, in.shape, in.before, in.after));
        step.finish();
        EXPECT_TRUE(in.is_filled()) << "trial " << trial;
        EXPECT_EQ(step.received(u), in.inside().size() * sizeof(double));
        file.close();
    }
}

TEST(Sections, OtherShapesOfTheSameVariable)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    Pattern pattern;
    auto const u = pattern.add<int>("u", Subarray{{ranks(), 6, 4}, {rank(), 0, 0}, {1, 6, 4}});
    auto step = file.declare(pattern);
    std::vector<int> packed(24);
    std::iota(packed.begin(), packed.end(), rank() * 100);
    std::vector<int> twice(48, -1), framed(48, -1);
    for (std::size_t i = 0; i < 24; ++i) twice[2 * i] = packed[i];                         // one dimension
    for (std::size_t i = 0; i < 24; ++i) framed[(i / 4 + 1) * 6 + i % 4 + 1] = packed[i];  // two dimensions
    std::vector<int> const constant = framed;
    auto const expect_packed = [&] {
        std::vector<int> back(24);
        step.read(u, back);
        step.finish();
        EXPECT_EQ(back, packed);
    };
    step.write(u, section(twice, {.shape = {48}, .start = {0}, .count = {24}, .stride = {2}}));
    step.finish();
    expect_packed();
    for (auto& value : packed) value += 50;
    for (std::size_t i = 0; i < 24; ++i) framed[(i / 4 + 1) * 6 + i % 4 + 1] = packed[i];
    step.write(u, interior(framed, {8, 6}, {1, 1}));
    step.finish();
    expect_packed();
    step.write(u, interior(constant, {8, 6}, {1, 1}));
    step.finish();
    for (auto& value : packed) value -= 50;
    expect_packed();
    step.write(u, section(packed, {.shape = {6, 4}, .start = {0, 0}, .count = {6, 4}}));  // packed in truth
    step.finish();
    expect_packed();
    file.close();
}

TEST(Sections, AFileThatEndsInTheMiddle)
{
    Scratch const scratch;
    auto const path = scratch.path("file");
    constexpr std::int64_t rows = 100, columns = 50, there = rows * columns * 4 / 3;
    for (auto const direct : {Direct::always, Direct::never}) {
        if (rank() == 0) write_plain(path, std::vector<std::byte>(static_cast<std::size_t>(there), std::byte{7}));
        barrier();
        Options options;
        options.direct = direct;
        auto file = File::open(MPI_COMM_WORLD, path, Mode::read, options);
        Pattern pattern;
        pattern.add(Subarray{{rows, columns}, {0, 0}, {rows, columns}, {}, 4, 0});
        auto step = file.declare(pattern);
        std::vector<std::byte> array(static_cast<std::size_t>((rows + 2) * (columns + 2) * 4), std::byte{1});
        step.read(0, interior(array, {rows + 2, columns + 2, 4}, {1, 1, 0}));
        EXPECT_EQ(step.finish().bytes, static_cast<std::uint64_t>(there));
        EXPECT_EQ(std::count(array.begin(), array.end(), std::byte{7}), there);
        EXPECT_EQ(array[static_cast<std::size_t>((columns + 3) * 4)], std::byte{7});
        file.close();
    }
}

TEST(Sections, AStepThatIsDroppedWhileItIsUnderWayTakesItsSectionAlong)
{
    Scratch const scratch;
    Options options;
    options.direct = Direct::always;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create, options);
    constexpr std::int64_t pieces = 200'000;
    std::vector<std::byte> const array(static_cast<std::size_t>(2 * pieces));
    {
        Pattern pattern;
        std::vector<Extent> extents;
        for (std::int64_t i = 0; i < pieces; ++i) extents.push_back({(i * ranks() + rank()) * 3, 1});
        pattern.add(extents);
        auto step = file.declare(pattern);
        step.write(0, section(array, {.shape = {2 * pieces}, .start = {0}, .count = {pieces}, .stride = {2}}));
        step.start();
    }
    EXPECT_EQ(caught([&] { file.close(); }).code, Errc::invalid_state);
    expect_next_file_works(scratch);
}

/// A step of one variable of 6 x 4 values of 8 bytes on every rank.
struct Prepared {
    explicit Prepared(Scratch const& scratch)
        : file(File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create)), step(declare(file))
    {
    }
    static Step declare(File& file)
    {
        Pattern pattern;
        (void)pattern.add<double>("velocity", Subarray{{6 * ranks(), 4}, {6 * rank(), 0}, {6, 4}});
        return file.declare(pattern);
    }
    /// The last rank supplies `part` of `array`, the others what is right.
    void expect_failure(std::vector<double> const& array, ArrayPart const& part, std::vector<std::string> const& parts)
    {
        if (last())
            step.write(0, section(array, part));
        else
            step.write(0, values);
        auto const error = same_error_on_all_ranks([&] { step.finish(); });
        EXPECT_EQ(error.code, Errc::invalid_argument);
        EXPECT_EQ(error.rank, ranks() - 1);
        expect_parts(error.text, {"write(variable 0 'velocity'): "});
        expect_parts(error.text, parts);
    }
    File file;
    Step step;
    std::vector<double> values = std::vector<double>(24, 1.0);
};

TEST(Sections, WhatIsWrongIsToldOnEveryRank)
{
    Scratch const scratch;
    Prepared prepared(scratch);
    std::vector<double> const array(8 * 6);
    prepared.expect_failure(array, {{8, 6}, {1, 1}, {4, 6}}, {"leaves the array in dimension 1: start 1, count 6"});
    prepared.expect_failure(array, {{8, 6}, {0, 0}, {4, 6}},
                            {"the section has 4 x 6 elements, but 6 x 4 were declared"});
    prepared.expect_failure(array, {{8, 6}, {1, 1}, {6, 3}}, {"the section has 144 bytes, but 192 were declared"});
    prepared.expect_failure(array, {{8, 7}, {1, 1}, {6, 4}}, {"an array of shape [8, 7], which is 448 bytes", "384"});
    prepared.expect_failure(array, {{8, 6}, {1}, {6, 4}}, {"the section has 2 dimensions in shape, but 1 in start"});
    prepared.expect_failure(array, {{}, {}, {}}, {"the section has 0 dimensions"});
    prepared.expect_failure(array, {{8, 6}, {-1, 0}, {6, 4}}, {"none may be negative"});
    prepared.expect_failure(array, {{8, 6}, {1, 1}, {6, 4}, {1, 0}}, {"the stride must be positive"});
    prepared.expect_failure(array, interior(array, {8, 6}, {1, 1}, {1, 1, 1}).part(), {"but 2 in start, 3 in count"});
    prepared.step.write(0, section(array, {{8, 6}, {1, 1}, {6, 4}}));
    EXPECT_EQ(prepared.step.finish().bytes, 192U);
    prepared.file.close();
}

TEST(Sections, HalosInC)
{
    Scratch const scratch;
    Random random(6);
    for (int trial = 0; trial < 24; ++trial) {
        Halo out(random, static_cast<std::size_t>(trial % 4) + 1);
        out.fill();
        auto const ndims = static_cast<int>(out.shape.size());
        auto const path = scratch.path("file");
        TAPIOCA_File file = TAPIOCA_FILE_NULL;
        EXPECT_OK(TAPIOCA_Open(MPI_COMM_WORLD, path.c_str(), TAPIOCA_MODE_CREATE, MPI_INFO_NULL, &file));
        TAPIOCA_Pattern pattern = TAPIOCA_PATTERN_NULL;
        EXPECT_OK(TAPIOCA_Pattern_create(&pattern));
        EXPECT_OK(TAPIOCA_Pattern_add_block(pattern, ndims, out.global.data(), ranks(), rank(), 8, 0, nullptr));
        TAPIOCA_Step step = TAPIOCA_STEP_NULL;
        EXPECT_OK(TAPIOCA_Declare(file, pattern, &step));
        std::vector<std::int64_t> const ones(out.shape.size(), 1);
        auto const* const stride = trial % 2 == 0 ? nullptr : ones.data();
        EXPECT_OK(TAPIOCA_Step_write_section(step, 0, out.array.data(), ndims, out.shape.data(), out.before.data(),
                                             out.block.count.data(), stride, 8));
        EXPECT_OK(TAPIOCA_Step_finish(step, nullptr));
        expect_numbers(path, Halo::elements(out.global));
        barrier();
        auto in = out;
        std::fill(in.array.begin(), in.array.end(), ghost);
        EXPECT_OK(TAPIOCA_Step_read_section(step, 0, in.array.data(), ndims, in.shape.data(), in.before.data(),
                                            in.block.count.data(), stride, 8));
        EXPECT_OK(TAPIOCA_Step_finish(step, nullptr));
        EXPECT_TRUE(in.is_filled()) << "trial " << trial;
        EXPECT_OK(TAPIOCA_Pattern_free(&pattern));
        EXPECT_OK(TAPIOCA_Step_free(&step));
        EXPECT_OK(TAPIOCA_Close(&file));
    }
}

TEST(Sections, MistakesInC)
{
    Scratch const scratch;
    TAPIOCA_File file = TAPIOCA_FILE_NULL;
    EXPECT_OK(TAPIOCA_Open(MPI_COMM_WORLD, scratch.path("file").c_str(), TAPIOCA_MODE_CREATE, MPI_INFO_NULL, &file));
    TAPIOCA_Pattern pattern = TAPIOCA_PATTERN_NULL;
    EXPECT_OK(TAPIOCA_Pattern_create(&pattern));
    std::int64_t const offset[] = {rank() * 32}, length[] = {32};
    EXPECT_OK(TAPIOCA_Pattern_add_extents(pattern, 1, offset, length, nullptr));
    EXPECT_OK(TAPIOCA_Pattern_set_name(pattern, 0, "mass"));
    TAPIOCA_Step step = TAPIOCA_STEP_NULL;
    EXPECT_OK(TAPIOCA_Declare(file, pattern, &step));
    double array[8] = {};
    std::int64_t const shape[] = {8}, start[] = {1}, count[] = {4}, far[] = {9};
    auto const expect = [&](int returned, std::vector<std::string> const& parts) {
        EXPECT_OK(returned);  // which is kept
        expect_code(TAPIOCA_Step_finish(step, nullptr), TAPIOCA_ERR_INVALID_ARGUMENT, parts);
    };
    expect(TAPIOCA_Step_write_section(step, 0, nullptr, 1, shape, start, count, nullptr, 8),
           {"write(variable 0 'mass'): the array is null"});
    expect(TAPIOCA_Step_write_section(step, 0, array, 1, nullptr, start, count, nullptr, 8), {"is null"});
    expect(TAPIOCA_Step_write_section(step, 0, array, 0, shape, start, count, nullptr, 8), {"0 dimensions"});
    expect(TAPIOCA_Step_write_section(step, 0, array, 2000000, shape, start, count, nullptr, 8),
           {"2000000 dimensions: there must be 1 to 32"});
    expect(TAPIOCA_Step_write_section(step, 0, array, 1, shape, start, far, nullptr, 8), {"leaves the array"});
    expect(TAPIOCA_Step_write_section(step, 0, array, 1, shape, start, count, nullptr, 0), {"element size 0"});
    expect(TAPIOCA_Step_write_section(step, 7, array, 1, shape, start, count, nullptr, 8),
           {"1 variables are declared"});
    EXPECT_OK(TAPIOCA_Step_write_section(step, 0, array, 1, shape, start, count, nullptr, 8));
    EXPECT_OK(TAPIOCA_Step_finish(step, nullptr));
    EXPECT_OK(TAPIOCA_Step_free(&step));

    EXPECT_OK(TAPIOCA_Pattern_set_name(pattern, 3, "none"));
    expect_code(TAPIOCA_Declare(file, pattern, &step), TAPIOCA_ERR_INVALID_ARGUMENT,
                {"TAPIOCA_Pattern_set_name(variable 3): there are 1 variables"});
    EXPECT_OK(TAPIOCA_Pattern_free(&pattern));
    EXPECT_OK(TAPIOCA_Close(&file));
}

TEST(Names, AreInThePlanInWordsAndAsJson)
{
    Scratch const scratch;
    auto file = File::open(MPI_COMM_WORLD, scratch.path("file"), Mode::create);
    Pattern pattern;
    (void)pattern.add<double>("velocity", {{rank() * 8, 8}});
    pattern.add({{ranks() * 8 + rank(), 1}});
    pattern.set_name(pattern.add({{ranks() * 9 + rank(), 1}}), "mask");
    auto const step = file.declare(pattern);
    expect_parts(step.plan().explain(), {"  of    velocity, variable 1, mask\n"});
    expect_parts(step.plan().json(), {R"("variables":["velocity","variable 1","mask"])"});
    Pattern nameless;
    nameless.add({{rank(), 1}});
    auto const other = file.declare(nameless);
    EXPECT_EQ(other.plan().explain().find("  of  "), std::string::npos);
    EXPECT_EQ(other.plan().json().find("variables"), std::string::npos);
    file.close();
}

}  // namespace
}  // namespace tapioca::test
