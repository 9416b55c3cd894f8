// The same as lost.cpp in a program that knows MPI only, for the drop-in library.
//
// lost_mpiio missing CALL LIBRARY: the last rank never comes to that call. In `open` it is missing where the drop-in
// library opens the file after the MPI library, LIBRARY, has: it calls the latter alone.
// lost_mpiio WAY SEED: ranks write and read files until one of them is lost, as loss.hpp says.
#include <mpi.h>

#include <vector>

#include <dlfcn.h>

#include "lost/loss.hpp"

namespace {

using namespace tapioca::test;

constexpr int each = 50'000;
int rank = 0;
int ranks = 1;

MPI_File open_file(MPI_Comm comm, char const* path)
{
    MPI_File file = MPI_FILE_NULL;
    if (MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS) std::abort();
    return file;
}

void missing(std::string const& call, char const* library)
{
    bool const mine = rank == ranks - 1;
    if (call == "open" && mine) {
        auto* const original = dlsym(dlopen(library, RTLD_NOW), "MPI_File_open");
        if (!original) std::abort();
        MPI_File file = MPI_FILE_NULL;
        reinterpret_cast<decltype(&MPI_File_open)>(original)(MPI_COMM_WORLD, "missing", MPI_MODE_CREATE | MPI_MODE_RDWR,
                                                             MPI_INFO_NULL, &file);
        never_come();
    }
    auto file = open_file(MPI_COMM_WORLD, "missing");
    std::vector<char> data(each, 'x');
    auto const at = static_cast<MPI_Offset>(rank) * each;
    if (call == "first" && mine) never_come();
    MPI_File_write_at_all(file, at, data.data(), each, MPI_CHAR, MPI_STATUS_IGNORE);
    if (call == "write" && mine) never_come();
    MPI_File_write_at_all(file, at, data.data(), each, MPI_CHAR, MPI_STATUS_IGNORE);
    if (call == "read" && mine) never_come();
    MPI_File_read_at_all(file, at, data.data(), each, MPI_CHAR, MPI_STATUS_IGNORE);
    if (call == "close" && mine) never_come();
    MPI_File_close(&file);
}

void work(Loss& loss)
{
    std::vector<char> data(each, static_cast<char>('a' + rank));
    auto const until = MPI_Wtime() + 20;
    while (MPI_Wtime() < until) {
        loss.maybe();
        auto file = open_file(MPI_COMM_WORLD, "lost");
        for (int i = 0; i < 6; ++i) {
            loss.maybe();
            auto const at = static_cast<MPI_Offset>(i * ranks + rank) * each;
            if (i == 4)
                MPI_File_read_at_all(file, at, data.data(), each, MPI_CHAR, MPI_STATUS_IGNORE);
            else
                MPI_File_write_at_all(file, at, data.data(), each, MPI_CHAR, MPI_STATUS_IGNORE);
        }
        MPI_File_sync(file);
        loss.maybe();
        MPI_File_close(&file);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    begin_job(rank);
    if (argc == 4) {
        missing(argv[2], argv[3]);
    } else if (argc == 3) {
        auto const seed = static_cast<unsigned>(std::atoi(argv[2]));
        MPI_Barrier(MPI_COMM_WORLD);
        Loss loss(argv[1], seed, rank == static_cast<int>(seed % static_cast<unsigned>(ranks)));
        work(loss);
    }
    MPI_Finalize();
    return 0;
}
