// soak_reader FILE COPY: copies a file of the soak through the declared interface, with any number of ranks, each of
// which reads other pieces than the ranks that wrote it.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <vector>

#include <tapioca/tapioca.hpp>

namespace {

using namespace tapioca;

constexpr std::int64_t piece = 3'000;

/// Every so manieth piece of the file.
std::vector<Extent> pieces_of(std::int64_t size, int rank, int ranks)
{
    std::vector<Extent> pieces;
    for (auto at = rank * piece; at < size; at += ranks * piece) pieces.push_back({at, std::min(piece, size - at)});
    return pieces;
}

void copy(char const* from, char const* to, int rank, int ranks)
{
    auto file = File::open(MPI_COMM_WORLD, from, Mode::read);
    auto const size = static_cast<std::int64_t>(file.size());
    auto const pieces = pieces_of(size, rank, ranks);
    std::vector<std::byte> data;
    for (auto const& extent : pieces) data.resize(data.size() + static_cast<std::size_t>(extent.length));
    Pattern pattern;
    pattern.add(pieces);
    auto const bytes = data.size();
    {
        auto step = file.declare(pattern);
        step.read(0, data);
        step.finish();
        if (step.received(0) != bytes) throw std::runtime_error("fewer bytes than the file has");
    }
    file.close();
    if (rank == 0) std::ofstream(to, std::ios::binary);
    MPI_Barrier(MPI_COMM_WORLD);
    std::fstream out(to, std::ios::binary | std::ios::in | std::ios::out);
    auto const* next = reinterpret_cast<char const*>(data.data());
    for (auto const& [offset, length] : pieces) {
        out.seekp(offset).write(next, length);
        next += length;
    }
    out.close();
    if (!out) throw std::runtime_error("the copy cannot be written");
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    try {
        if (argc == 3) copy(argv[1], argv[2], rank, ranks);
    } catch (std::exception const& error) {
        std::fprintf(stderr, "soak_reader: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return argc == 3 ? 0 : 2;
}
