// The promises about staged files that the fuzzer does not check: staged SCENARIO... runs them in one job, with the
// drop-in library and TAPIOCA_STAGE.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiio/program.hpp"

namespace {

using Bytes = std::vector<char>;

constexpr int new_file = MPI_MODE_RDWR | MPI_MODE_CREATE;
constexpr MPI_Offset region = 256 * 1024;  ///< of each rank

MPI_File open_file(std::string const& name, int mode = new_file)
{
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_WORLD, name.c_str(), mode, MPI_INFO_NULL, &file), "open " + name);
    return file;
}

/// Of one rank, and staged: only with a hint, since others may open it too.
MPI_File open_alone(std::string const& name)
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "tapioca_stage", std::getenv("TAPIOCA_STAGE"));
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_SELF, name.c_str(), new_file, info, &file), "open " + name);
    MPI_Info_free(&info);
    return file;
}

void close_file(MPI_File& file)
{
    right(MPI_File_close(&file), "close");
    MPI_Barrier(MPI_COMM_WORLD);
}

Bytes noise(std::size_t size, unsigned seed)
{
    std::mt19937 random(seed);
    Bytes bytes(size);
    for (auto& byte : bytes) byte = static_cast<char>(random());
    return bytes;
}

Bytes read_file(std::string const& name)
{
    std::ifstream in(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_at_all(MPI_File file, MPI_Offset at, Bytes const& bytes)
{
    MPI_Status status;
    right(MPI_File_write_at_all(file, at, bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, &status), "write");
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    require(count == static_cast<int>(bytes.size()), "the count of a write");
}

void write_at(MPI_File file, MPI_Offset at, Bytes const& bytes)
{
    right(MPI_File_write_at(file, at, bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, MPI_STATUS_IGNORE),
          "write_at");
}

/// As many as there are.
Bytes read_at(MPI_File file, MPI_Offset at, int size)
{
    Bytes bytes(static_cast<std::size_t>(size));
    MPI_Status status;
    right(MPI_File_read_at(file, at, bytes.data(), size, MPI_BYTE, &status), "read_at");
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    bytes.resize(static_cast<std::size_t>(count));
    return bytes;
}

void put(Bytes& file, MPI_Offset at, Bytes const& bytes)
{
    auto const end = static_cast<std::size_t>(at) + bytes.size();
    if (file.size() < end) file.resize(end);
    std::copy(bytes.begin(), bytes.end(), file.begin() + at);
}

void require_part(Bytes const& file, MPI_Offset at, Bytes const& wanted, std::string const& what)
{
    require(file.size() >= static_cast<std::size_t>(at) + wanted.size() &&
                std::equal(wanted.begin(), wanted.end(), file.begin() + at),
            what);
}

/// Two writes of a rank that overlap: from the same byte on, a later one, and one inside the other.
void own_overlaps()
{
    struct Pair {
        MPI_Offset first, second;
        std::size_t first_size, second_size;
    };
    std::vector<Pair> const pairs = {{0, 0, 1000, 600},        {2000, 2000, 600, 1000}, {4000, 4300, 1000, 1000},
                                     {6300, 6000, 1000, 1000}, {8000, 8200, 1000, 300}, {10000, 9800, 300, 1000}};
    auto file = open_file("own overlaps");
    Bytes wanted;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        auto const& [first, second, first_size, second_size] = pairs[i];
        auto const a = noise(first_size, static_cast<unsigned>(i));
        auto const b = noise(second_size, static_cast<unsigned>(i + 100));
        write_at_all(file, rank * region + first, a);
        write_at_all(file, rank * region + second, b);
        put(wanted, first, a);
        put(wanted, second, b);
    }
    close_file(file);
    auto const found = read_file("own overlaps");
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        auto const begin = std::min(pairs[i].first, pairs[i].second);
        auto const end = std::max(pairs[i].first + static_cast<MPI_Offset>(pairs[i].first_size),
                                  pairs[i].second + static_cast<MPI_Offset>(pairs[i].second_size));
        require_part(found, rank * region + begin, {wanted.begin() + begin, wanted.begin() + end},
                     "pair " + std::to_string(i));
    }
}

/// 200 of them, collective ones, small independent ones, which go to the file at once, and large ones.
void random_overlaps()
{
    std::mt19937 random(static_cast<unsigned>(rank) + 7);
    auto file = open_file("random overlaps");
    Bytes wanted(static_cast<std::size_t>(region));
    write_at_all(file, rank * region, wanted);
    for (unsigned i = 0; i < 200; ++i) {
        auto const size = 1 + random() % (i % 20 == 0 ? 100'000 : 5'000);
        auto const at = static_cast<MPI_Offset>(random() % (static_cast<std::size_t>(region) - size));
        auto const bytes = noise(size, i);
        if (i % 3 == 0)
            write_at(file, rank * region + at, bytes);
        else
            write_at_all(file, rank * region + at, bytes);
        put(wanted, at, bytes);
        if (i % 50 == 17) require(read_at(file, rank * region, region) == wanted, "what this rank has written");
    }
    close_file(file);
    require_part(read_file("random overlaps"), rank * region, wanted, "the file after 200 writes");
}

/// Rank after rank writes, each over a part of what those before it wrote, and nobody synchronises.
void later_calls_win()
{
    auto file = open_file("later calls");
    Bytes wanted;
    for (int turn = 0; turn < 4 * ranks; ++turn) {
        auto const bytes = noise(3000, static_cast<unsigned>(turn));
        bool const mine = turn % ranks == rank;
        write_at_all(file, turn % 3 * 500, mine ? bytes : Bytes());
        put(wanted, turn % 3 * 500, bytes);
    }
    close_file(file);
    require(read_file("later calls") == wanted, "the latest collective call's bytes");
}

Bytes read_at_all(MPI_File file, MPI_Offset at, int size)
{
    Bytes bytes(static_cast<std::size_t>(size));
    MPI_Status status;
    right(MPI_File_read_at_all(file, at, bytes.data(), size, MPI_BYTE, &status), "read_at_all");
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    bytes.resize(static_cast<std::size_t>(count));
    return bytes;
}

/// What is in the logs is read from there, without a flush, unless some of it went to the file at once.
void collective_reads()
{
    auto file = open_file("collective reads");
    auto const regions = [](int of_rank) {
        return noise(static_cast<std::size_t>(region), static_cast<unsigned>(of_rank) + 40);
    };
    write_at_all(file, rank * region, regions(rank));
    auto const next = (rank + 1) % ranks;
    require(read_at_all(file, next * region, region) == regions(next), "another rank's region");
    require(read_at_all(file, rank * region, rank == 0 ? 0 : 999).size() == (rank == 0 ? 0U : 999U), "the count");
    MPI_Datatype blocks = MPI_DATATYPE_NULL;
    MPI_Type_vector(100, 10, 20, MPI_BYTE, &blocks);
    MPI_Type_commit(&blocks);
    Bytes apart(2000, 'x');
    right(MPI_File_read_at_all(file, next * region, apart.data(), 1, blocks, MPI_STATUS_IGNORE), "with gaps in memory");
    auto wanted = Bytes(2000, 'x');
    auto const theirs = regions(next);
    for (int i = 0; i < 100; ++i) std::copy_n(theirs.begin() + i * 10, 10, wanted.begin() + i * 20);
    require(apart == wanted, "with gaps in memory");
    MPI_Type_free(&blocks);
    MPI_Barrier(MPI_COMM_WORLD);
    require(std::filesystem::file_size("collective reads") == 0, "nothing was flushed");
    MPI_Barrier(MPI_COMM_WORLD);

    Bytes all;
    for (int r = 0; r < ranks; ++r) put(all, r * region, regions(r));
    for (int r = 0; r < ranks; ++r) put(all, r * region + 300, noise(50, static_cast<unsigned>(r) + 60));
    write_at(file, rank * region + 300, noise(50, static_cast<unsigned>(rank) + 60));
    require(read_at_all(file, 0, static_cast<int>(all.size())) == all, "with bytes that went to the file at once");
    close_file(file);
    require(read_file("collective reads") == all, "the file");
}

/// They go to the file at once and win over what was staged before, by this rank or by another.
void small_independent_writes()
{
    auto file = open_file("small writes");
    write_at_all(file, rank * region, noise(static_cast<std::size_t>(region), 1));
    auto const next = (rank + 1) % ranks;
    auto const own = noise(500, static_cast<unsigned>(rank) + 10);
    auto const others = noise(700, static_cast<unsigned>(rank) + 20);
    MPI_Barrier(MPI_COMM_WORLD);
    write_at(file, rank * region + 1000, own);
    write_at(file, next * region + 5000, others);
    MPI_Barrier(MPI_COMM_WORLD);
    require_part(read_file("small writes"), rank * region + 1000, own, "a small write is in the file at once");
    auto const before = (rank + ranks - 1) % ranks;
    require_part(read_file("small writes"), rank * region + 5000, noise(700, static_cast<unsigned>(before) + 20),
                 "another rank's small write");
    MPI_Barrier(MPI_COMM_WORLD);
    close_file(file);
    auto wanted = noise(static_cast<std::size_t>(region), 1);
    put(wanted, 1000, own);
    put(wanted, 5000, noise(700, static_cast<unsigned>(before) + 20));
    require_part(read_file("small writes"), rank * region, wanted, "small writes over staged bytes");
}

/// A large independent write is staged; a small one of another rank after it goes through, and must stay.
void small_after_large()
{
    auto file = open_file("small after large");
    if (rank == 0) write_at(file, 0, noise(200'000, 1));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) write_at(file, 100, noise(1000, 2));
    MPI_Barrier(MPI_COMM_WORLD);
    close_file(file);
    auto wanted = noise(200'000, 1);
    put(wanted, 100, noise(1000, 2));
    require_part(read_file("small after large"), 0, wanted, "a small write after a large one");
}

/// Of a read, parts are in the file, in this rank's log, in neither, and behind the end.
void own_writes_are_read()
{
    auto const name = "own writes";
    Bytes wanted = noise(static_cast<std::size_t>(ranks * region), 3);
    if (rank == 0) std::ofstream(name, std::ios::binary).write(wanted.data(), static_cast<long>(wanted.size()));
    MPI_Barrier(MPI_COMM_WORLD);
    auto file = open_file(name);
    auto const staged = noise(3000, 4);
    auto const large = noise(100'000, 5);
    auto const base = rank * region;
    write_at_all(file, base + 10'000, staged);
    write_at(file, base + 100'000, large);
    put(wanted, base + 10'000, staged);
    put(wanted, base + 100'000, large);
    for (auto const& [at, size] :
         std::vector<std::pair<int, int>>{{0, 500}, {9'000, 2'000}, {10'100, 100}, {12'000, 2'000}, {0, 200'000}})
        require(read_at(file, base + at, size) == Bytes(wanted.begin() + base + at, wanted.begin() + base + at + size),
                "a read of " + std::to_string(size) + " bytes at " + std::to_string(at));
    MPI_Request request = MPI_REQUEST_NULL;
    Bytes back(2000);
    MPI_Status status;
    right(MPI_File_iread_at(file, base + 9'500, back.data(), 2000, MPI_BYTE, &request), "iread_at");
    right(MPI_Wait(&request, &status), "wait");
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    require(count == 2000 && std::equal(back.begin(), back.end(), wanted.begin() + base + 9'500), "iread_at");
    // Behind the end of the file, which this rank makes longer, and others of its node perhaps more so.
    write_at_all(file, (ranks + rank + 1) * region, staged);
    require(read_at(file, (ranks + rank + 1) * region - 10, 5000).size() >= 3010, "a read across the end");
    MPI_Barrier(MPI_COMM_WORLD);
    auto const last = 2 * ranks * region;
    if (rank == ranks - 1) require(read_at(file, last - 10, 5000).size() == 3010, "a read across the last end");
    close_file(file);
}

void sizes()
{
    auto file = open_file("sizes");
    auto const size_of = [&] {
        MPI_Offset size = -1;
        right(MPI_File_get_size(file, &size), "get_size");
        return size;
    };
    write_at_all(file, rank * region, noise(1000, 1));
    require(size_of() >= rank * region + 1000, "the size with this rank's writes");
    MPI_Offset position = -1;
    if (rank == ranks - 1) {
        right(MPI_File_seek(file, 0, MPI_SEEK_END), "seek");
        right(MPI_File_get_position(file, &position), "get_position");
        require(position == (ranks - 1) * region + 1000, "the end that a seek finds");
    }
    right(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    right(MPI_File_sync(file), "sync");
    require(size_of() == (ranks - 1) * region + 1000, "the size with everybody's writes");
    MPI_Barrier(MPI_COMM_WORLD);
    write_at_all(file, (ranks + rank) * region, noise(1000, 1));
    right(MPI_File_set_size(file, region + 7), "set_size");
    require(size_of() == region + 7, "the size that was set");
    close_file(file);
    auto const found = read_file("sizes");
    require(found.size() == static_cast<std::size_t>(region) + 7, "writes before set_size do not come back");
    auto wanted = noise(1000, 1);
    require_part(found, 0, wanted, "what was written");
    wanted.resize(7);
    require_part(found, region, wanted, "what was cut");
}

/// Errors of one rank are its own: the others do not wait for it.
void errors_are_local()
{
    auto file = open_file("local errors");
    auto const bytes = noise(1000, static_cast<unsigned>(rank));
    int const code =
        MPI_File_write_at_all(file, rank * region, bytes.data(), rank == 1 ? -1 : 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    require((code == MPI_SUCCESS) == (rank != 1), "an error of rank 1 alone");
    write_at_all(file, rank * region, bytes);
    close_file(file);
    require_part(read_file("local errors"), rank * region, bytes, "the file after an error");
}

/// While one is staged, the other goes without.
void two_handles()
{
    auto one = open_file("two handles");
    auto two = open_file("two handles");
    auto const bytes = noise(3000, static_cast<unsigned>(rank));
    write_at_all(one, rank * region, bytes);
    write_at_all(two, rank * region + 10'000, bytes);
    close_file(two);
    close_file(one);
    auto const found = read_file("two handles");
    require_part(found, rank * region, bytes, "what one wrote");
    require_part(found, rank * region + 10'000, bytes, "what the other wrote");
}

/// A second handle of one rank alone, as PnetCDF has for independent accesses, shares the log of the first.
void handles_of_one_rank()
{
    auto file = open_file("one rank");
    write_at_all(file, rank * region, noise(100'000, 1));
    MPI_File mine = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_SELF, "one rank", MPI_MODE_RDWR, MPI_INFO_NULL, &mine), "open");
    auto wanted = noise(100'000, 1);
    require(read_at(mine, rank * region, 100'000) == wanted, "what the other handle wrote");
    for (auto const& [at, size] : std::vector<std::pair<MPI_Offset, std::size_t>>{{500, 600}, {2'000, 80'000}}) {
        auto const bytes = noise(size, static_cast<unsigned>(rank) + 5);
        write_at(mine, rank * region + at, bytes);
        write_at_all(mine, rank * region + 90'000 + at / 10, {bytes.begin(), bytes.begin() + 100});
        put(wanted, at, bytes);
        put(wanted, 90'000 + at / 10, {bytes.begin(), bytes.begin() + 100});
    }
    require(read_at(file, rank * region, 100'000) == wanted, "what this handle wrote");
    right(MPI_File_close(&mine), "close");
    close_file(file);
    require_part(read_file("one rank"), rank * region, wanted, "what both wrote");
}

/// A second handle, of this rank alone, beside the staged one. What is done through it stays, in the program's order.
struct Second {
    Second(std::string const& called, std::size_t staged) : name(called), old(noise(staged, 1)), file(open_file(called))
    {
        write_at_all(file, base, old);
        right(MPI_File_open(MPI_COMM_SELF, name.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &alone), "open alone");
    }
    /// Closes both, and looks whether the file has `bytes` at `at` of this rank's region, and else what was staged.
    void finish(MPI_Offset at, Bytes const& bytes)
    {
        right(MPI_File_close(&alone), "close alone");
        close_file(file);
        put(old, at, bytes);
        require_part(read_file(name), base, old, name);
    }
    std::string name;
    Bytes old;
    MPI_File file;
    MPI_File alone = MPI_FILE_NULL;
    MPI_Offset base = rank * region;
};

void second_handle_in_atomic_mode()
{
    Second second("second atomic", 100'000);
    right(MPI_File_set_atomicity(second.alone, 1), "set_atomicity");
    auto const bytes = noise(5000, 2);
    write_at(second.alone, second.base + 1000, bytes);
    second.finish(1000, bytes);
}

/// False where the MPI library has no external32.
bool view_external(MPI_File file, MPI_Offset at)
{
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    if (MPI_File_set_view(file, at, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL) == MPI_SUCCESS) return true;
    say("no external32 here");
    return false;
}

Bytes swapped(std::vector<int> const& numbers)
{
    Bytes bytes;
    for (auto const number : numbers)
        for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
    return bytes;
}

void second_handle_in_external32()
{
    Second second("second external32", 100'000);
    if (!view_external(second.alone, second.base + 1000)) return second.finish(0, {});
    std::vector<int> const numbers = {1, 2, 3, 0x01020304};
    right(MPI_File_write(second.alone, numbers.data(), 4, MPI_INT, MPI_STATUS_IGNORE), "write");
    second.finish(1000, swapped(numbers));
}

void second_handle_reads_external32()
{
    Second second("second reads external32", 100'000);
    std::vector<int> const numbers = {7, 8, 9, 0x0A0B0C0D};
    write_at(second.alone, second.base + 500, swapped(numbers));
    write_at_all(second.file, second.base + 516, swapped({11, 12}));
    if (!view_external(second.alone, second.base + 500))
        return second.finish(500, swapped({7, 8, 9, 0x0A0B0C0D, 11, 12}));
    std::vector<int> found(6);
    right(MPI_File_read(second.alone, found.data(), 6, MPI_INT, MPI_STATUS_IGNORE), "read");
    require(found == std::vector<int>{7, 8, 9, 0x0A0B0C0D, 11, 12}, "what both handles wrote, in external32");
    second.finish(500, swapped(found));
}

void second_handle_sets_the_size()
{
    auto const name = "second size";
    auto file = open_file(name);
    write_at_all(file, 0, rank == 0 ? noise(100'000, 1) : Bytes());
    if (rank == 0) {
        MPI_File alone = MPI_FILE_NULL;
        right(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &alone), "open alone");
        MPI_Offset size = 0;
        right(MPI_File_get_size(alone, &size), "get_size");
        require(size == 100'000, "the size with what this rank has staged");
        right(MPI_File_set_size(alone, 1000), "set_size");
        require(read_at(file, 500, 5000).size() == 500, "a read through the first handle, across the new end");
        right(MPI_File_close(&alone), "close alone");
    }
    close_file(file);
    require(read_file(name).size() == 1000, "the size that was set");
}

void second_handle_writes_ordered()
{
    Second second("second ordered", 100'000);
    right(MPI_File_set_view(second.alone, second.base, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
    auto const bytes = noise(3000, 2);
    right(MPI_File_write_ordered(second.alone, bytes.data(), 3000, MPI_BYTE, MPI_STATUS_IGNORE), "write_ordered");
    second.finish(0, bytes);
}

void posix_after_the_second_handles_sync()
{
    Second second("second posix", 100'000);
    right(MPI_File_sync(second.alone), "sync");
    auto const bytes = noise(3000, 2);
    int const fd = ::open(second.name.c_str(), O_WRONLY);
    require(::pwrite(fd, bytes.data(), bytes.size(), second.base + 100) == 3000, "pwrite");
    ::close(fd);
    second.finish(100, bytes);
}

/// Two ranks write the same bytes one after the other, as MPI has it.
void second_handles_take_turns()
{
    auto const name = "second turns";
    auto file = open_file(name);
    MPI_File alone = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &alone), "open alone");
    for (int turn = std::min(ranks, 2) - 1; turn >= 0; --turn) {
        if (rank == turn) write_at(alone, 0, noise(100'000, static_cast<unsigned>(turn)));
        right(MPI_File_sync(alone), "sync");
        MPI_Barrier(MPI_COMM_WORLD);
        right(MPI_File_sync(alone), "sync");
    }
    require(read_at(alone, 0, 100'000) == noise(100'000, 0), "the later write is read");
    right(MPI_File_close(&alone), "close alone");
    close_file(file);
    require(read_file(name) == noise(100'000, 0), "the later write wins");
}

/// Handles are of one file if the file is one, whatever it is called.
void second_handle_by_another_name()
{
    std::string const name = "second name";
    auto file = open_file(name);
    write_at_all(file, rank * region, noise(1000, 1));
    auto const other = name + " of rank " + std::to_string(rank);
    ::unlink(other.c_str());
    require(::link(name.c_str(), other.c_str()) == 0, "link");
    MPI_File alone = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_SELF, other.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &alone), "open alone");
    require(read_at(alone, rank * region, 1000) == noise(1000, 1), "what was staged under another name");
    write_at(alone, rank * region, noise(500, 2));
    right(MPI_File_close(&alone), "close alone");
    close_file(file);
    require_part(read_file(name), rank * region, noise(500, 2), "what was written under another name");
}

/// As PnetCDF aggregates within nodes: one rank opens the file for some, and later the others, each for itself. A
/// barrier is all that comes between.
void some_ranks_before_others()
{
    std::string const name = "some before others";
    MPI_File first = MPI_FILE_NULL;
    MPI_File own = MPI_FILE_NULL;
    if (rank == 0) {
        right(MPI_File_open(MPI_COMM_SELF, name.c_str(), new_file, MPI_INFO_NULL, &first), "open");
        write_at_all(first, 0, noise(static_cast<std::size_t>(ranks * region), 1));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    right(MPI_File_open(MPI_COMM_SELF, name.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &own), "open");
    auto wanted = noise(static_cast<std::size_t>(ranks * region), 1);
    wanted = {wanted.begin() + rank * region, wanted.begin() + (rank + 1) * region};
    require(read_at(own, rank * region, region) == wanted, "what rank 0 wrote");
    write_at(own, rank * region, noise(1000, static_cast<unsigned>(rank)));
    right(MPI_File_close(&own), "close");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) right(MPI_File_close(&first), "close");
    MPI_Barrier(MPI_COMM_WORLD);
    require_part(read_file(name), rank * region, noise(1000, static_cast<unsigned>(rank)), "what each wrote");
}

/// Likewise, but all have opened the file together, and each for itself after a barrier.
void independent_after_a_barrier()
{
    std::string const name = "independent after a barrier";
    auto file = open_file(name);
    write_at_all(file, rank * region, noise(static_cast<std::size_t>(region), static_cast<unsigned>(rank)));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File own = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_SELF, name.c_str(), MPI_MODE_RDWR, MPI_INFO_NULL, &own), "open");
    auto const next = (rank + 1) % ranks;
    require(read_at(own, next * region, region) == noise(static_cast<std::size_t>(region), static_cast<unsigned>(next)),
            "what the next rank wrote");
    write_at(own, next * region, noise(1000, static_cast<unsigned>(rank) + 100));
    right(MPI_File_close(&own), "close");
    close_file(file);
    require_part(read_file(name), next * region, noise(1000, static_cast<unsigned>(rank) + 100), "what each wrote");
}

/// The directory of this node's logs.
std::string log_directory(std::string const& name)
{
    auto const marker = read_file(name + ".tapioca");
    std::string const text(marker.begin(), marker.end());
    auto const at = text.find("\"directory\": \"") + 14;
    return text.substr(at, text.find('"', at) - at);
}

/// Such a file is not staged, since others could open it; that is said.
void file_of_fewer_ranks()
{
    MPI_Comm few = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks / 2 ? 0 : MPI_UNDEFINED, rank, &few);
    if (few != MPI_COMM_NULL) {
        MPI_File file = MPI_FILE_NULL;
        right(MPI_File_open(few, "fewer ranks", new_file, MPI_INFO_NULL, &file), "open");
        write_at_all(file, rank * region, noise(1000, static_cast<unsigned>(rank)));
        MPI_Barrier(few);
        require_part(read_file("fewer ranks"), rank * region, noise(1000, static_cast<unsigned>(rank)),
                     "what all can read at once");
        right(MPI_File_close(&file), "close");
        MPI_Comm_free(&few);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/// When the MPI library has written for long past the log, that is known to be the job's own doing to the end.
void passed_on_writes_are_noted()
{
    std::string const name = "noted";
    constexpr int piece = 64 * 1024;  // far apart, so that there are many calls of the system
    auto file = open_file(name);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(512, piece, 16 * piece, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    right(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL), "set_view");
    MPI_Type_free(&type);
    write_at_all(file, rank * region, noise(1000, 1));
    if (rank == 0) {
        Bytes const much(512 * piece);
        right(MPI_File_write_shared(file, much.data(), static_cast<int>(much.size()), MPI_BYTE, MPI_STATUS_IGNORE),
              "write_shared");
        struct stat found = {};
        require(::stat(name.c_str(), &found) == 0, "stat");
        int const log = ::open((log_directory(name) + "/rank0.meta").c_str(), O_RDONLY);
        std::int64_t touched = 0;
        require(::pread(log, &touched, sizeof touched, 4032) == sizeof touched, "reading the log's head");
        ::close(log);
        constexpr std::int64_t tick_ns = 10'000'000;  // of the clock that files' times come from
        require(touched + tick_ns >= found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec,
                "the log says until when its rank has changed the file");
    }
    close_file(file);
    if (rank == 0) ::unlink(name.c_str());
}

/// A rank with a second handle writes at once, also in a collective call: what comes after that call is later.
void collective_at_once()
{
    auto file = open_file("at once");
    MPI_File own = MPI_FILE_NULL;
    if (rank == 0) right(MPI_File_open(MPI_COMM_SELF, "at once", MPI_MODE_RDWR, MPI_INFO_NULL, &own), "open");
    write_at_all(file, 0, rank == 0 ? noise(100'000, 1) : Bytes());
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) write_at(file, 0, noise(100'000, 2));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) right(MPI_File_close(&own), "close");
    close_file(file);
    require_part(read_file("at once"), 0, noise(100'000, 2), "what was written after the collective call");
}

/// Rank 0 writes pieces of 1000 bytes, each second one, while rank 1 has something locked and then writes back what it
/// has read before: with the lock that a rank takes that hands over, and with the one that ROMIO takes.
void small_writes_wait(std::string const& name, std::function<int()> const& lock)
{
    constexpr int pieces = 8;
    constexpr int bytes = 1000;
    auto file = open_file(name);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_vector(pieces, bytes, 2 * bytes, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    right(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL), "set_view");
    auto const wanted = noise(pieces * bytes, 7);
    if (rank == 1) {
        int const locked = lock();
        int const fd = ::open(name.c_str(), O_RDWR);
        Bytes old(2 * pieces * bytes);
        Bytes now = old;
        (void)::pread(fd, old.data(), old.size(), 0);
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        for (int i = 0; i < 100 && now == old; ++i) {  // longer than a write takes that does not wait
            ::usleep(3000);
            (void)::pread(fd, now.data(), now.size(), 0);
        }
        (void)::pwrite(fd, old.data(), old.size(), 0);
        ::close(locked);
        ::close(fd);
    } else if (rank == 0) {
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        write_at(file, 0, wanted);
    }
    close_file(file);
    MPI_Type_free(&type);
    auto const found = read_file(name);
    for (int i = 0; i < pieces; ++i)
        require_part(found, 2 * i * bytes, {wanted.begin() + i * bytes, wanted.begin() + (i + 1) * bytes},
                     name + ": a small write over which nobody wrote");
}

void small_writes_wait_for_data_sieving()
{
    small_writes_wait("sieving", [] {
        int const fd = ::open("sieving", O_RDWR);
        struct flock range = {};
        range.l_type = F_WRLCK;
        range.l_len = 10'000;
        require(::fcntl(fd, F_SETLKW, &range) == 0, "locking a part of the file");
        return fd;
    });
}

/// One after the other opens the file for itself: the first one's log is nobody's leftover.
void one_file_for_each_alone()
{
    std::string const name = "each alone";
    std::ofstream(name, std::ios::app).flush();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File alone = MPI_FILE_NULL;
    for (int turn = ranks - 1; turn >= 0; --turn) {
        if (rank == turn) {
            int const kept = ::dup(2);
            int const said = ::open(("said " + std::to_string(rank)).c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
            ::dup2(said, 2);
            alone = open_alone(name);
            ::dup2(kept, 2);
            ::close(kept);
            ::close(said);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    auto const said = read_file("said " + std::to_string(rank));
    require(said.empty(), "nothing is wrong, but: " + std::string(said.begin(), said.end()));
    write_at(alone, rank * region, noise(100'000, static_cast<unsigned>(rank)));
    right(MPI_File_close(&alone), "close alone");
    MPI_Barrier(MPI_COMM_WORLD);
    require_part(read_file(name), rank * region, noise(100'000, static_cast<unsigned>(rank)), "what each wrote");
}

/// With other settings until the end of its life.
class Setting {
public:
    Setting(char const* name, char const* value) : name_(name), before_(std::getenv(name) ? std::getenv(name) : "")
    {
        ::setenv(name, value, 1);
    }
    Setting(Setting const&) = delete;
    Setting& operator=(Setting const&) = delete;
    ~Setting() { before_.empty() ? ::unsetenv(name_) : ::setenv(name_, before_.c_str(), 1); }

private:
    char const* name_;
    std::string before_;
};

void write_something(std::string const& name)
{
    auto file = open_file(name);
    for (unsigned i = 0; i < 20; ++i) write_at_all(file, rank * region + i * 10'000, noise(10'000, i));
    close_file(file);
    auto const found = read_file(name);
    for (unsigned i = 0; i < 20; ++i)
        require_part(found, rank * region + i * 10'000, noise(10'000, i), "the contents of " + name);
}

/// One rank's hints are enough, from the first collective access on; new hints make a new log.
void hints()
{
    std::string const stage = std::getenv("TAPIOCA_STAGE");
    ::unsetenv("TAPIOCA_STAGE");
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    if (rank == 0) MPI_Info_set(info, "tapioca_stage", stage.c_str());
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_WORLD, "hints", new_file, info, &file), "open");
    write_at(file, rank * region, noise(100'000, 1));
    write_at_all(file, rank * region + 50'000, noise(100'000, 2));
    require(::access("hints.tapioca", F_OK) == 0, "the file is staged");
    MPI_File alone = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_SELF, "hints", MPI_MODE_RDWR, MPI_INFO_NULL, &alone), "open alone");
    write_at(alone, rank * region + 10'000, noise(100, 4));  // its first access, and one to the log
    right(MPI_File_close(&alone), "close alone");
    if (rank == 1) MPI_Info_set(info, "tapioca_nbaggr", "1");
    right(MPI_File_set_info(file, info), "set_info");
    write_at_all(file, rank * region + 120'000, noise(100'000, 3));
    close_file(file);
    MPI_Info_free(&info);
    ::setenv("TAPIOCA_STAGE", stage.c_str(), 1);
    auto wanted = noise(100'000, 1);
    put(wanted, 50'000, noise(100'000, 2));
    put(wanted, 10'000, noise(100, 4));
    put(wanted, 120'000, noise(100'000, 3));
    require_part(read_file("hints"), rank * region, wanted, "what was written");
}

/// Opens a file alone with the hints of a handle, which it closes. Whether the new handle is staged.
bool is_staged_with_hints_of(MPI_File& file, std::string const& name)
{
    MPI_Info info = MPI_INFO_NULL;
    right(MPI_File_get_info(file, &info), "get_info");
    right(MPI_File_close(&file), "close");
    right(MPI_File_open(MPI_COMM_SELF, name.c_str(), new_file, info, &file), "open " + name);
    MPI_Info_free(&info);
    write_at_all(file, 0, noise(1000, 1));
    bool const staged = ::access((name + ".tapioca").c_str(), F_OK) == 0;
    right(MPI_File_close(&file), "close");
    return staged;
}

/// A program may open a file alone with the hints that another handle tells. What is from the environment does not
/// become the program's wish by that.
void hints_handed_on()
{
    auto const name = "handed on " + std::to_string(rank);
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_SELF, name.c_str(), new_file, MPI_INFO_NULL, &file), "open " + name);
    require(is_staged_with_hints_of(file, name) == (ranks == 1), "with the hints of a handle that is not staged");
    file = open_file("handed on");
    require(is_staged_with_hints_of(file, name) == (ranks == 1), "with the hints of a staged handle");
    file = open_alone(name);
    require(is_staged_with_hints_of(file, name), "with the hints that the program gave");
    std::filesystem::remove(name);
}

void no_directory()
{
    Setting const stage("TAPIOCA_STAGE", "ssd:/no/such/directory");
    write_something("no directory");
    write_something("no directory either");
}

void full_stage()
{
    Setting const size("TAPIOCA_STAGE_SIZE", "1");
    write_something("full stage");
}

/// What was drained is older than what the log has beside the target.
void full_while_draining()
{
    Setting const drain("TAPIOCA_STAGE_DRAIN", "on");
    Setting const size("TAPIOCA_STAGE_SIZE", "2300K");
    constexpr int block = 1 << 20;
    auto file = open_file("full while draining");
    write_at_all(file, rank * block, noise(block, 1));
    ::usleep(50'000);
    write_at_all(file, (ranks + rank) * block, noise(block - 4096, 2));
    write_at_all(file, rank * block, noise(block, 3));
    close_file(file);
    require_part(read_file("full while draining"), rank * block, noise(block, 3), "what came last");
}

/// What was written through a handle is in the file for good when that is closed: what another program, or rank, writes
/// there afterwards is not overwritten when the log of the first handle is flushed.
void closed_beside_while_draining()
{
    Setting const drain("TAPIOCA_STAGE_DRAIN", "on");
    auto const* const name = "closed beside";
    auto file = open_file(name);
    write_at_all(file, rank * region, noise(100'000, 1));
    right(MPI_File_sync(file), "sync");
    if (rank == 0) {
        MPI_File own = MPI_FILE_NULL;
        right(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &own), "open");
        write_at(own, 500, noise(600, 2));
        right(MPI_File_close(&own), "close");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    auto const later = noise(1000, 3);
    if (rank == ranks - 1) {
        int const plain = ::open(name, O_WRONLY);
        require(::pwrite(plain, later.data(), later.size(), 300) == 1000, "pwrite");
        ::close(plain);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    write_at_all(file, rank * region + 50'000, noise(1000, 4));
    close_file(file);
    require_part(read_file(name), 300, later, "what was written last");
}

/// What goes past the log must not be overtaken by what is drained in the background.
void shared_pointer_while_draining()
{
    if (rank != 0) return;
    Setting const drain("TAPIOCA_STAGE_DRAIN", "on");
    Setting const size("TAPIOCA_BUFFERSIZE", "512K");
    constexpr MPI_Offset block = 512 * 1024;
    constexpr int blocks = 60;
    auto const name = "shared while draining";
    auto file = open_alone(name);
    require(::access("shared while draining.tapioca", F_OK) == 0, "the file is staged");
    Bytes const old(block, 'o');
    for (int i = 0; i < blocks; ++i) {
        write_at_all(file, i * block, old);
        Bytes const bytes(block, static_cast<char>(i));
        ::usleep(static_cast<unsigned>(i) * 40);
        right(MPI_File_write_shared(file, bytes.data(), block, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared");
    }
    right(MPI_File_close(&file), "close");
    auto const found = read_file(name);
    for (int i = 0; i < blocks; ++i)
        require_part(found, i * block, Bytes(block, static_cast<char>(i)), "block " + std::to_string(i));
    std::filesystem::remove(name);
}

/// A rank that hands over what it has logged does not lose its place by that: of two collective calls the later wins.
void handed_over_keeps_its_place()
{
    if (ranks < 2) return;
    for (auto const* const mapping : {"process", "node"}) {
        Setting const logs("TAPIOCA_STAGE_MAPPING", mapping);
        auto file = open_file("keeps its place");
        write_at_all(file, region, Bytes(rank == 1 ? 1000 : 0, 'o'));
        write_at_all(file, region + 100, Bytes(rank == 0 ? 200 : 0, 'n'));
        if (rank == 0) right(MPI_File_write_shared(file, "shared", 6, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared");
        close_file(file);
        Bytes wanted(1000, 'o');
        std::fill_n(wanted.begin() + 100, 200, 'n');
        require_part(read_file("keeps its place"), region, wanted, "of two calls the later wins");
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) std::filesystem::remove("keeps its place");
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/// A write where no file can have bytes is that call's error, and all others get into the file.
void too_far()
{
    auto file = open_file("too far");
    auto const bytes = noise(100'000, 5);
    auto const size = static_cast<int>(bytes.size());
    for (auto const far : {MPI_Offset{1} << 62, (MPI_Offset{1} << 62) + 12'345}) {
        write_at(file, rank * region, bytes);
        auto const code = MPI_File_write_at(file, far, bytes.data(), size, MPI_BYTE, MPI_STATUS_IGNORE);
        require(code != MPI_SUCCESS, "a write at 2^62");
        write_at(file, rank * region + size, bytes);
    }
    close_file(file);
    auto const found = read_file("too far");
    require_part(found, rank * region, bytes, "what was written before");
    require_part(found, rank * region + size, bytes, "what was written after");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::filesystem::remove("too far");
}

/// Files that are open at once, each with a log, in a process that may have few descriptors.
void many_files_with_few_descriptors()
{
    rlimit before = {};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit const few = {200, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    std::vector<MPI_File> files;
    for (int i = 0; i < 40; ++i) files.push_back(open_file("many " + std::to_string(i)));
    for (unsigned i = 0; i < 40; ++i) {
        write_at_all(files[i], rank * region, noise(1000, i));
        if (i % 10 == 0) right(MPI_File_sync(files[i]), "sync");
        if (i < 20) write_at(files[i], rank * region + 1000, noise(1000, i));
    }
    for (auto& file : files) right(MPI_File_close(&file), "close");
    ::setrlimit(RLIMIT_NOFILE, &before);
    MPI_Barrier(MPI_COMM_WORLD);
    for (unsigned i = 0; i < 40; ++i) {
        auto const name = "many " + std::to_string(i);
        require_part(read_file(name), rank * region, noise(1000, i), "the contents of " + name);
        if (i < 20) require_part(read_file(name), rank * region + 1000, noise(1000, i), "what went through to " + name);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) std::filesystem::remove(name);
    }
}

/// Nonblocking reads of two files, begun in another order on every second rank, and with a message between.
void reads_begun_in_any_order()
{
    std::vector<MPI_File> files = {open_file("any order 0"), open_file("any order 1")};
    std::vector<Bytes> wanted;
    for (unsigned i = 0; i < 2; ++i) {
        wanted.push_back(noise(100'000, 2 * static_cast<unsigned>(rank) + i));
        write_at_all(files[i], rank * region, wanted.back());
    }
    std::vector<Bytes> found(2, Bytes(100'000));
    std::vector<MPI_Request> requests(2);
    for (int i = 0; i < 2; ++i) {
        auto const k = static_cast<std::size_t>((rank + i) % 2);
        if (i == 0 && rank == 1) MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        right(MPI_File_iread_at_all(files[k], rank * region, found[k].data(), 100'000, MPI_BYTE, &requests[k]),
              "iread_at_all");
        if (i == 0 && rank == 0 && ranks > 1) MPI_Send(nullptr, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    }
    for (std::size_t k = 0; k < 2; ++k) {
        MPI_Status status;
        right(MPI_Wait(&requests[k], &status), "wait");
        int count = 0;
        MPI_Get_count(&status, MPI_BYTE, &count);
        require(count == 100'000 && found[k] == wanted[k], "what this rank has staged");
    }
    for (auto& file : files) close_file(file);
}

/// How many reading system calls this process has made.
long reads_so_far()
{
    std::ifstream in("/proc/self/io");
    std::string key;
    for (long value = 0; in >> key >> value;)
        if (key == "syscr:") return value;
    return -1;
}

/// A strided read takes few calls, although there is a log for it.
void strided_reads_take_few_calls()
{
    if (reads_so_far() < 0) return say("no /proc/self/io here");
    constexpr int many = 4000;
    auto file = open_file("strided reads");
    Bytes wanted = noise(static_cast<std::size_t>(region), 1);
    write_at_all(file, rank * region, wanted);
    right(MPI_File_sync(file), "sync");
    for (int i = 0; i < 100; ++i) {
        auto const bytes = noise(10, static_cast<unsigned>(i));
        write_at_all(file, rank * region + i * 500, bytes);
        put(wanted, i * 500, bytes);
    }
    MPI_Datatype strided = MPI_DATATYPE_NULL;
    MPI_Type_vector(many, 8, 64, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    right(MPI_File_set_view(file, rank * region, MPI_BYTE, strided, "native", MPI_INFO_NULL), "set_view");
    Bytes found(8 * many);
    auto const before = reads_so_far();
    right(MPI_File_read_at(file, 0, found.data(), 8 * many, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
    auto const calls = reads_so_far() - before;
    require(calls < 100, "a strided read takes " + std::to_string(calls) + " calls");
    for (std::size_t i = 0; i < many; ++i)
        require(std::equal(found.begin() + static_cast<long>(8 * i), found.begin() + static_cast<long>(8 * i + 8),
                           wanted.begin() + static_cast<long>(64 * i)),
                "piece " + std::to_string(i));
    MPI_Type_free(&strided);
    close_file(file);
}

/// Removes the logs that the marker beside a file names.
void discard(std::string const& name)
{
    auto const marker = read_file(name + ".tapioca");
    std::string const text(marker.begin(), marker.end());
    auto const at = text.find("\"directory\": \"") + 14;
    std::filesystem::remove_all(text.substr(at, text.find('"', at) - at));
}

/// Everybody hears of it, at the latest when the file is closed; and what was staged stays.
void full_target()
{
    int mounted = 0;
    if (rank == 0) {
        ::mkdir("small", 0755);
        mounted = ::mount("tmpfs", "small", "tmpfs", 0, "size=256k") == 0;
    }
    MPI_Bcast(&mounted, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!mounted) return say("full_target: mounting a tmpfs is not permitted here");
    auto file = open_file("small/full");
    write_at_all(file, rank * region, noise(static_cast<std::size_t>(region), 1));
    int const code = class_of(MPI_File_close(&file));
    require(code == MPI_ERR_NO_SPACE, "the class of a full file system's error");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        require(::access("small/full.tapioca", F_OK) == 0, "the log stays");
        discard("small/full");
        ::umount2("small", MNT_DETACH);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    write_something("after a full one");
}

/// After a flush that failed, what is written later still is later.
void writes_after_a_failed_flush()
{
    int mounted = 0;
    if (rank == 0) {
        ::mkdir("narrow", 0755);
        mounted = ::mount("tmpfs", "narrow", "tmpfs", 0, "size=256k") == 0;
    }
    MPI_Bcast(&mounted, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!mounted) return say("writes_after_a_failed_flush: mounting a tmpfs is not permitted here");
    std::vector<MPI_File> files = {open_file("narrow/atomic"), open_file("narrow/view")};
    for (auto const file : files) {
        MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
        write_at_all(file, rank * region, noise(static_cast<std::size_t>(region), 1));
    }
    require(class_of(MPI_File_set_atomicity(files[0], 1)) == MPI_ERR_NO_SPACE, "set_atomicity tells of the flush");
    auto const bytes = swapped({1, 2, 3, 4});
    std::vector<int> const numbers = {1, 2, 3, 4};
    bool external = true;
    {
        int const code = MPI_File_set_view(files[1], rank * region, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
        external = class_of(code) == MPI_ERR_NO_SPACE;
        require(external || class_of(code) == MPI_ERR_UNSUPPORTED_DATAREP, "set_view tells of the flush");
    }
    auto const write = [&] {
        int const code = MPI_File_write_all(files[1], numbers.data(), 4, MPI_INT, MPI_STATUS_IGNORE);
        return class_of(code);
    };
    if (external) require(write() == MPI_ERR_NO_SPACE, "nothing goes past a log that could not be flushed");
    write_at_all(files[0], rank * region, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) require(::mount("tmpfs", "narrow", "tmpfs", MS_REMOUNT, "size=64m") == 0, "remount");
    MPI_Barrier(MPI_COMM_WORLD);
    if (external) {
        right(MPI_File_seek(files[1], 0, MPI_SEEK_SET), "seek");
        require(write() == MPI_SUCCESS, "a write when there is room again");
    }
    for (auto& file : files) close_file(file);
    auto wanted = noise(static_cast<std::size_t>(region), 1);
    if (!external) require_part(read_file("narrow/view"), rank * region, wanted, "what was staged");
    put(wanted, 0, bytes);
    require_part(read_file("narrow/atomic"), rank * region, wanted, "what was written after set_atomicity");
    if (external) require_part(read_file("narrow/view"), rank * region, wanted, "what was written after set_view");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) ::umount2("narrow", MNT_DETACH);
    MPI_Barrier(MPI_COMM_WORLD);
}

/// The log stays, and MPI_Finalize says so.
void never_closed()
{
    auto file = open_file("never closed");
    write_at_all(file, rank * region, noise(1000, 1));
}

std::map<std::string, std::function<void()>> const scenarios = {
    {"own_overlaps", own_overlaps},
    {"random_overlaps", random_overlaps},
    {"later_calls_win", later_calls_win},
    {"collective_reads", collective_reads},
    {"small_independent_writes", small_independent_writes},
    {"small_after_large", small_after_large},
    {"own_writes_are_read", own_writes_are_read},
    {"sizes", sizes},
    {"errors_are_local", errors_are_local},
    {"two_handles", two_handles},
    {"handles_of_one_rank", handles_of_one_rank},
    {"second_handle_in_atomic_mode", second_handle_in_atomic_mode},
    {"second_handle_in_external32", second_handle_in_external32},
    {"second_handle_reads_external32", second_handle_reads_external32},
    {"second_handle_sets_the_size", second_handle_sets_the_size},
    {"second_handle_writes_ordered", second_handle_writes_ordered},
    {"posix_after_the_second_handles_sync", posix_after_the_second_handles_sync},
    {"second_handles_take_turns", second_handles_take_turns},
    {"second_handle_by_another_name", second_handle_by_another_name},
    {"some_ranks_before_others", some_ranks_before_others},
    {"independent_after_a_barrier", independent_after_a_barrier},
    {"collective_at_once", collective_at_once},
    {"file_of_fewer_ranks", file_of_fewer_ranks},
    {"passed_on_writes_are_noted", passed_on_writes_are_noted},
    {"small_writes_wait_for_data_sieving", small_writes_wait_for_data_sieving},
    {"one_file_for_each_alone", one_file_for_each_alone},
    {"shared_pointer_while_draining", shared_pointer_while_draining},
    {"handed_over_keeps_its_place", handed_over_keeps_its_place},
    {"too_far", too_far},
    {"many_files_with_few_descriptors", many_files_with_few_descriptors},
    {"reads_begun_in_any_order", reads_begun_in_any_order},
    {"strided_reads_take_few_calls", strided_reads_take_few_calls},
    {"writes_after_a_failed_flush", writes_after_a_failed_flush},
    {"never_closed", never_closed},
    {"hints", hints},
    {"hints_handed_on", hints_handed_on},
    {"no_directory", no_directory},
    {"full_stage", full_stage},
    {"full_while_draining", full_while_draining},
    {"closed_beside_while_draining", closed_beside_while_draining},
    {"full_target", full_target},
};

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (auto const& [name, run] : scenarios) {
        if (argc > 1 && std::find(argv + 1, argv + argc, name) == argv + argc) continue;
        run();
        MPI_Barrier(MPI_COMM_WORLD);
        say(name + ": ok");
    }
    MPI_Finalize();
    if (rank == 0 && ::access("never closed.tapioca", F_OK) == 0) discard("never closed");
    return 0;
}
