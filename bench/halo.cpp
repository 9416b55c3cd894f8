#include "halo.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include <fmt/core.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <tapioca/tapioca.hpp>

#include "core/units.hpp"

namespace bench {

namespace {

using Lengths = std::vector<std::int64_t>;

std::size_t product(Lengths const& lengths)
{
    std::size_t product = 1;
    for (auto const length : lengths) product *= static_cast<std::size_t>(length);
    return product;
}

/// An array that is cut into blocks, one per rank, and this rank's block in memory, with and without ghost cells.
class Halo {
public:
    Halo(MPI_Comm comm, HaloSetup const& setup, std::int64_t edge) : ghosts_(setup.ghosts)
    {
        int ranks = 1;
        int rank = 0;
        MPI_Comm_size(comm, &ranks);
        MPI_Comm_rank(comm, &rank);
        auto const dimensions = static_cast<std::size_t>(setup.dimensions);
        std::vector<int> grid(dimensions, 0);
        MPI_Dims_create(ranks, setup.dimensions, grid.data());
        Lengths shape;
        for (auto const blocks : grid) shape.push_back(blocks * edge);
        block_ = tapioca::block_of({.shape = shape, .grid = grid, .rank = rank});
        with_ghosts_.assign(dimensions, edge + 2 * ghosts_);
        packed.assign(product(block_.count), 0);
        array.assign(product(with_ghosts_), -1);
        for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = value(rank, i);
        copy_rows([](double* cells, double* row, std::size_t bytes) { std::memcpy(cells, row, bytes); });
        rank_ = rank;
    }

    [[nodiscard]] tapioca::Subarray const& block() const { return block_; }
    [[nodiscard]] auto interior()
    {
        return tapioca::interior(array, with_ghosts_, Lengths(with_ghosts_.size(), ghosts_));
    }
    void pack()
    {
        copy_rows([](double* cells, double* row, std::size_t bytes) { std::memcpy(row, cells, bytes); });
    }
    void unpack()
    {
        copy_rows([](double* cells, double* row, std::size_t bytes) { std::memcpy(cells, row, bytes); });
    }
    void forget()
    {
        std::fill(packed.begin(), packed.end(), -2);
        std::fill(array.begin(), array.end(), -2);
    }
    [[nodiscard]] bool packed_is_right() const
    {
        for (std::size_t i = 0; i < packed.size(); ++i)
            if (packed[i] != value(rank_, i)) return false;
        return true;
    }

    std::vector<double> packed;
    std::vector<double> array;

private:
    static double value(int rank, std::size_t i) { return rank + 1 + static_cast<double>(i) / 1024; }

    /// Calls copy(first cell in the array, beginning in packed memory, bytes) for every row of the block.
    template <class Copy>
    void copy_rows(Copy const& copy)
    {
        auto const row = static_cast<std::size_t>(block_.count.back());
        auto const dimensions = with_ghosts_.size();
        Lengths index(dimensions - 1, 0);
        for (std::size_t at = 0; at < packed.size(); at += row) {
            std::int64_t cell = 0;
            for (std::size_t d = 0; d + 1 < dimensions; ++d) cell = (cell + index[d] + ghosts_) * with_ghosts_[d + 1];
            copy(array.data() + cell + ghosts_, packed.data() + at, row * sizeof(double));
            for (auto d = dimensions - 1; d-- > 0 && ++index[d] == block_.count[d];) index[d] = 0;
        }
    }

    std::int64_t ghosts_;
    int rank_ = 0;
    tapioca::Subarray block_;
    Lengths with_ghosts_;
};

constexpr int steps_of_a_file = 4;  ///< the first is not counted

/// Writes or reads one file in one of the three ways, and returns the seconds per step.
double run_file(MPI_Comm comm, Halo& halo, std::string const& path, HaloCost& cost,
                std::function<void(tapioca::Step&, tapioca::Variable<double>)> const& step_of)
{
    auto const mode = cost.writing ? tapioca::Mode::create : tapioca::Mode::read;
    auto file = tapioca::File::open(comm, path, mode);
    tapioca::Pattern pattern;
    auto const variable = pattern.add<double>("u", halo.block());
    auto step = file.declare(pattern);
    auto const step_bytes = static_cast<std::int64_t>(product(halo.block().shape) * sizeof(double));
    double seconds = 0;
    for (int number = 0; number < steps_of_a_file; ++number) {
        step.rebase(number * step_bytes);
        auto const took = timed(comm, [&] { step_of(step, variable); });
        if (number > 0) seconds += took / (steps_of_a_file - 1);
    }
    auto const plan = nlohmann::json::parse(step.plan().json());
    auto const& route = plan[cost.writing ? "write" : "read"];
    auto const aggregators = route["aggregators"].size();
    cost.way = aggregators == 0 ? "direct" : fmt::format("{} aggregator{}", aggregators, aggregators == 1 ? "" : "s");
    file.close();
    return seconds;
}

/// One of the three ways to write or read a file.
struct MemoryWay {
    Spread HaloCost::*spread;
    std::function<void(tapioca::Step&, tapioca::Variable<double>)> step;
};

/// All ways, each on a file of its own; every repetition begins with another one. The first does not count.
template <class Run>
void take_turns(std::array<MemoryWay, 3> const& ways, int repetition, HaloCost& cost, Run const& run)
{
    for (std::size_t i = 0; i < ways.size(); ++i) {
        auto const& way = ways[(i + static_cast<std::size_t>(repetition + 1)) % ways.size()];
        auto const seconds = run(way);
        if (repetition >= 0) (cost.*way.spread).push_back(seconds);
    }
}

void write_all(MPI_Comm comm, Halo& halo, std::string const& path, HaloCost& cost, int repetition)
{
    std::array<MemoryWay, 3> const ways{{{&HaloCost::packed,
                                          [&](auto& step, auto u) {
                                              step.write(u, halo.packed);
                                              step.finish();
                                          }},
                                         {&HaloCost::in_place,
                                          [&](auto& step, auto u) {
                                              step.write(u, halo.interior());
                                              step.finish();
                                          }},
                                         {&HaloCost::by_hand, [&](auto& step, auto u) {
                                              halo.pack();
                                              step.write(u, halo.packed);
                                              step.finish();
                                          }}}};
    take_turns(ways, repetition, cost, [&](auto const& way) { return run_file(comm, halo, path, cost, way.step); });
}

void read_all(MPI_Comm comm, Halo& halo, std::string const& path, HaloCost& cost, int repetition)
{
    std::array<MemoryWay, 3> const ways{{{&HaloCost::packed,
                                          [&](auto& step, auto u) {
                                              step.read(u, halo.packed);
                                              step.finish();
                                          }},
                                         {&HaloCost::in_place,
                                          [&](auto& step, auto u) {
                                              step.read(u, halo.interior());
                                              step.finish();
                                          }},
                                         {&HaloCost::by_hand, [&](auto& step, auto u) {
                                              step.read(u, halo.packed);
                                              step.finish();
                                              halo.unpack();
                                          }}}};
    take_turns(ways, repetition, cost, [&](auto const& way) {
        halo.forget();
        auto const seconds = run_file(comm, halo, path, cost, way.step);
        if (way.spread == &HaloCost::in_place) halo.pack();
        cost.verified = cost.verified && halo.packed_is_right();
        return seconds;
    });
    halo.unpack();
}

std::string show(HaloCost const& cost, Spread const& seconds)
{
    return fmt::format("{:.3f} ({:.3f}-{:.3f}) {:>6.2f}x", seconds.median() * 1e3, seconds.min() * 1e3,
                       seconds.max() * 1e3, seconds.median() / cost.packed.median());
}

}  // namespace

std::vector<HaloCost> measure_halos(MPI_Comm comm, HaloSetup const& setup)
{
    std::vector<HaloCost> costs;
    auto const path = setup.directory + "/tapioca-bench.halo.dat";
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    for (auto const edge : setup.edges) {
        Halo halo(comm, setup, edge);
        HaloCost write;
        write.edge = edge;
        write.bytes_per_rank = static_cast<std::int64_t>(halo.packed.size() * sizeof(double));
        auto read = write;
        read.writing = false;
        for (int repetition = -1; repetition < setup.repetitions; ++repetition) {  // the first does not count
            write_all(comm, halo, path, write, repetition);
            read_all(comm, halo, path, read, repetition);
        }
        read.verified = everywhere(comm, read.verified);
        if (rank == 0) ::unlink(path.c_str());
        MPI_Barrier(comm);
        costs.push_back(std::move(write));
        if (setup.read) costs.push_back(std::move(read));
    }
    return costs;
}

std::string table(std::string const& title, std::vector<HaloCost> const& costs)
{
    auto text = title + "\n";
    constexpr auto row = "  {:>5}  {:>5}  {:>10}  {:>14}  {:>32}  {:>32}  {:>32}\n";
    text += fmt::format(row, "", "edge", "per rank", "way", "already packed", "in place", "packed by hand");
    for (auto const& cost : costs)
        text += fmt::format(row, cost.writing ? "write" : "read", cost.edge,
                            tapioca::core::format_bytes(static_cast<std::uint64_t>(cost.bytes_per_rank)), cost.way,
                            show(cost, cost.packed), show(cost, cost.in_place), show(cost, cost.by_hand));
    return text;
}

std::string to_json(std::vector<HaloCost> const& costs)
{
    auto array = nlohmann::ordered_json::array();
    for (auto const& cost : costs)
        for (auto const& [method, seconds] :
             {std::pair{"packed", &cost.packed}, {"in_place", &cost.in_place}, {"by_hand", &cost.by_hand}})
            array.push_back({{"op", cost.writing ? "write" : "read"},
                             {"edge", cost.edge},
                             {"bytes_per_rank", cost.bytes_per_rank},
                             {"way", cost.way},
                             {"method", method},
                             {"median_s", seconds->median()},
                             {"min_s", seconds->min()},
                             {"max_s", seconds->max()},
                             {"cv", seconds->cv()},
                             {"verified", cost.verified}});
    return array.dump(2);
}

}  // namespace bench
