// leave_log TARGET close|leave|flush|live: writes a staged file of a few steps, whose requests overlap between ranks
// and steps, and closes it, or ends without. With `update` it writes to a file that exists. With `flush` the first
// steps are flushed. With `live` it does the second half only when TARGET.go appears, with a flush in between. With
// `through` and `through-close` it uses MPI-IO, to be run with the drop-in library: small requests go to the file at
// once, over older ones that are in the log of another rank. With `through-live` it closes the
// file only when TARGET.go appears. Errors of MPI-IO are ignored.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <tapioca/tapioca.hpp>

namespace {

constexpr std::int64_t n = 24;  // of a side of the array

int rank = 0;
int ranks = 1;

std::vector<std::byte> bytes_of(std::uint64_t count, int salt)
{
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(salt) * 31 +
                                          static_cast<std::size_t>(rank) * 13 + 1);
    return bytes;
}

void write(tapioca::File& file, tapioca::Pattern const& pattern, int salt)
{
    auto step = file.declare(pattern);
    std::vector<std::vector<std::byte>> data;
    for (std::size_t var = 0; var < pattern.variables(); ++var)
        data.push_back(bytes_of(pattern.bytes(var), salt + static_cast<int>(var)));
    for (std::size_t var = 0; var < pattern.variables(); ++var) step.write(var, data[var]);
    step.finish();
}

/// A block each, its neighbour's block a step later, parts of an array, and every second byte of a stretch.
void write_steps(tapioca::File& file, int salt)
{
    constexpr std::int64_t block = 1000;
    tapioca::Pattern blocks;
    blocks.add({{rank * block, block}});
    write(file, blocks, salt);

    tapioca::Pattern shifted;
    shifted.add({{(rank + 1) % ranks * block + 100, 300}});
    write(file, shifted, salt + 1);

    tapioca::Pattern array;
    auto const base = ranks * block;
    auto const rows = n / ranks;
    array.add(tapioca::Subarray{{n, n}, {rank * rows, 3}, {rows, 9}, {1, 2}, 8, base});
    std::vector<tapioca::Extent> list;
    for (int i = 0; i < 20; ++i) list.push_back({base + n * n * 8 + (i * ranks + rank) * 5, 5});
    array.add(list);
    write(file, array, salt + 2);
}

/// Large enough that bringing it into the file takes several calls.
void write_much(tapioca::File& file, std::int64_t bytes)
{
    tapioca::Pattern pattern;
    pattern.add({{1000000 + rank * bytes, bytes}});
    write(file, pattern, 9);
}

void wait_for(std::string const& path)
{
    for (int i = 0; i < 600 && ::access(path.c_str(), F_OK) != 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void tell_ready_and_wait(std::string const& target)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::puts("ready");
    std::fflush(stdout);
    wait_for(target + ".go");
}

/// Requests of all ranks over the same bytes, one after the other, and small ones over them.
void write_through(std::string const& target, std::string const& how)
{
    MPI_File file = MPI_FILE_NULL;
    MPI_File_open(MPI_COMM_WORLD, target.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    constexpr int block = 100000;
    for (int turn = 0; turn < 4; ++turn) {
        auto const large = bytes_of(block, turn);
        MPI_File_write_at_all(file, ((rank + turn) % ranks) * (block / 2), large.data(), block, MPI_BYTE,
                              MPI_STATUS_IGNORE);
        auto const small = bytes_of(1000, 10 + turn);
        MPI_File_write_at(file, 1000 * (turn * ranks + rank), small.data(), 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    if (how == "through-live") tell_ready_and_wait(target);
    if (how != "through")
        MPI_File_close(&file);
    else
        MPI_Barrier(MPI_COMM_WORLD);
}

/// What a program does that never calls anything collective but open and close.
void write_alone(std::string const& target)
{
    MPI_File file = MPI_FILE_NULL;
    MPI_File_open(MPI_COMM_WORLD, target.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    auto const small = bytes_of(1000, rank);
    MPI_File_write_at(file, 1000 * rank, small.data(), 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc < 3) return 2;
    std::string const target = argv[1];
    std::string const how = argv[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (how.starts_with("through")) {
        write_through(target, how);
        if (how != "through") MPI_Finalize();
        ::_exit(0);
    }
    if (how == "alone") {
        write_alone(target);
        MPI_Finalize();
        return 0;
    }
    auto const mode = how == "update" ? tapioca::Mode::update : tapioca::Mode::create;
    auto file = tapioca::File::open(MPI_COMM_WORLD, target, mode);
    write_steps(file, 1);
    if (how == "flush") file.flush();
    if (how == "live") {
        tell_ready_and_wait(target);
        file.flush();
    }
    write_steps(file, 5);
    if (auto const* const much = std::getenv("LEAVE_MUCH")) write_much(file, std::atoll(much));
    if (how == "flushed") file.flush();
    if (how == "close" || how == "live" || how == "update")
        file.close();
    else
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    ::_exit(0);
}
