// What is promised of staged files, beyond what the fuzzer looks at: staged SCENARIO... runs them in one job, with the
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

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using Bytes = std::vector<char>;

constexpr int new_file = MPI_MODE_RDWR | MPI_MODE_CREATE;
constexpr MPI_Offset region = 256 * 1024;  ///< of each rank

int rank = 0;
int ranks = 1;

void require(bool condition, std::string const& what)
{
    if (condition) return;
    std::fprintf(stderr, "[rank %d] FAILED: %s\n", rank, what.c_str());
    std::abort();
}

void right(int code, std::string const& what)
{
    require(code == MPI_SUCCESS, what);
}

int class_of(int code)
{
    int result = MPI_SUCCESS;
    MPI_Error_class(code, &result);
    return result;
}

void say(std::string const& text)
{
    if (rank != 0) return;
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}

MPI_File open_file(std::string const& name, int mode = new_file)
{
    MPI_File file = MPI_FILE_NULL;
    right(MPI_File_open(MPI_COMM_WORLD, name.c_str(), mode, MPI_INFO_NULL, &file), "open " + name);
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
    if (rank == 1) MPI_Info_set(info, "tapioca_nbaggr", "1");
    right(MPI_File_set_info(file, info), "set_info");
    write_at_all(file, rank * region + 120'000, noise(100'000, 3));
    close_file(file);
    MPI_Info_free(&info);
    ::setenv("TAPIOCA_STAGE", stage.c_str(), 1);
    auto wanted = noise(100'000, 1);
    put(wanted, 50'000, noise(100'000, 2));
    put(wanted, 120'000, noise(100'000, 3));
    require_part(read_file("hints"), rank * region, wanted, "what was written");
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

std::map<std::string, std::function<void()>> const scenarios = {
    {"own_overlaps", own_overlaps},
    {"random_overlaps", random_overlaps},
    {"later_calls_win", later_calls_win},
    {"small_independent_writes", small_independent_writes},
    {"small_after_large", small_after_large},
    {"own_writes_are_read", own_writes_are_read},
    {"sizes", sizes},
    {"errors_are_local", errors_are_local},
    {"two_handles", two_handles},
    {"handles_of_one_rank", handles_of_one_rank},
    {"hints", hints},
    {"no_directory", no_directory},
    {"full_stage", full_stage},
    {"full_while_draining", full_while_draining},
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
    return 0;
}
