// write_on_tape DIRECTORY: a step of a job whose settings name the tape in DIRECTORY, for the buffers or for the log.
// The bytes must go through it and end up in the file. Linked with the parts of the library and one additional row.
#include <mpi.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <tapioca/tapioca.hpp>

namespace {

constexpr std::size_t block_bytes = 1000;
constexpr std::size_t blocks = 100;  // of each rank, which take turns

char byte_at(std::size_t offset)
{
    return static_cast<char>('a' + offset % 25);
}

std::string content(std::filesystem::path const& file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

bool says(bool so, int rank, char const* what)
{
    if (!so) std::fprintf(stderr, "rank %d: %s\n", rank, what);
    return so;
}

bool write(int rank, int ranks, std::string const& tape)
{
    std::vector<tapioca::Extent> extents;
    std::string bytes;
    for (std::size_t i = 0; i < blocks; ++i) {
        auto const offset = (i * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank)) * block_bytes;
        extents.push_back({static_cast<std::int64_t>(offset), block_bytes});
        for (std::size_t at = offset; at < offset + block_bytes; ++at) bytes += byte_at(at);
    }
    tapioca::Pattern pattern;
    pattern.add(extents);
    auto file = tapioca::File::open(MPI_COMM_WORLD, "file", tapioca::Mode::create);
    auto step = file.declare(pattern);
    step.write(0, std::as_bytes(std::span(bytes)));
    step.finish();
    // A log lies there under its name; buffers are mapped, and have lost theirs.
    bool const used =
        !std::filesystem::is_empty(tape) || content("/proc/self/maps").find(tape + '/') != std::string::npos;
    file.close();
    return says(used, rank, "nothing was on the tape");
}

bool check_file(int rank, int ranks)
{
    auto const found = content("file");
    bool same = found.size() == block_bytes * blocks * static_cast<std::size_t>(ranks);
    for (std::size_t at = 0; same && at < found.size(); ++at) same = found[at] == byte_at(at);
    return says(same, rank, "the file has other bytes than were written");
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::string const tape = argc > 1 ? argv[1] : "";
    bool good = write(rank, ranks, tape);
    good = check_file(rank, ranks) && good;
    MPI_Barrier(MPI_COMM_WORLD);
    good = says(std::filesystem::is_empty(tape), rank, "something stayed on the tape") && good;
    MPI_Finalize();
    return good ? 0 : 1;
}
